"""Options that several commands take."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

json_option: Callable[[Function], Function] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)

kind_option: Callable[[Function], Function] = click.option(
    "--kind", type=click.Choice(["rajaperf", "profile", "samples"]), help="Found out from the files if absent."
)

machine_option: Callable[[Function], Function] = click.option(
    "--machine", "chosen", multiple=True, metavar="ID", help="Only this machine; may be repeated."
)


def run_options(function: Function) -> Function:
    """What the files of a run may not say."""
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
