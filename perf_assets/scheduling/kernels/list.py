"""FCFS, SJF and EASY backfilling: a queue whose head is never passed by a job that would delay it.

Time goes from event to event: a job ends, a job runs longer than expected, a job comes. All that happens at one time
happens in this order, and then jobs are started.
"""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Integers, compiled
from perf_assets.scheduling.kernels.heap import Heap, new_heap, pop, push
from perf_assets.scheduling.kernels.jobs import Jobs, Outcome
from perf_assets.scheduling.kernels.learner import Learner, estimate_job, learn
from perf_assets.scheduling.kernels.queue import Queue, drop_started, enqueue, new_queue
from perf_assets.scheduling.kernels.running import (
    Running,
    add,
    correct_overdue,
    earliest_start,
    new_running,
    next_expected,
    remove,
)


class Order(NamedTuple):
    """Differences between the policies of a list."""

    shortest_first: bool
    """Whether the queue is in the order of estimates, instead of submission."""
    backfills: bool
    """Whether jobs behind the head may start before it."""
    shortest_backfills_first: bool
    """Whether these are tried in the order of estimates."""


class ListState(NamedTuple):
    """Jobs that run, and those that wait."""

    running: Running
    ends: Heap
    queue: Queue
    behind: Queue
    """Waiting jobs in the order in which they are tried behind the head; empty where that is the queue's own."""
    narrowest: Integers
    """Per job, nodes of its option with the fewest. Looked at first, because queues are long."""


@compiled
def run_list(jobs: Jobs, machine_nodes: Integers, order: Order, learner: Learner, outcome: Outcome) -> None:
    """Schedule all jobs; fills the outcome."""
    count = len(jobs.submit)
    behind = new_queue(count if order.shortest_backfills_first else 0)
    state = ListState(
        new_running(machine_nodes), new_heap(machine_nodes.sum()), new_queue(count), behind, _narrowest(jobs)
    )
    arrived = int(np.int64(0))  # For a literal 0, all that takes it would be compiled once more.
    while arrived < count or state.ends.size[0] > 0:
        now = _next_time(jobs, arrived, state)
        _end_jobs(jobs, state, learner, outcome, now)
        correct_overdue(state.running, now, outcome.start, jobs.limit, outcome.option)
        while arrived < count and jobs.submit[arrived] <= now:
            estimate_job(learner, jobs, arrived)
            shortness = jobs.estimate[jobs.first[arrived]]
            enqueue(state.queue, arrived, shortness if order.shortest_first else 0.0)
            if order.shortest_backfills_first:
                enqueue(state.behind, arrived, shortness)
            arrived += 1
        if start_jobs(jobs, state, order, outcome, now):
            drop_started(state.queue, outcome.start)
            drop_started(state.behind, outcome.start)


@compiled
def list_state(running: Running, ends: Heap, queue: Queue, nodes: Integers) -> ListState:
    """State of a queue whose jobs have one option each, with these nodes."""
    return ListState(running, ends, queue, new_queue(0), nodes)


@compiled
def _narrowest(jobs: Jobs) -> Integers:
    nodes = np.empty(len(jobs.submit), np.int64)
    for job in range(len(nodes)):
        nodes[job] = jobs.nodes[jobs.first[job] : jobs.first[job + 1]].min()
    return nodes


@compiled
def _next_time(jobs: Jobs, arrived: int, state: ListState) -> float:
    now = next_expected(state.running)
    if state.ends.size[0] > 0:
        now = min(now, state.ends.time[0])
    if arrived < len(jobs.submit):
        now = min(now, jobs.submit[arrived])
    return now


@compiled
def _end_jobs(jobs: Jobs, state: ListState, learner: Learner, outcome: Outcome, now: float) -> None:
    while state.ends.size[0] > 0 and state.ends.time[0] <= now:
        job = pop(state.ends)
        remove(state.running, jobs.machine[outcome.option[job]], job)
        learn(learner, jobs, job, outcome.option[job])


