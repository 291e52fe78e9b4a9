"""`perf-assets plan`."""

from itertools import groupby

import click

from perf_assets.cli.support.lake import check_known, check_machine
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("machine")
@click.option("--budget", type=click.IntRange(1, 1000), default=10, show_default=True, help="Runs to plan.")
@json_option
def command(machine: str, budget: int, as_json: bool) -> None:
    """Rank the configurations to run next on MACHINE by how much they lower the expected error.

    Runs are priced in node-hours: the predicted time, on the nodes that the configuration uses elsewhere.
    """
    from perf_assets.api import open_lake

    check_machine(machine)
    check_known(Lake.default(), [machine])
    rows = open_lake().plan(machine, budget)
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
