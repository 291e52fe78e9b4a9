"""Jobs that wait, in the order in which a policy looks at them."""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled


class Queue(NamedTuple):
    """Jobs in the order of a key; of equal keys, the one that came first."""

    job: Integers
    key: Floats
    size: Integers
    """One number."""


@compiled
def new_queue(capacity: int) -> Queue:
    """An empty queue."""
    return Queue(np.empty(capacity, np.int64), np.empty(capacity), np.zeros(1, np.int64))


@compiled
def enqueue(queue: Queue, job: int, key: float) -> None:
    """A job comes; after those with the same key."""
    place = queue.size[0]
    while place > 0 and queue.key[place - 1] > key:
        queue.job[place], queue.key[place] = queue.job[place - 1], queue.key[place - 1]
        place -= 1
    queue.job[place], queue.key[place] = job, key
    queue.size[0] += 1


@compiled
def drop_started(queue: Queue, start: Floats) -> None:
    """Jobs that have a start time wait no longer."""
    kept = 0
    for place in range(queue.size[0]):
        if np.isnan(start[queue.job[place]]):
            queue.job[kept], queue.key[kept] = queue.job[place], queue.key[place]
            kept += 1
    queue.size[0] = kept
