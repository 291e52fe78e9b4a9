"""`perf-assets environments`."""

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

_NEWEST = "newest"


@click.command()
@click.argument("machine", required=False)
@click.option(
    "--default",
    "chosen",
    metavar="ENVIRONMENT",
    help=f"Let this one count on MACHINE: parts of its line, its digest, 'unknown', or '{_NEWEST}' to choose none.",
)
@json_option
def command(machine: str | None, chosen: str | None, as_json: bool) -> None:
    """List the software that runs were made with, by machine and application, and which of it counts."""
    from perf_assets.workflows.machines.environments import choose_environment, listed_environments

    lake = Lake.default()
    machines = choose_machines(lake, (machine,) if machine else ())
    if chosen is not None:
        if machine is None:
            raise BadInputError("--default is for one machine: name it")
        choose_environment(lake, machine, None if chosen == _NEWEST else chosen)
    rows = listed_environments(lake, machines)
    if as_json:
        print_json({"environments": rows})
        return
    columns = ["machine", "app", "environment", "digest", "runs", "configurations", "newest", "counts"]
    print_table("Software of the runs", columns, [[str(row[column]) for column in columns] for row in rows])
    if chosen is not None:
        say(f"Next: 'perf-assets train' where RAJAPerf's changed, 'perf-assets adapt --machine {machine}'.")
