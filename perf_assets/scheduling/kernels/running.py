"""Running jobs of each machine, by the time at which the scheduler expects them to end."""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled


class Running(NamedTuple):
    """Machines x places; the jobs of a machine stand in the order of their expected ends."""

    expected: Floats
    job: Integers
    nodes: Integers
    """Nodes of the job."""
    size: Integers
    """Running jobs of each machine."""
    free: Integers
    """Free nodes of each machine."""


@compiled
def new_running(machine_nodes: Integers) -> Running:
    """No running jobs."""
    shape = (len(machine_nodes), machine_nodes.max())
    return Running(
        np.empty(shape),
        np.empty(shape, np.int64),
        np.empty(shape, np.int64),
        np.zeros(shape[0], np.int64),
        machine_nodes.copy(),
    )


@compiled
def one_machine(running: Running, machine: int) -> Running:
    """One machine of several, as if there were no other; changes of it are changes of all."""
    chosen = slice(machine, machine + 1)
    return Running(
        running.expected[chosen], running.job[chosen], running.nodes[chosen], running.size[chosen], running.free[chosen]
    )


@compiled
def add(running: Running, machine: int, expected: float, job: int, nodes: int) -> None:
    """A job takes nodes; after those that are expected to end at the same time."""
    ends, jobs, sizes = running.expected[machine], running.job[machine], running.nodes[machine]
    place = running.size[machine]
    while place > 0 and ends[place - 1] > expected:
        ends[place], jobs[place], sizes[place] = ends[place - 1], jobs[place - 1], sizes[place - 1]
        place -= 1
    ends[place], jobs[place], sizes[place] = expected, job, nodes
    running.size[machine] += 1
    running.free[machine] -= nodes


@compiled
def remove(running: Running, machine: int, job: int) -> float:
    """A job gives its nodes back; the time at which it was expected to end."""
    ends, jobs, sizes = running.expected[machine], running.job[machine], running.nodes[machine]
    place = 0
    while jobs[place] != job:
        place += 1
    expected = ends[place]
    running.free[machine] += sizes[place]
    running.size[machine] -= 1
    for later in range(place, running.size[machine]):
        ends[later], jobs[later], sizes[later] = ends[later + 1], jobs[later + 1], sizes[later + 1]
    return float(expected)


@compiled
def earliest_start(running: Running, machine: int, nodes: int, now: float) -> tuple[float, int]:
    """Time at which `nodes` nodes of a machine are expected to be free, and how many will be free then."""
    free = running.free[machine]
    if free >= nodes:
        return now, free
    ends, sizes = running.expected[machine], running.nodes[machine]
    place = 0
    while free < nodes:
        free += sizes[place]
        place += 1
    start = ends[place - 1]
    while place < running.size[machine] and ends[place] == start:
        free += sizes[place]
        place += 1
    return start, free


@compiled
def next_expected(running: Running) -> float:
    """The earliest expected end on all machines; infinite where nothing runs."""
    earliest = np.inf
    for machine in range(len(running.size)):
        if running.size[machine] > 0:
            earliest = min(earliest, running.expected[machine, 0])
    return earliest


@compiled
def correct_overdue(running: Running, now: float, start: Floats, limit: Floats, option: Integers) -> bool:
    """Jobs that run although they were expected to have ended get twice the time, at most their limit."""
    is_any_overdue = False
    for machine in range(len(running.size)):
        while running.size[machine] > 0 and running.expected[machine, 0] <= now:
            job, nodes = running.job[machine, 0], running.nodes[machine, 0]
            expected = remove(running, machine, job)
            longer = min(2 * (expected - start[job]), limit[option[job]])
            add(running, machine, start[job] + longer, job, nodes)
            is_any_overdue = True
    return is_any_overdue
