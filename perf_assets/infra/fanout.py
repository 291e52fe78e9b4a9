"""Independent tasks on the same data: in this process, in several processes, or on a Dask cluster, as the profile says.

The one way in which work is fanned out. Results are the same wherever a task runs: it gets its data, its seeds and one
thread. They come as tasks end: a caller that stores each as it comes, and asks only for what is not stored yet, goes on
where it was interrupted.
"""

import multiprocessing
import os
import reprlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from perf_assets.core.errors import ClusterError
from perf_assets.infra.profile import DaskProfile, current_profile
from perf_assets.infra.threads import is_task, thread_budget

Data = TypeVar("Data")
Work = TypeVar("Work")
Result = TypeVar("Result")

_TRIES = 4
"""Tries of a task: the same number as on Dask with the retries of the shipped profile."""
_samples: Any = None
"""Samples that a worker process was started with."""
_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = 200


def side_by_side(
    do: Callable[[Data, Work], Result], samples: Data, pieces: Sequence[Work]
) -> Iterator[tuple[Work, Result]]:
    """Each piece with its result, as they get done.

    Models as small as ours gain little from a second thread, so a budget of two threads is two processes of one.
    `do` is a function of a module: workers import it. Samples, pieces and results travel between processes: samples
    once, pieces few at a time. An error of `do` is raised with a note that names its piece.
    """
    profile = current_profile()
    if isinstance(profile, DaskProfile) and not is_task.get():
        from perf_assets.infra.on_dask import on_dask

        yield from on_dask(profile, do, samples, pieces)
    elif (processes := min(thread_budget(), len(pieces))) > 1 and not is_task.get():
        yield from _in_processes(processes, do, samples, pieces)
    else:
        for piece in pieces:
            with naming(piece):
                result = run_task(do, samples, piece)
            yield piece, result


def run_task(do: Callable[[Data, Work], Result], samples: Data, piece: Work) -> Result:
    """One task, with one thread."""
    token = is_task.set(True)
    try:
        with threadpool_limits(1):
            return do(samples, piece)
    finally:
        is_task.reset(token)


def shown(piece: object) -> str:
    """A piece in a line that people read."""
    return _repr.repr(piece)


@contextmanager
def naming(piece: object) -> Iterator[None]:
    """Errors in here get a note of the piece they concern."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while doing {shown(piece)}")
        raise


def _in_processes(
    processes: int, do: Callable[[Data, Work], Result], samples: Data, pieces: Sequence[Work]
) -> Iterator[tuple[Work, Result]]:
    """A process that is killed takes the whole pool with it: what is not done then is done by new processes."""
    left = dict(enumerate(pieces))
    for tries_left in reversed(range(_TRIES)):
        try:
            for position, result in _in_pool(processes, do, samples, left):
                yield left.pop(position), result
            return
        except BrokenProcessPool:
            if not tries_left:
                raise ClusterError(
                    f"processes died {_TRIES} times, last while {shown(next(iter(left.values())))} was to be done: "
                    "give this machine more memory, or fewer threads (PERF_ASSETS_THREADS), and go on"
                ) from None


def _in_pool(
    processes: int, do: Callable[[Data, Work], Result], samples: Data, pieces: Mapping[int, Work]
) -> Iterator[tuple[int, Result]]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(samples,)) as pool:
        waiting: dict[Future[Result], int] = {}
        try:
            waiting = {pool.submit(_run, do, piece): position for position, piece in pieces.items()}
            for future in as_completed(waiting):
                with naming(pieces[waiting[future]]):
                    result = future.result()
                yield waiting[future], result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start(samples: Any) -> None:
    global _samples
    _samples = samples
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers: they watch it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(do: Callable[[Any, Work], Result], piece: Work) -> Result:
    assert _samples is not None, "workers start with samples"
    return run_task(do, _samples, piece)
