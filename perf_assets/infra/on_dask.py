"""Tasks on a Dask cluster: few at a time, tried again where their worker died."""

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

import dask
from distributed import Client, Future, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from perf_assets.core.errors import ClusterError
from perf_assets.infra.clusters import dask_client
from perf_assets.infra.fanout import naming, run_task, shown
from perf_assets.infra.profile import DaskProfile

Data = TypeVar("Data")
Work = TypeVar("Work")
Result = TypeVar("Result")

_GONE = (CancelledError, CommClosedError)
"""Errors of futures and calls when the scheduler is lost."""
_LOOK_SECONDS = 5.0
"""Seconds between checks whether there are workers at all, while no task ends."""


def on_dask(
    profile: DaskProfile, do: Callable[[Data, Work], Result], samples: Data, pieces: Sequence[Work]
) -> Iterator[tuple[Work, Result]]:
    """Each piece with its result, as they get done; the submitted ones are cancelled when the caller stops asking."""
    with dask_client(profile) as client:
        batch, todo = uuid4().hex, iter(enumerate(pieces))
        waiting: dict[Future, Work] = {}
        shared = _shared(client, samples, batch)

        def submit() -> None:
            room = profile.tasks_per_worker * max(1, _threads(client)) - len(waiting)
            for number, piece in islice(todo, max(0, room)):
                key = f"{do.__name__}-{batch}-{number}"
                waiting[client.submit(run_task, do, shared, piece, key=key)] = piece

        try:
            submit()
            while waiting:
                for future in _done(client, list(waiting), profile.start_seconds):
                    piece = waiting[future]
                    result = _result(future, piece, profile.retries)
                    del waiting[future]
                    submit()
                    yield piece, result
        except _GONE:
            raise ClusterError("the Dask scheduler is gone: start it and run this again") from None
        finally:
            with suppress(*_GONE):
                client.cancel([*waiting, shared])


def _shared(client: Client, samples: Data, batch: str) -> Future:
    """The samples as a task of their own: workers hand them on to each other, and the scheduler can make them again
    when the last worker that had them is gone, which it cannot with scattered data.
    """
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return client.submit(pickle.loads, pickle.dumps(samples, pickle.HIGHEST_PROTOCOL), key=f"samples-{batch}")


def _threads(client: Client) -> int:
    return sum(client.nthreads().values())


def _done(client: Client, waiting: list[Future], patience_seconds: float) -> list[Future]:
    """Tasks that ended, at least one."""
    seen_worker = time.monotonic()
    while True:
        try:
            ended = wait(waiting, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED").done
            return [future for future in waiting if future in ended]
        except TimeoutError:
            if _threads(client):
                seen_worker = time.monotonic()
            elif time.monotonic() - seen_worker > patience_seconds:
                raise ClusterError(f"all Dask workers are gone for {patience_seconds:g} s: run this again") from None


def _result(future: Future, piece: object, retries: int) -> Any:
    with naming(piece):
        try:
            return future.result()
        except KilledWorker:
            raise ClusterError(
                f"workers died {retries + 1} times while doing {shown(piece)}: give them more memory in the profile, "
                "and look at their logs"
            ) from None
