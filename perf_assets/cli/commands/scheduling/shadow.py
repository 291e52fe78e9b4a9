"""`perf-assets shadow`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say

if TYPE_CHECKING:
    from perf_assets.scheduling.other_ways import ModelledJobs
    from perf_assets.scheduling.traces.trace import Trace


@click.command()
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the machine; as the log says where not given.")
@click.option("--since", metavar="DATE", help="Only jobs from this day on, such as 2019-01-31.")
@click.option("--zone", metavar="NAME", help="Time zone of local times, such as America/Denver.")
@click.option("--replays", type=click.IntRange(1, 1000), default=5, show_default=True, help="Shaken replays.")
@click.option("--machine", metavar="M", help="Machine of the lake that the log is of: its models are asked.")
@click.option("--machines", metavar="M=N,...", help="Other machines, with nodes, that jobs could have run on.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page here.")
@json_option
def command(
    log: Path,
    nodes: int | None,
    since: str | None,
    zone: str | None,
    replays: int,
    machine: str | None,
    machines: str | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Replay the LOG of a centre as it was, then with predictions, and say what would have been saved.

    Predictions are user statistics: what jobs like this one took that had ended before. With --machine, jobs whose
    application has models there may also run on fewer nodes or on other --machines. LOG is as for 'simulate'. What is
    assumed is printed with the result.
    """
    from perf_assets.core.errors import BadInputError
    from perf_assets.infra.files import write_bytes
    from perf_assets.scheduling.traces.read import read_trace
    from perf_assets.workflows.scheduling.shadow import machine_nodes, shadow, shown_range

    trace = read_trace(log, zone)
    trace = trace.window(f"{since}..") if since is not None else trace
    if machines is not None and machine is None:
        raise BadInputError("--machines goes with --machine: say which machine of the lake the log is of")
    models = None if machine is None else _models(trace, machine, machine_nodes(trace, nodes), machines)
    replay = shadow(trace, nodes, replays, models)
    if page is not None:
        write_bytes(page, replay.page().encode())
        say(f"wrote {page}")
    if as_json:
        print_json(replay.to_dict())
        return
    for reason, count in replay.skipped.items():
        say(f"left out: {count:,} {reason}")
    for note in replay.notes:
        say(note)
    heads = ["scheduled", "wait/job h", "slowdown", "saved waiting h", "and running h", "saved node-hours", "late"]
    rows = [
        [
            one.plan,
            f"{one.wait_hours_per_job:.2f}",
            f"{one.bounded_slowdown:.1f}",
            *map(shown_range, (one.saved_wait_hours, one.saved_turnaround_hours, one.saved_node_hours)),
            f"{one.late_share:.1%}",
        ]
        for one in replay.savings
    ]
    print_table(f"{replay.trace}: {replay.jobs:,} jobs on {replay.nodes:,} nodes, load {replay.load:.2f}", heads, rows)
    for sentence in (*replay.models, *replay.assumed):
        say(sentence)


def _models(trace: "Trace", machine: str, nodes: int, others: str | None) -> "ModelledJobs":
    from perf_assets.cli.support.job_models import modelled
    from perf_assets.cli.support.options import machine_sizes
    from perf_assets.scheduling.simulate import Machine
    from perf_assets.serving.predictor import Predictor
    from perf_assets.storage.lake import Lake

    sizes = {} if others is None else machine_sizes(others)
    return modelled(Predictor(Lake.default()), trace, machine, nodes, [Machine(*one) for one in sizes.items()])
