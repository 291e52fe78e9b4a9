"""The Dask cluster of a profile: how it is started, and the client through which tasks reach it."""

import atexit
import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import dask
from distributed import Client, LocalCluster, worker_client
from distributed.worker import get_worker

from perf_assets.core.errors import ClusterError
from perf_assets.infra.profile import DaskProfile, ExistingCluster
from perf_assets.infra.profile import LocalCluster as LocalSettings
from perf_assets.infra.profile import SlurmCluster as SlurmSettings

# Dask lets workers return freed memory to the system at once. Every array is then made of new pages, which costs more
# time than our tasks have to spare; without it a worker keeps memory as any process does.
dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None})

_open: dict[DaskProfile, tuple[Client, Any]] = {}
"""Client and cluster that this process started, by profile."""


def dask_arguments(profile: DaskProfile) -> tuple[str, dict[str, Any]]:
    """Kind of cluster and its arguments, as Dask's classes and dagster-dask take them."""
    cluster = profile.cluster
    if cluster.local is not None:
        return "local", _local(cluster.local, profile.retries)
    if cluster.slurm is not None:
        return "slurm", _slurm(cluster.slurm, profile.retries)
    assert cluster.existing is not None
    return "existing", {"address": cluster.existing.address}


def _local(settings: LocalSettings, retries: int) -> dict[str, Any]:
    return {
        "n_workers": settings.workers,
        "threads_per_worker": 1,
        "memory_limit": settings.memory_per_worker,
        "host": "127.0.0.1",
        "dashboard_address": settings.dashboard,
        "scheduler_kwargs": {"allowed_failures": retries},
    }


def _slurm(settings: SlurmSettings, retries: int) -> dict[str, Any]:
    """`processes` is as `cores`, so that a worker has one thread."""
    scheduler: dict[str, Any] = {"allowed_failures": retries, "dashboard_address": "127.0.0.1:0"}
    arguments: dict[str, Any] = {
        "queue": settings.queue,
        "n_workers": settings.jobs * settings.cores,
        "cores": settings.cores,
        "processes": settings.cores,
        "memory": settings.memory,
        "walltime": settings.walltime,
        "security": True,
        "protocol": "tls",
        "shared_temp_directory": settings.shared_directory,
        "job_extra_directives": list(settings.directives),
        "job_script_prologue": list(settings.prologue),
        "scheduler_options": scheduler,
    }
    optional = {
        "account": settings.account,
        "interface": settings.interface,
        "log_directory": settings.log_directory,
    }
    return arguments | {name: value for name, value in optional.items() if value is not None}


@contextmanager
def dask_client(profile: DaskProfile) -> Iterator[Client]:
    """A client with at least one worker: of the cluster that this process is a worker of, or of one it keeps open."""
    if _is_worker():
        with worker_client() as client:
            yield client
        return
    if profile not in _open or _open[profile][0].status != "running":
        _open[profile] = _started(profile)
    client, _ = _open[profile]
    try:
        client.wait_for_workers(1, timeout=profile.start_seconds)
    except TimeoutError:
        raise ClusterError(
            f"no Dask worker came within {profile.start_seconds:g} s: look at the queue, or raise start_seconds"
        ) from None
    yield client


def close_clusters() -> None:
    """Stop what this process started, Slurm jobs included."""
    # A worker that is slow to leave is killed after 4 s: no news for people.
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    while _open:
        client, cluster = _open.popitem()[1]
        with suppress(TimeoutError, OSError):
            client.close()
        if cluster is not None:
            with suppress(TimeoutError, OSError):
                cluster.close()


def _is_worker() -> bool:
    try:
        get_worker()
    except ValueError:
        return False
    return True


def _started(profile: DaskProfile) -> tuple[Client, Any]:
    atexit.register(close_clusters)
    kind, arguments = dask_arguments(profile)
    if kind == "existing":
        assert profile.cluster.existing is not None
        return _connected(profile.cluster.existing), None
    cluster = LocalCluster(**arguments) if kind == "local" else _submitted(arguments)
    return Client(cluster), cluster


def _submitted(arguments: dict[str, Any]) -> Any:
    """Check with Slurm before jobs are submitted in the background, where a refusal is only a line in a log."""
    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(name="perf_assets", **arguments | {"n_workers": 0})
    try:
        subprocess.run(
            ["sbatch", "--test-only"], input=cluster.job_script(), capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        cluster.close()
        raise ClusterError(f"Slurm refuses jobs of workers: {getattr(error, 'stderr', None) or error}") from None
    cluster.scale(arguments["n_workers"])
    return cluster


def _connected(existing: ExistingCluster) -> Client:
    try:
        return Client(existing.address, timeout=existing.connect_seconds)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {existing.address}: {error}") from None
