"""`perf-assets compare`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import check_machine, check_machines
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import check_formats, print_file, print_json, print_table, say
from perf_assets.core.comparison import MEASURES, WORK_NODE_HOURS
from perf_assets.core.errors import BadInputError
from perf_assets.infra.files import write_bytes

if TYPE_CHECKING:
    from perf_assets.serving.answers import Compared

_PAGE = ".html"
_ENDINGS = (_PAGE, ".json", ".csv")


@click.command()
@click.argument("apps", nargs=-1, required=True, metavar="APP[=WEIGHT]...")
@click.option("--machines", metavar="M,N,...", help="Machines to compare.")
@click.option("--environments", "upgraded", metavar="MACHINE", help="Compare the software of a machine instead.")
@click.option(
    "--from", "baseline", help="Machine of today [that which models start from], or environment [the default]."
)
@click.option("--to", "after", metavar="ENVIRONMENT", help="With --environments: the other one. [the newest other]")
@click.option("--price", "prices", multiple=True, metavar="MACHINE=PRICE", help="Of a node-hour; for each machine.")
@click.option("--power", "watts", multiple=True, metavar="MACHINE=WATTS", help="Of a node; for each machine.")
@click.option("--gpus", multiple=True, metavar="APP=N", help="GPUs that it uses, 0 for none; may be repeated.")
@click.option("--no-gpus", multiple=True, hidden=True, help="Old name of --gpus APP=0.")
@click.option("--predicted", "is_predicted", is_flag=True, help="Predict also runs that were measured on a machine.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print as CSV.")
@click.option("--out", type=click.Path(path_type=Path), help="Write this file instead: .html (a page), .json or .csv.")
def command(
    apps: tuple[str, ...],
    machines: str | None,
    upgraded: str | None,
    baseline: str | None,
    after: str | None,
    prices: tuple[str, ...],
    watts: tuple[str, ...],
    gpus: tuple[str, ...],
    no_gpus: tuple[str, ...],
    is_predicted: bool,
    as_json: bool,
    as_csv: bool,
    out: Path | None,
) -> None:
    """Compare machines for a portfolio of applications: time and cost with 90% intervals.

    WEIGHT is the share of an application in today's machine time, in any unit; all alike where none is given. Machines
    whose intervals overlap are not put into an order. Runs count as measured on a machine where they were, and are
    predicted elsewhere.

    With --environments, the same runs before and after an upgrade of a machine's software are compared ('perf-assets
    environments' lists it); a few runs with the new one are enough, and applications without any get wide intervals.
    """
    weights = _numbers("APP", [app if "=" in app else f"{app}=1" for app in apps])
    without_gpus = (*no_gpus, *(app for app, count in _numbers("--gpus", gpus).items() if not count))
    if no_gpus:
        say("--no-gpus APP is called --gpus APP=0 now, and goes with the next release")
    if upgraded is not None:
        others: dict[str, object] = {
            "--machines": machines,
            "--price": prices,
            "--power": watts,
            "--gpus": without_gpus,
        }
        others |= {"--csv": as_csv, "--out": out, "--predicted": is_predicted}
        _compare_software(weights, upgraded, (baseline, after), others, as_json=as_json)
        return
    if machines is None or after is not None:
        raise BadInputError("say --machines M,N,..., or --environments MACHINE, which --to goes with")
    if out is not None and out.suffix not in _ENDINGS:
        raise BadInputError(f"--out {out}: must end with {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}")
    check_formats(out, as_json=as_json, as_csv=as_csv)
    names = [name.strip() for name in machines.split(",") if name.strip()]
    check_machines([*names, *([baseline] if baseline else [])])
    given = {"prices": _numbers("--price", prices), "watts": _numbers("--power", watts)}
    from perf_assets.api import open_lake

    compared = open_lake().compare(
        weights,
        names,
        baseline,
        **given,
        without_gpus=without_gpus,
        with_measured=not is_predicted,
    )
    comparison = compared.comparison
    if out is not None and out.suffix == _PAGE:
        from perf_assets.reports.compare.page import compare_page

        write_bytes(out.absolute(), compare_page(comparison, datetime.now(UTC)).encode())
    elif not print_file(comparison.to_dict(), comparison.to_frame(), out, as_json=as_json, as_csv=as_csv):
        _print(compared)
    if out is not None:
        say(f"the comparison of {len(compared)} machines is in {out}")


def _compare_software(
    weights: Mapping[str, float],
    machine: str,
    software: tuple[str | None, str | None],
    others: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """Compare two environments of a machine; `others` are options that mean nothing here."""
    from perf_assets.api import open_lake

    refused = [name for name, value in others.items() if value]
    if refused:
        raise BadInputError(f"{refused[0]} does not go with --environments: leave it out")
    check_machine(machine)
    upgrade = open_lake().compare_environments(weights, machine, *software)
    if as_json:
        print_json(upgrade.to_dict())
        return
    rows = [
        (one.app, f"{one.weight_ratio:.0%}", str(one.relative_time), str(one.configurations), one.before, one.after)
        for one in upgrade.applications
    ]
    columns = ["application", "weight", "time after / before", "configurations", "before", "after"]
    print_table(f"{upgrade.machine}, after an upgrade: {upgrade.relative_time}", columns, rows)
    for one in upgrade.applications:
        if not one.configurations:
            say(f"{one.app} did not run with both: taken to be as the other applications are")


def _numbers(what: str, given: Sequence[str]) -> dict[str, float]:
    """Numbers by name, from texts of the form `NAME=NUMBER`."""
    by_name: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise BadInputError(f"{what} {text!r}: must be NAME=NUMBER")
        if value < 0:
            wrong = f"the weight of {name} is {value:g}: it" if what == "APP" else f"{what} {text}:"
            raise BadInputError(f"{wrong} must be above 0")
        if name in by_name:
            raise BadInputError(f"{what} {name}: is named twice")
        by_name[name] = value
    return by_name


def _print(compared: "Compared") -> None:
    comparison = compared.comparison
    known = comparison.measures
    weights = ", ".join(f"{app} {weight:.0%}" for app, weight in comparison.weights.items())
    print_table(
        f"{weights}; relative to {comparison.baseline}; costs of what is {WORK_NODE_HOURS:g} node-hours there",
        ["machine", "place", *(MEASURES[name] for name in known), "cannot be told from", "configurations"],
        [
            (
                f"{one.machine}{' (simulated)' if one.is_simulated else ''}",
                one.place,
                *(str(getattr(one, name)) for name in known),
                ", ".join(getattr(one, comparison.ranked_by).not_told_from) or "-",
                str(one.configurations),
            )
            for one in compared
        ],
    )
    print_table(
        "Each application: geometric means over its configurations",
        ["application", "machine", "relative time", "seconds", "its node-hours", "configurations"],
        [
            (one.app, one.machine, *map(str, (one.relative_time, one.seconds, one.node_hours, one.configurations)))
            for one in compared.applications
        ],
    )
    for finding in comparison.findings():
        click.echo(finding)
    say(*comparison.notes)
    for one in compared:
        for warning in one.warnings:
            say(f"warning: {one.machine}: {warning}")
