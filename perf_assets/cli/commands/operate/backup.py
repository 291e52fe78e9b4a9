"""`perf-assets backup`."""

import time
from pathlib import Path

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, say
from perf_assets.core.errors import BusyError, listed
from perf_assets.core.paths import check_dagster_home, database_of
from perf_assets.storage.lake import Lake

_POLL_SECONDS = 1.0


@click.command()
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.option(
    "--wait",
    type=click.IntRange(0),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for Dagster's runs that are at work.",
)
@json_option
def command(out: Path, wait: int, as_json: bool) -> None:
    """Save lake, registered models and Dagster's state in a new folder OUT, while services run.

    Waits for runs that are at work, and holds up ingestion and adaptation while their tables are copied. OUT appears as
    a whole; 'perf-assets restore OUT DIR' makes a home of it, on this machine or another.
    """
    from perf_assets.workflows.operate.backup import back_up

    home = check_dagster_home()
    _wait_for_runs(home, wait)
    contents = back_up(Lake.default(), home, out.absolute(), say)
    if as_json:
        print_json({"folder": str(out.absolute()), "files": len(contents.files), "bytes": contents.bytes})
    else:
        click.echo(f"{out}: {len(contents.files):,} files, {contents.bytes / 1e9:.2f} GB")
    if contents.state["mlflow"] == "elsewhere":
        say("MLflow's store is not of this lake (MLFLOW_TRACKING_URI): its models are NOT in this backup")


def _wait_for_runs(home: Path, seconds: int) -> None:
    """Wait until all runs have ended: the results of a run are in several places, which must be copied together."""
    if database_of(home) is None and not (home / "history").is_dir():
        return
    from perf_assets.defs.operate.dead_runs import runs_at_work
    from perf_assets.defs.operate.launch import open_instance

    deadline, was_told = time.monotonic() + seconds, False
    with open_instance() as instance:
        while at_work := [run[:8] for run in runs_at_work(instance)]:
            if time.monotonic() >= deadline:
                raise BusyError(f"runs are at work ({listed(at_work)}): wait for them (--wait), or stop them")
            if not was_told:
                say(f"waiting for runs that are at work: {listed(at_work)}")
                was_told = True
            time.sleep(_POLL_SECONDS)
