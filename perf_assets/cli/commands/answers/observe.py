"""`perf-assets observe`."""

from pathlib import Path
from typing import Any

import click

from perf_assets.cli.support.lake import check_machines
from perf_assets.cli.support.options import json_option, run_options
from perf_assets.cli.support.output import print_json, print_table
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("profiles", nargs=-1, type=click.Path(path_type=Path), metavar="[PROFILE]...")
@click.option("--machine", required=True, metavar="ID", help="Machine that it was measured on.")
@run_options
@click.option("--nodes", type=click.IntRange(1), help="Nodes.")
@click.option("--gpus", type=click.IntRange(0), help="GPUs used in all; needed on a machine that has some.")
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    help="Profile of the same run on the model's reference machine, where the model does not know it.",
)
@click.option("--force", is_flag=True, help="Take a time that is far outside the predicted interval.")
@json_option
def command(
    profiles: tuple[Path, ...],
    machine: str,
    reference: Path | None,
    force: bool,
    as_json: bool,
    nodes: int | None,
    **given: Any,
) -> None:
    """Hand measured runs to the model in use: predictions take them into account from now on.

    Each PROFILE is a file or folder that a tool wrote on the machine; without any, --app, --args, --ranks, --threads
    and --wall-seconds say what was measured. The runs land, so that the machine's next adaptation has them too. A
    service that runs ('perf-assets serve') takes them up within a second. All runs are checked before one lands.
    """
    check_machines([machine])
    given_facts = {name: value for name, value in given.items() if value is not None}
    if not profiles:
        _checked_run(given_facts)
    from perf_assets.api import open_lake
    from perf_assets.serving.asked_runs import read_rows
    from perf_assets.serving.requests import Observation, checked

    lake = open_lake()
    measured = (
        [row for path in profiles for row in read_rows(Lake.default(), path, machine, given_facts)]
        if profiles
        else [_checked_run(given_facts)]
    )
    there = None
    if reference is not None:
        if len(measured) > 1:
            raise BadInputError("--reference is for one run: hand them in one by one")
        same = {name: measured[0][name] for name in ("app", "args", "ranks", "threads") if name in measured[0]}
        there = lake.read(lake.reference_machine(machine), reference, **same)[0]
    observations = [
        checked(
            Observation,
            {
                **{name: value for name, value in row.items() if value is not None},
                "machine": machine,
                "nodes": nodes,
                "reference": there,
            },
        )
        for row in measured
    ]
    noted = lake.observe(*observations, force=force)
    if as_json:
        print_json({"observed": noted.to_dicts()})
        return
    print_table(
        f"Observed on {machine}: {noted[-1].observed_count} runs now count beside the champion",
        ["application", "configuration", "measured s", "predicted s", "90% interval s", "bundle"],
        [
            (
                row.app,
                f"{row.args} ({row.ranks} x {row.threads})".strip(),
                f"{row.measured_seconds:.4g}",
                f"{row.predicted_seconds:.4g}",
                f"{row.lower_seconds:.4g} to {row.upper_seconds:.4g}",
                row.bundle if row.is_new else f"{row.bundle} (already there)",
            )
            for row in noted
        ],
    )


def _checked_run(given_facts: dict[str, Any]) -> dict[str, Any]:
    missing = [name for name in ("app", "ranks", "wall_seconds") if name not in given_facts]
    if missing:
        raise BadInputError(f"name a PROFILE, or give --{missing[0].replace('_', '-')}")
    return given_facts
