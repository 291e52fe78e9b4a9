"""`perf-assets ingest`."""

import sys
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import print_rows, say
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    from perf_assets.defs.operate.launch import MachineOutcome


@click.command()
@machine_option
@click.option("--rebuild", is_flag=True, help="Make the warehouse anew from the record alone.")
@click.option("--reread", is_flag=True, help="Read all landed bundles again, as after an update of the readers.")
@json_option
def command(chosen: tuple[str, ...], rebuild: bool, reread: bool, as_json: bool) -> None:
    """Read what landed into the record and the warehouse, through Dagster.

    Only what is new, changed or fixed is read. With --rebuild nothing is read: the warehouse is made again from the
    record. A machine that fails does not stop the others; then the exit code is not 0.
    """
    from perf_assets.storage.quarantine import quarantine_strays
    from perf_assets.workflows.fleet import open_warehouse
    from perf_assets.workflows.landing.ingest import needs_work

    lake = Lake.default()
    if rebuild:
        counts = open_warehouse(lake).rebuild()
        print_rows({"rows": counts}, "Warehouse rebuilt", ["table", "rows"], list(counts.items()), as_json=as_json)
        return
    for line in quarantine_strays(lake):
        say(f"quarantined {line}")
    machines = choose_machines(lake, chosen)
    warehouse = open_warehouse(lake)
    todo = [machine for machine in machines if reread or needs_work(lake, warehouse, machine)]
    outcomes = ingest_with_progress(todo, reread=reread)
    report(lake, machines, outcomes, as_json=as_json)


def ingest_with_progress(
    machines: list[str], *, reread: bool = False, describes: bool = True
) -> list["MachineOutcome"]:
    """Materialise the assets of machines, showing progress."""
    if not machines:
        return []
    from rich.console import Console
    from rich.progress import Progress

    from perf_assets.defs.operate.launch import ingest_machines

    outcomes = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("ingesting", total=len(machines))

        def show(machine: str) -> None:
            progress.update(task, description=machine)

        for outcome in ingest_machines(machines, show, reread=reread, describes=describes):
            outcomes.append(outcome)
            progress.advance(task)
    return outcomes


def report(lake: Lake, machines: list[str], outcomes: list["MachineOutcome"], *, as_json: bool) -> None:
    """Print what each machine has in the warehouse, how long ingestion took, and what failed; exit if any did."""
    seconds = {outcome.machine: outcome.seconds for outcome in outcomes}
    failed = [outcome for outcome in outcomes if outcome.failure]
    columns = ["machine", "bundles", "timings", "runs", "counters", "configurations", "quarantined", "seconds"]
    rows = [(*counts, round(seconds.get(counts[0], 0.0), 1)) for counts in _counts(lake) if counts[0] in machines]
    machine_rows = [dict(zip(columns, row, strict=True)) for row in rows]
    document = {"machines": machine_rows, "failures": {outcome.machine: outcome.failure for outcome in failed}}
    print_rows(document, "Ingested", columns, rows, as_json=as_json)
    for outcome in failed:
        say(f"perf-assets: ingestion of {outcome.machine} failed: {outcome.failure}")
    if failed:
        sys.exit(2 if all(outcome.is_bad_input for outcome in failed) else 1)


def _counts(lake: Lake) -> list[tuple[str, int, int, int, int, int, int]]:
    """Machine, bundles, timings, runs, counters, configurations and quarantined bundles."""
    from perf_assets.workflows.fleet import open_warehouse

    with open_warehouse(lake).read() as connection:
        return connection.execute(
            """
            SELECT machine, count(*) FILTER (status = 'ingested'),
                   (SELECT count(*) FROM raw_rajaperf__timings AS t WHERE t.machine = b.machine),
                   (SELECT count(*) FROM raw_profiles__runs AS t WHERE t.machine = b.machine),
                   (SELECT count(*) FROM raw_profiles__counters AS t WHERE t.machine = b.machine),
                   (SELECT count(*) FROM core_runs__features AS t WHERE t.machine = b.machine),
                   count(*) FILTER (status NOT IN ('duplicate', 'withdrawn') AND reason IS NOT NULL)
            FROM raw_landing__bundles AS b GROUP BY machine ORDER BY machine
            """
        ).fetchall()
