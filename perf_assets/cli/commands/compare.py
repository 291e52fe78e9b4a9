"""`perf-assets compare`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import check_machine
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import check_folder, print_json, print_table, say
from perf_assets.core.comparison import MEASURES, WORK_NODE_HOURS, Comparison
from perf_assets.core.errors import BadInputError
from perf_assets.core.text import csv_of

if TYPE_CHECKING:
    from perf_assets.serving.answers import Compared

_PAGE, _JSON, _CSV = ".html", ".json", ".csv"


@click.command()
@click.argument("apps", nargs=-1, required=True, metavar="APP[=WEIGHT]...")
@click.option("--machines", required=True, metavar="M,N,...", help="Machines to compare.")
@click.option("--from", "baseline", metavar="MACHINE", help="Machine of today. [that which models start from]")
@click.option("--price", "prices", multiple=True, metavar="MACHINE=PRICE", help="Of a node-hour; for each machine.")
@click.option("--power", "watts", multiple=True, metavar="MACHINE=WATTS", help="Of a node; for each machine.")
@click.option("--no-gpus", "without_gpus", multiple=True, metavar="APP", help="It does not use GPUs; may be repeated.")
@click.option("--predicted", "is_predicted", is_flag=True, help="Predict also runs that were measured on a machine.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print as CSV.")
@click.option("--out", type=click.Path(path_type=Path), help="Write this file instead: .html (a page), .json or .csv.")
def command(
    apps: tuple[str, ...],
    machines: str,
    baseline: str | None,
    prices: tuple[str, ...],
    watts: tuple[str, ...],
    without_gpus: tuple[str, ...],
    is_predicted: bool,
    as_json: bool,
    as_csv: bool,
    out: Path | None,
) -> None:
    """Compare machines for a portfolio of applications: time and cost with 90% intervals.

    WEIGHT is the share of an application in today's machine time, in any unit; all alike where none is given. Machines
    whose intervals overlap are not put into an order. Runs count as measured on a machine where they were, and are
    predicted elsewhere.
    """
    from perf_assets.api import open_lake

    if as_json and as_csv:
        raise BadInputError("--json and --csv exclude each other: choose one")
    if out is not None:
        _check(out)
    names = [name.strip() for name in machines.split(",") if name.strip()]
    for machine in (*names, *([baseline] if baseline else [])):
        check_machine(machine)
    found = open_lake().compare(
        _numbers("APP", [app if "=" in app else f"{app}=1" for app in apps]),
        names,
        baseline,
        prices=_numbers("--price", prices),
        watts=_numbers("--power", watts),
        without_gpus=without_gpus,
        with_measured=not is_predicted,
    )
    if out is not None:
        _write(out, found.comparison)
        say(f"the comparison of {len(found)} machines is in {out}")
    elif as_json:
        print_json(found.comparison.to_dict())
    elif as_csv:
        click.echo(csv_of(found.comparison.to_frame()), nl=False)
    else:
        _print(found)


def _numbers(what: str, given: Sequence[str]) -> dict[str, float]:
    """`NAME=NUMBER` of each."""
    found: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise BadInputError(f"{what} {text!r}: must be NAME=NUMBER")
        if name in found:
            raise BadInputError(f"{what} {name}: is named twice")
        found[name] = value
    return found


def _print(found: "Compared") -> None:
    comparison = found.comparison
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
            for one in found
        ],
    )
    print_table(
        "Each application: geometric means over its configurations",
        ["application", "machine", "relative time", "seconds", "its node-hours", "configurations"],
        [
            (one.app, one.machine, *map(str, (one.relative_time, one.seconds, one.node_hours, one.configurations)))
            for one in found.applications
        ],
    )
    for finding in comparison.findings():
        click.echo(finding)
    for note in comparison.notes:
        say(note)
    for one in found:
        for warning in one.warnings:
            say(f"warning: {one.machine}: {warning}")


def _check(out: Path) -> None:
    if out.suffix not in (_PAGE, _JSON, _CSV):
        raise BadInputError(f"--out {out}: must end with {_PAGE}, {_JSON} or {_CSV}")
    check_folder(out)


def _write(out: Path, comparison: Comparison) -> None:
    """Whole or not at all."""
    import json
    from datetime import UTC, datetime

    from perf_assets.infra.files import write_bytes
    from perf_assets.reports.compare.page import compare_page

    if out.suffix == _PAGE:
        text = compare_page(comparison, datetime.now(UTC))
    elif out.suffix == _JSON:
        text = json.dumps(comparison.to_dict(), indent=1)
    else:
        text = csv_of(comparison.to_frame())
    write_bytes(out.absolute(), text.encode())
