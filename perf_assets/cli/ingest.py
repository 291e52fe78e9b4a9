"""`perf-assets ingest`."""

import click

from perf_assets.cli.lake import choose_machines, open_warehouse
from perf_assets.cli.options import json_option, machine_option
from perf_assets.cli.output import print_json, print_table, say
from perf_assets.storage.ingest import pending
from perf_assets.storage.lake import Lake
from perf_assets.storage.quarantine import quarantine_strays
from perf_assets.storage.warehouse import Warehouse


@click.command()
@machine_option
@click.option("--rebuild", is_flag=True, help="Make the warehouse anew from the record alone.")
@json_option
def command(chosen: tuple[str, ...], rebuild: bool, as_json: bool) -> None:
    """Read what landed into the record and the warehouse, through Dagster.

    Only what is new or was refused before is read. With --rebuild nothing is read: the warehouse is made again
    from the record.
    """
    lake = Lake.default()
    if rebuild:
        counts = open_warehouse(lake).rebuild()
        if as_json:
            print_json({"rows": counts})
        else:
            print_table("Warehouse rebuilt", ["table", "rows"], list(counts.items()))
        return
    for line in quarantine_strays(lake):
        say(f"quarantined {line}")
    machines = choose_machines(lake, chosen)
    warehouse = open_warehouse(lake)
    outcomes = ingest_with_progress([machine for machine in machines if _needs_work(lake, warehouse, machine)])
    report(lake, machines, outcomes, as_json=as_json)


def ingest_with_progress(machines: list[str]) -> dict[str, float]:
    """Materialise the raw assets of machines, showing progress; seconds by machine."""
    if not machines:
        return {}
    from rich.console import Console
    from rich.progress import Progress

    from perf_assets.defs.runs import ingest_machines

    seconds = {}
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("ingesting", total=len(machines))
        for outcome in ingest_machines(machines, lambda machine: progress.update(task, description=machine)):
            seconds[outcome.machine] = outcome.seconds
            progress.advance(task)
    return seconds


def report(lake: Lake, machines: list[str], seconds: dict[str, float], *, as_json: bool) -> None:
    """Print what each machine has in the warehouse, and how long ingestion took."""
    columns = ["machine", "bundles", "timings", "runs", "counters", "configurations", "quarantined", "seconds"]
    rows = [(*counts, round(seconds.get(counts[0], 0.0), 1)) for counts in _counts(lake) if counts[0] in machines]
    if as_json:
        print_json({"machines": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        print_table("Ingested", columns, rows)


def _counts(lake: Lake) -> list[tuple[str, int, int, int, int, int, int]]:
    """Machine, bundles, timings, runs, counters, configurations and quarantined bundles."""
    with open_warehouse(lake).read() as connection:
        return connection.execute(
            """
            SELECT machine, count(*) FILTER (status = 'ingested'),
                   (SELECT count(*) FROM raw_rajaperf__timings AS t WHERE t.machine = b.machine),
                   (SELECT count(*) FROM raw_profiles__runs AS t WHERE t.machine = b.machine),
                   (SELECT count(*) FROM raw_profiles__counters AS t WHERE t.machine = b.machine),
                   (SELECT count(*) FROM core_runs__features AS t WHERE t.machine = b.machine),
                   count(*) FILTER (status = 'quarantined')
            FROM raw_landing__bundles AS b GROUP BY machine ORDER BY machine
            """
        ).fetchall()


def _needs_work(lake: Lake, warehouse: Warehouse, machine: str) -> bool:
    return bool(pending(lake, machine).bundles) or warehouse.is_behind(machine)