@compiled
def start_jobs(jobs: Jobs, state: ListState, order: Order, outcome: Outcome, now: float) -> bool:
    """Start what may start now; whether anything did."""
    queue = state.queue
    place = 0
    while place < queue.size[0]:
        head = queue.job[place]
        option, shadow, available = best_option(jobs, state.running, head, now)
        if shadow > now:
            break
        _start(jobs, state, outcome, head, option, now)
        place += 1
    if place < queue.size[0] and order.backfills:
        if np.isnan(outcome.promised[head]):
            outcome.promised[head] = shadow
        tried = state.behind if order.shortest_backfills_first else queue
        extra = available - jobs.nodes[option]
        if _backfill(jobs, state, tried, outcome, now, jobs.machine[option], shadow, extra, head):
            return True
    return place > 0


@compiled
def best_option(jobs: Jobs, running: Running, job: int, now: float) -> tuple[int, float, int]:
    """The option that is expected to end first: which, when it starts, and how many nodes are free then."""
    best, best_start, best_free, best_end = -1, np.inf, 0, np.inf
    for option in range(jobs.first[job], jobs.first[job + 1]):
        start, free = earliest_start(running, jobs.machine[option], jobs.nodes[option], now)
        if start + jobs.estimate[option] < best_end:
            best, best_start, best_free, best_end = option, start, free, start + jobs.estimate[option]
    return best, best_start, best_free


@compiled
def _backfill(
    jobs: Jobs,
    state: ListState,
    tried: Queue,
    outcome: Outcome,
    now: float,
    machine: int,
    shadow: float,
    extra: int,
    head: int,
) -> bool:
    """Start jobs behind the head that do not delay it: it starts at `shadow` and leaves `extra` nodes of `machine`."""
    any_started = False
    most_free = state.running.free.max()
    for place in range(tried.size[0]):
        job = tried.job[place]
        if state.narrowest[job] > most_free or job == head or not np.isnan(outcome.start[job]):
            continue
        option = _option_now(jobs, state.running, job, now, machine, shadow, extra)
        if option < 0:
            continue
        if jobs.machine[option] == machine and now + jobs.estimate[option] > shadow:
            extra -= jobs.nodes[option]
        _start(jobs, state, outcome, job, option, now)
        outcome.was_backfilled[job] = True
        most_free = state.running.free.max()
        if most_free == 0:
            return True
        any_started = True
    return any_started


@compiled
def _option_now(jobs: Jobs, running: Running, job: int, now: float, machine: int, shadow: float, extra: int) -> int:
    """The option to start a job behind the head on now; -1 where it had better wait, or must.

    It had better wait where another option is expected to end before any that could start now does, although it has to
    wait for its nodes: not before the head starts, where both want the same machine.
    """
    best, best_end = -1, np.inf
    for option in range(jobs.first[job], jobs.first[job + 1]):
        end = now + jobs.estimate[option]
        if end < best_end and _may_pass(jobs, running, option, now, machine, shadow, extra):
            best, best_end = option, end
    if best < 0:
        return -1
    for option in range(jobs.first[job], jobs.first[job + 1]):
        where, seconds = jobs.machine[option], jobs.estimate[option]
        if now + seconds > best_end or _may_pass(jobs, running, option, now, machine, shadow, extra):
            continue
        start = earliest_start(running, where, jobs.nodes[option], now)[0]
        if where == machine:
            start = max(start, shadow)
        if start + seconds < best_end or (start + seconds == best_end and option < best):
            return -1
    return best


@compiled
def _may_pass(jobs: Jobs, running: Running, option: int, now: float, machine: int, shadow: float, extra: int) -> bool:
    """Whether an option could start now and not delay the head."""
    where, nodes = jobs.machine[option], jobs.nodes[option]
    if running.free[where] < nodes:
        return False
    return bool(where != machine or now + jobs.estimate[option] <= shadow or nodes <= extra)


@compiled
def _start(jobs: Jobs, state: ListState, outcome: Outcome, job: int, option: int, now: float) -> None:
    outcome.start[job] = now
    outcome.option[job] = option
    outcome.end[job] = now + min(jobs.run[option], jobs.limit[option])
    push(state.ends, outcome.end[job], job)
    add(state.running, jobs.machine[option], now + jobs.estimate[option], job, jobs.nodes[option])
