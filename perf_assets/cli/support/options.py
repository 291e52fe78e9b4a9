"""Options that several commands take."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from perf_assets.core.errors import BadInputError

Function = TypeVar("Function", bound=Callable[..., Any])

json_option: Callable[[Function], Function] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)

kind_option: Callable[[Function], Function] = click.option(
    "--kind", type=click.Choice(["rajaperf", "profile", "samples"]), help="Found out from the files if absent."
)


def machine_option(function: Function) -> Function:
    """Machines that a command is for, as words or by --machine: `chosen`, none for all."""

    @click.argument("named", nargs=-1, metavar="[MACHINE]...")
    @click.option("--machine", "chosen", multiple=True, metavar="ID", help="Only this machine; may be repeated.")
    @functools.wraps(function)
    def merged(*arguments: Any, named: tuple[str, ...], chosen: tuple[str, ...], **given: Any) -> Any:
        return function(*arguments, chosen=(*named, *chosen), **given)

    return merged  # type: ignore[return-value]


def one_machine(function: Function) -> Function:
    """The machine that a command is for, as a word or by --machine: `machine`."""

    @click.argument("named", required=False, metavar="MACHINE")
    @click.option("--machine", metavar="ID", help="Another way to name it, as in other commands.")
    @functools.wraps(function)
    def merged(*arguments: Any, named: str | None, machine: str | None, **given: Any) -> Any:
        if named is None and machine is None:
            raise click.UsageError("say which MACHINE", click.get_current_context())
        if named is not None and machine is not None:
            raise click.UsageError("name the machine once", click.get_current_context())
        return function(*arguments, machine=named or machine, **given)

    return merged  # type: ignore[return-value]


def gpus_in_use(context: click.Context, parameter: click.Parameter, value: str | None) -> bool | None:
    """Whether a program uses GPUs, from their number; without one, as in the first release, that it does."""
    if value is None or value == ANY_GPUS:
        return None if value is None else True
    if not value.isdecimal():
        raise click.BadParameter(f"{value!r} is no number of GPUs (0 for none)", context, parameter)
    return int(value) > 0


ANY_GPUS = "some"
"""Value of --gpus without a number."""


why_option: Callable[[Function], Function] = click.option(
    "--why", required=True, metavar="TEXT", help="Reason, for those who look at the record later."
)


def run_options(function: Function) -> Function:
    """Add the options for facts about a run that its files may lack."""
    options = (
        click.option("--app", help="Application."),
        click.option("--args", help="Arguments of the application."),
        click.option("--ranks", type=click.IntRange(1), help="MPI ranks."),
        click.option("--threads", type=click.IntRange(1), help="Threads of a rank."),
        click.option("--wall-seconds", type=float, help="Run time, where the files do not have it."),
    )
    for option in reversed(options):
        function = option(function)
    return function


reference_option: Callable[[Function], Function] = click.option(
    "--relative-to",
    "reference",
    default="max",
    show_default=True,
    metavar="min|max|NAME",
    help="Machine that times are relative to: the fastest, the slowest, or one by name.",
)


def machine_sizes(text: str) -> dict[str, int]:
    """Nodes by machine, of `--machines M=N,...`."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        if not name or not size.isdigit() or int(size) < 1 or name in sizes:
            raise BadInputError(f"--machines {text!r}: give names with nodes, each once, such as h100=64,dane=32")
        sizes[name] = int(size)
    return sizes
