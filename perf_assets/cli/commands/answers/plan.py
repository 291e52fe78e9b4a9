"""`perf-assets plan`."""

from itertools import groupby
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import check_known, check_machine
from perf_assets.cli.support.options import json_option, one_machine
from perf_assets.cli.support.output import print_json, print_table
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    from perf_assets.serving.answers import PlannedRun, Rows


@click.command()
@one_machine
@click.option("--budget", type=click.IntRange(1, 1000), default=10, show_default=True, help="Runs to plan.")
@click.option("--script", is_flag=True, help="Print a script that measures them, to be run on the machine.")
@click.option("--slurm", "system", flag_value="slurm", help="With --script: as a job of Slurm.")
@click.option("--flux", "system", flag_value="flux", help="With --script: as a job of Flux.")
@json_option
def command(machine: str, budget: int, script: bool, system: str | None, as_json: bool) -> None:
    """Rank the configurations to run next on MACHINE by how much they lower the expected error.

    Runs are priced in node-hours: the predicted time, on the nodes that the configuration uses elsewhere. What the
    script leaves lands as it is ('perf-assets land bundles'), and the next plan knows it.
    """
    if script and as_json:
        raise BadInputError("--script and --json print different things: give one of them")
    if system and not script:
        raise BadInputError(f"--{system} is for the script: give --script too")
    check_machine(machine)
    check_known(Lake.default(), [machine])
    from perf_assets.api import open_lake

    rows = open_lake().plan(machine, budget)
    if script:
        _print_script(machine, rows, system)
        return
    if as_json:
        print_json({"machine": machine, "runs": rows.to_dicts()})
        return
    for name, part in groupby(rows, key=lambda run: run.seen_as):
        runs = list(part)
        before, after = (f"{100 * ratio:.1f}" for ratio in (runs[0].error_before_ratio, runs[-1].error_after_ratio))
        if before == after:
            click.echo(f"{name}: no further run is worth it: the expected error would stay at {before}%")
            continue
        hours = sum(run.node_hours or 0.0 for run in runs)
        print_table(
            f"{name}: {len(runs)} runs, {hours:.3g} node-hours in all",
            ["rank", "configuration", "expected error before %", "after %", "node-hours"],
            [
                (
                    run.rank,
                    run.configuration,
                    100 * run.error_before_ratio,
                    100 * run.error_after_ratio,
                    "-" if run.node_hours is None else f"{run.node_hours:.3g}",
                )
                for run in runs
            ],
        )


def _print_script(machine: str, runs: "Rows[PlannedRun]", system: str | None) -> None:
    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.serving.plan_script import plan_script
    from perf_assets.workflows.landing.event_sets import event_sets, measure_script

    sets = event_sets(load_catalogue(Lake.default().site_catalogues()), None)
    click.echo(plan_script(machine, list(runs), measure_script(sets), system), nl=False)
