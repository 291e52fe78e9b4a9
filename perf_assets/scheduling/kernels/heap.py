"""Jobs by the time at which they end: a binary heap in arrays."""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled


class Heap(NamedTuple):
    """Earliest time first; of equal times, the job that was submitted first."""

    time: Floats
    job: Integers
    size: Integers
    """One number."""


@compiled
def new_heap(capacity: int) -> Heap:
    """An empty heap."""
    return Heap(np.empty(capacity), np.empty(capacity, np.int64), np.zeros(1, np.int64))


@compiled
def push(heap: Heap, time: float, job: int) -> None:
    """Add a job."""
    place = heap.size[0]
    heap.size[0] += 1
    while place > 0:
        parent = (place - 1) // 2
        if heap.time[parent] < time or (heap.time[parent] == time and heap.job[parent] < job):
            break
        heap.time[place], heap.job[place] = heap.time[parent], heap.job[parent]
        place = parent
    heap.time[place], heap.job[place] = time, job


@compiled
def pop(heap: Heap) -> int:
    """Take the earliest job out."""
    first = heap.job[0]
    heap.size[0] -= 1
    count = heap.size[0]
    time, job = heap.time[count], heap.job[count]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        other = child + 1
        if other < count and _before(heap, other, child):
            child = other
        if time < heap.time[child] or (time == heap.time[child] and job < heap.job[child]):
            break
        heap.time[place], heap.job[place] = heap.time[child], heap.job[child]
        place = child
    heap.time[place], heap.job[place] = time, job
    return int(first)


@compiled
def _before(heap: Heap, one: int, other: int) -> bool:
    return bool(
        heap.time[one] < heap.time[other] or (heap.time[one] == heap.time[other] and heap.job[one] < heap.job[other])
    )
