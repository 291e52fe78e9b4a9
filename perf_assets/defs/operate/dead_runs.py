"""Runs whose process is gone: without this they would look alive for ever, and hold their machine and their pool."""

import math
import os
import socket
import time
from pathlib import Path

import dagster as dg
import psutil

from perf_assets.core.errors import listed
from perf_assets.core.paths import database_of

PROCESS_TAG = ".dagster/perf_assets_process"
"""Tag of a run that a command executes in its own process: host, process, and when that began.

Dagster's page does not show tags that begin like this.
"""
_LAUNCHER = "perf_assets/launcher"
"""Key in a database that several hosts share: the host whose daemon launches runs, and since when."""
_CLOCK_SECONDS = 10.0
"""A clock that is set may move the beginning of a process by this much."""


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Mark runs of killed processes as failed, and free what they held; their ids."""
    alive = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    ended = []
    for run in instance.get_runs(alive):
        process = _process_of(instance, run)
        if process is not None and not _is_alive(*process):
            _end(instance, run, f"its process ({process[0]}) died: what it had done is kept, start it again")
            ended.append(run.run_id)
    return ended


def end_saved_runs(home: Path) -> None:
    """Mark runs that were at work when a backup was taken as failed: nobody executes them in the home made of it."""
    alive = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    with dg.DagsterInstance.from_config(str(home)) as instance:
        for run in instance.get_runs(alive):
            _end(instance, run, "it was at work when this was saved: what it had done is kept, start it again")


def _end(instance: dg.DagsterInstance, run: dg.DagsterRun, reason: str) -> None:
    instance.report_run_failed(run, reason)
    instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def runs_at_work(instance: dg.DagsterInstance) -> list[str]:
    """Ids of runs that some process executes at this moment."""
    end_dead_runs(instance)
    alive = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    return [run.run_id for run in instance.get_runs(alive)]


def own_process() -> str:
    """Value of the tag for the process that asks."""
    return f"{socket.gethostname()}:{os.getpid()}:{psutil.Process().create_time():.2f}"


def _process_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[int, float] | None:
    """Number and latest beginning of the process of a run on this machine; None where it cannot be known here."""
    tag = run.tags.get(PROCESS_TAG)
    # A run that is executed again has the tag of the run before it.
    if tag is not None and run.parent_run_id is None:
        host, pid, begun = tag.rsplit(":", 2)
        return (int(pid), float(begun)) if host == socket.gethostname() else None
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        data = entry.dagster_event.engine_event_data if entry.dagster_event else None
        if data is not None and "pid" in data.metadata and entry.timestamp >= _launching_since(instance):
            return int(str(data.metadata["pid"].value)), entry.timestamp
    return None


def note_launcher(instance: dg.DagsterInstance) -> str | None:
    """Remember that this host launches runs from now on, so that it can tell which of them have died.

    Gives one line where another host did so before, and left runs of unknown state.
    """
    if _launching_since(instance) != math.inf:
        return None
    before, _ = _launcher(instance)
    instance.run_storage.set_cursor_values({_LAUNCHER: f"{socket.gethostname()}:{time.time()}"})
    left = [run[:8] for run in runs_at_work(instance)]
    if not before or not left:
        return None
    return f"runs {listed(left)} were begun while {before} launched runs: if it is down, end them on the Dagster page"


def _launcher(instance: dg.DagsterInstance) -> tuple[str, str]:
    host, _, since = instance.run_storage.get_cursor_values({_LAUNCHER}).get(_LAUNCHER, "").rpartition(":")
    return host, since


def _launching_since(instance: dg.DagsterInstance) -> float:
    """Time from which on all runs were launched on this host: never, where another host launches them."""
    if database_of(Path(instance.root_directory)) is None:
        return 0.0
    host, since = _launcher(instance)
    return float(since) if host == socket.gethostname() else math.inf


def _is_alive(pid: int, begun_by: float) -> bool:
    """Whether a process is there; one that began later is another with the same number."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= begun_by + _CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return False
