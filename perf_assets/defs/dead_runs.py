"""Runs whose process is gone: without this they would look alive for ever, and hold their machine and their pool."""

import os
import socket
from collections.abc import Iterator

import dagster as dg
import psutil
from dagster._core.storage.runs import SqliteRunStorage

PROCESS_TAG = "perf_assets/process"
"""Of a run that a command executes in its own process."""


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Mark runs of killed processes as failed, and free what they held; their ids."""
    alive = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    ended = []
    for run in instance.get_runs(alive):
        process = run.tags.get(PROCESS_TAG) or _worker(instance, run.run_id)
        if process is not None and not _is_alive(process):
            instance.report_run_failed(run, f"its process ({process}) died: what it had done is kept, start it again")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            ended.append(run.run_id)
    return ended


def process_name(pid: int) -> str:
    """Host, process and start time: process ids come again, these do not."""
    return f"{socket.gethostname()}:{pid}:{psutil.Process(pid).create_time():.2f}"


def _worker(instance: dg.DagsterInstance, run_id: str) -> str | None:
    """The process that the daemon started for a run, as it was then; None where that cannot be known here."""
    if not isinstance(instance.run_storage, SqliteRunStorage):
        # A database that several hosts share: the process may be on another.
        return None
    for pid, started in _engine_events(instance, run_id):
        if not psutil.pid_exists(pid):
            return f"{socket.gethostname()}:{pid}:0"
        begun = psutil.Process(pid).create_time()
        # A process that began after the run is another one with the same number.
        return process_name(pid) if begun <= started else f"{socket.gethostname()}:{pid}:0"
    return None


def _engine_events(instance: dg.DagsterInstance, run_id: str) -> Iterator[tuple[int, float]]:
    """Process and time of the event that tells of the start of a run's process."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        data = entry.dagster_event.engine_event_data if entry.dagster_event else None
        if data is not None and "pid" in data.metadata:
            yield int(str(data.metadata["pid"].value)), entry.timestamp


def _is_alive(process: str) -> bool:
    host, pid, _ = process.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        return process_name(int(pid)) == process
    except psutil.NoSuchProcess:
        return False


def own_process() -> str:
    """Name of the process that asks."""
    return process_name(os.getpid())
