"""Independent pieces of work on the same samples, in as many processes as the budget of threads allows."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from perf_assets.models.threads import VARIABLE, thread_budget

Data = TypeVar("Data")
Work = TypeVar("Work")
Result = TypeVar("Result")

_samples: Any = None
"""Of a worker process: what it was started with."""


def side_by_side(
    do: Callable[[Data, Work], Result], samples: Data, pieces: Sequence[Work]
) -> Iterator[tuple[Work, Result]]:
    """Each piece with its result, as they get done.

    Models as small as ours gain little from a second thread, so a budget of two threads is two processes of one.
    `do` is a function of a module: workers import it.
    """
    processes = min(thread_budget(), len(pieces))
    if processes <= 1:
        with threadpool_limits(1):
            yield from ((piece, do(samples, piece)) for piece in pieces)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(samples,)) as pool:
        waiting: dict[Future[Result], Work] = {pool.submit(_run, do, piece): piece for piece in pieces}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start(samples: Any) -> None:
    global _samples
    _samples = samples
    os.environ[VARIABLE] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers: they watch it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(do: Callable[[Any, Work], Result], piece: Work) -> Result:
    assert _samples is not None, "workers start with samples"
    with threadpool_limits(1):
        return do(_samples, piece)
