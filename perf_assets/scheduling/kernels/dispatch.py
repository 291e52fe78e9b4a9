"""Several clusters with a queue of their own: a job is dispatched to one of them when it comes, and stays there.

Each cluster does EASY backfilling. At one time jobs end first, then clusters start what they can, then jobs come, one
after the other: each is dispatched, and its cluster starts what it can.
"""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled
from perf_assets.scheduling.kernels.heap import Heap, new_heap, pop, push
from perf_assets.scheduling.kernels.jobs import Jobs, Outcome
from perf_assets.scheduling.kernels.list import Order, best_option, list_state, start_jobs
from perf_assets.scheduling.kernels.queue import Queue, drop_started, enqueue
from perf_assets.scheduling.kernels.running import (
    Running,
    correct_overdue,
    new_running,
    next_expected,
    one_machine,
    remove,
)

TURNAROUND, WAIT, RELATIVE = 0, 1, 2
"""Rules: earliest expected end; earliest expected start; smallest predicted time where enough nodes are free now, or of
all clusters where they are free nowhere."""


class _Clusters(NamedTuple):
    running: Running
    ends: Heap
    """Ends of all running jobs."""
    waiting: Integers
    """Clusters x places: jobs in the order in which they were dispatched."""
    keys: Floats
    sizes: Integers
    """Jobs that wait, per cluster."""
    taken: Jobs
    """Jobs with the one option that they were dispatched to, on machine 0: a cluster knows no other."""
    expected: Floats
    """Seconds that the dispatcher expects of each dispatched job."""
    home: Integers
    """Cluster of each dispatched job."""
    planned_ends: Heap
    """Room for one plan."""


@compiled
def run_dispatch(jobs: Jobs, expected: Floats, machine_nodes: Integers, rule: int, outcome: Outcome) -> None:
    """Dispatch and schedule all jobs; fills the outcome. `expected` are the dispatcher's seconds of each option."""
    count = len(jobs.submit)
    clusters = _new_clusters(jobs, machine_nodes)
    chosen = np.empty(count, np.int64)
    order = Order(False, True, False)
    has_changed = np.zeros(len(machine_nodes), np.bool_)
    arrived = int(np.int64(0))  # For a literal 0, all that takes it would be compiled once more.
    while arrived < count or clusters.ends.size[0] > 0:
        now = next_expected(clusters.running)
        if clusters.ends.size[0] > 0:
            now = min(now, clusters.ends.time[0])
        if arrived < count:
            now = min(now, jobs.submit[arrived])
        while clusters.ends.size[0] > 0 and clusters.ends.time[0] <= now:
            job = pop(clusters.ends)
            remove(clusters.running, clusters.home[job], job)
            has_changed[clusters.home[job]] = True
        if correct_overdue(clusters.running, now, outcome.start, clusters.taken.limit, outcome.option):
            has_changed[:] = True
        for cluster in range(len(machine_nodes)):
            if has_changed[cluster]:
                _start(clusters, cluster, order, outcome, now)
        has_changed[:] = False
        while arrived < count and jobs.submit[arrived] <= now:
            option = _choose(jobs, expected, clusters, arrived, rule, outcome, now)
            chosen[arrived] = option
            cluster = jobs.machine[option]
            clusters.home[arrived] = cluster
            clusters.expected[arrived] = expected[option]
            clusters.taken.nodes[arrived] = jobs.nodes[option]
            clusters.taken.run[arrived] = jobs.run[option]
            clusters.taken.estimate[arrived] = jobs.estimate[option]
            clusters.taken.limit[arrived] = jobs.limit[option]
            enqueue(_queue(clusters, cluster), arrived, 0.0)
            _start(clusters, cluster, order, outcome, now)
            arrived += 1
    outcome.option[:] = chosen


@compiled
def _new_clusters(jobs: Jobs, machine_nodes: Integers) -> _Clusters:
    count, nodes = len(jobs.submit), machine_nodes.sum()
    taken = Jobs(
        jobs.submit,
        np.arange(count + 1),
        np.zeros(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count),
        np.empty(count),
        np.empty(count),
    )
    shape = (len(machine_nodes), count)
    return _Clusters(
        new_running(machine_nodes),
        new_heap(nodes),
        np.empty(shape, np.int64),
        np.empty(shape),
        np.zeros(len(machine_nodes), np.int64),
        taken,
        np.empty(count),
        np.empty(count, np.int64),
        new_heap(count),
    )


@compiled
def _queue(clusters: _Clusters, cluster: int) -> Queue:
    return Queue(clusters.waiting[cluster], clusters.keys[cluster], clusters.sizes[cluster : cluster + 1])


@compiled
def _start(clusters: _Clusters, cluster: int, order: Order, outcome: Outcome, now: float) -> None:
    """Start what a cluster may start now."""
    queue = _queue(clusters, cluster)
    if queue.size[0] == 0:
        return
    state = list_state(one_machine(clusters.running, cluster), clusters.ends, queue, clusters.taken.nodes)
    if start_jobs(clusters.taken, state, order, outcome, now):
        drop_started(queue, outcome.start)


@compiled
def _choose(
    jobs: Jobs, expected: Floats, clusters: _Clusters, job: int, rule: int, outcome: Outcome, now: float
) -> int:
    """The option that a job is dispatched to; of equal ones, the first."""
    best, least, is_best_free = -1, np.inf, False
    for option in range(jobs.first[job], jobs.first[job + 1]):
        is_free = False
        if rule == RELATIVE:
            value = expected[option]
            is_free = clusters.running.free[jobs.machine[option]] >= jobs.nodes[option]
        else:
            value = _expected_start(jobs, expected, clusters, option, outcome, now)
            if rule == TURNAROUND:
                value += expected[option]
        if best < 0 or (is_free and not is_best_free) or (is_free == is_best_free and value < least):
            best, least, is_best_free = option, value, is_free
    return best


@compiled
def _expected_start(
    jobs: Jobs, expected: Floats, clusters: _Clusters, option: int, outcome: Outcome, now: float
) -> float:
    """Time at which a job would start there: at once if it may pass those who wait, else after the last of them.

    Jobs are expected to take what the dispatcher expects; one that runs longer, twice as long, at most its limit.
    """
    cluster, nodes = jobs.machine[option], jobs.nodes[option]
    running, taken = one_machine(clusters.running, cluster), clusters.taken
    waiting = clusters.sizes[cluster]
    free = running.free[0]
    if free >= nodes:
        if waiting == 0:
            return now
        head = clusters.waiting[cluster, 0]
        _, shadow, available = best_option(taken, running, head, now)
        if now + jobs.estimate[option] <= shadow or nodes <= available - taken.nodes[head]:
            return now
    ends = clusters.planned_ends
    ends.size[0] = 0
    for place in range(running.size[0]):
        other = running.job[0, place]
        seconds = clusters.expected[other]
        while outcome.start[other] + seconds <= now:
            seconds *= 2
        push(ends, outcome.start[other] + min(seconds, taken.limit[other]), other)
    start = now
    for place in range(waiting):
        other = clusters.waiting[cluster, place]
        while free < taken.nodes[other]:
            start = max(start, ends.time[0])
            free += taken.nodes[pop(ends)]
        free -= taken.nodes[other]
        push(ends, start + clusters.expected[other], other)
    while free < nodes:
        start = max(start, ends.time[0])
        free += taken.nodes[pop(ends)]
    return start
