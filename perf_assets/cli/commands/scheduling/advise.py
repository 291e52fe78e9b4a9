"""`perf-assets advise`."""

import click

from perf_assets.cli.support.lake import check_machines
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say


@click.command()
@click.option("--app", required=True, metavar="NAME", help="Application.")
@click.option("--args", metavar="TEXT", help="Its arguments; needed where it ran with several.")
@click.option("--nodes", type=click.IntRange(1), help="Width that you would ask for; else the fastest one.")
@click.option("--machines", metavar="M,...", help="Machines to choose from; else all that have a model.")
@click.option("--kill-rate", type=float, default=0.05, show_default=True, help="Share of jobs that may hit the limit.")
@click.option("--tolerance", type=float, default=0.1, show_default=True, help="Slower is tolerable on fewer nodes.")
@json_option
def command(
    app: str,
    args: str | None,
    nodes: int | None,
    machines: str | None,
    kill_rate: float,
    tolerance: float,
    as_json: bool,
) -> None:
    """Wall-time limit, number of nodes and machine for one job.

    Configurations of the application that ran on some machine of the lake are predicted for every machine, or taken as
    measured there. On each machine the fewest nodes are advised whose predicted time is tolerable, and the machine
    where that is fastest; how long jobs wait there is not known. Limits are whole minutes.
    """
    names = [] if machines is None else [name.strip() for name in machines.split(",")]
    check_machines(names)
    from perf_assets.api import open_lake

    jobs = open_lake().advise(app, args, nodes=nodes, machines=names, kill_rate=kill_rate, tolerance=tolerance)
    if as_json:
        print_json({"kill_rate": kill_rate, "tolerance": tolerance, "jobs": jobs.to_dicts()})
        return
    print_table(
        f"{jobs[0].app} {jobs[0].args}: limits that {kill_rate:.1%} of jobs exceed",
        ["", "machine", "nodes", "ranks", "threads", "predicted s", "limit min", "node-hours", "answered by"],
        [
            (
                "advised" if job.is_advised else "width" if job.is_advised_width else "",
                job.machine,
                "" if job.nodes is None else job.nodes,
                job.ranks,
                job.threads,
                job.predicted_seconds,
                "" if job.limit_seconds is None else int(job.limit_seconds / 60),
                "" if job.node_hours is None else job.node_hours,
                job.model,
            )
            for job in jobs
        ],
    )
    for warning in dict.fromkeys(warning for job in jobs if job.is_advised for warning in job.warnings):
        say(warning)
