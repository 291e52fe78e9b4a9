"""`perf-assets shadow`."""

from pathlib import Path

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say


@click.command()
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the machine; as the log says where not given.")
@click.option("--since", metavar="DATE", help="Only jobs from this day on, such as 2019-01-31.")
@click.option("--zone", metavar="NAME", help="Time zone of local times, such as America/Denver.")
@click.option("--replays", type=click.IntRange(1, 1000), default=5, show_default=True, help="Shaken replays.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page here.")
@json_option
def command(
    log: Path, nodes: int | None, since: str | None, zone: str | None, replays: int, page: Path | None, as_json: bool
) -> None:
    """Replay the LOG of a centre as it was, then with predictions, and say what would have been saved.

    Predictions are user statistics: what jobs like this one took that had ended before. LOG is as for 'simulate'. What
    is assumed is printed with the result.
    """
    from perf_assets.infra.files import write_bytes
    from perf_assets.scheduling.traces.read import read_trace
    from perf_assets.workflows.scheduling.shadow import ASSUMED, shadow

    trace = read_trace(log, zone)
    found = shadow(trace.window(f"{since}..") if since is not None else trace, nodes, replays)
    if page is not None:
        write_bytes(page, found.page().encode())
        say(f"wrote {page}")
    if as_json:
        print_json(found.to_dict())
        return
    for reason, count in found.skipped.items():
        say(f"left out: {count:,} {reason}")
    for note in found.notes:
        say(note)
    heads = [
        "scheduled",
        "wait/job h",
        "bounded slowdown",
        "saved waiting h",
        "from",
        "to",
        "saved node-hours",
        "late",
    ]
    rows = [
        [
            one.plan,
            f"{one.wait_hours_per_job:.2f}",
            one.bounded_slowdown,
            *(round(value) for value in (*vars(one.saved_wait_hours).values(), one.saved_node_hours.mean)),
            f"{one.late_share:.1%}",
        ]
        for one in found.savings
    ]
    print_table(f"{found.trace}: {found.jobs:,} jobs on {found.nodes:,} nodes, load {found.load:.2f}", heads, rows)
    for sentence in ASSUMED:
        say(sentence)
