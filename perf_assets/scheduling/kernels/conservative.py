"""Conservative backfilling: every job has a planned start from when it comes, and no later job may delay it.

When a job ends before it was expected to, each waiting job in turn may move to an earlier start while all others keep
theirs. When one runs longer than expected, plans no longer hold: all are made anew, in the order of submission.
"""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled
from perf_assets.scheduling.kernels.heap import Heap, new_heap, pop, push
from perf_assets.scheduling.kernels.jobs import Jobs, Outcome
from perf_assets.scheduling.kernels.learner import Learner, estimate_job, learn
from perf_assets.scheduling.kernels.queue import Queue, drop_started, enqueue, new_queue
from perf_assets.scheduling.kernels.running import Running, add, correct_overdue, new_running, next_expected, remove


class FreeNodes(NamedTuple):
    """Steps per machine: from `time[m, i]` on `free[m, i]` nodes are free; the last step never ends."""

    time: Floats
    free: Integers
    size: Integers


@compiled
def new_profile(machine_nodes: Integers, capacity: int) -> FreeNodes:
    """Everything is free for ever."""
    profile = FreeNodes(
        np.empty((len(machine_nodes), capacity)),
        np.empty((len(machine_nodes), capacity), np.int64),
        np.ones(len(machine_nodes), np.int64),
    )
    profile.time[:, 0] = -np.inf
    profile.free[:, 0] = machine_nodes
    return profile


@compiled
def clear(profile: FreeNodes, machine_nodes: Integers) -> None:
    """Drop all that was planned."""
    profile.size[:] = 1
    profile.time[:, 0] = -np.inf
    profile.free[:, 0] = machine_nodes


@compiled
def change(profile: FreeNodes, machine: int, start: float, end: float, nodes: int) -> None:
    """Free `nodes` more from `start` to `end` (fewer, where negative)."""
    first, last = _cut(profile, machine, start), _cut(profile, machine, end)
    for place in range(first, last):
        profile.free[machine, place] += nodes
    _join(profile, machine, last)
    _join(profile, machine, first)


@compiled
def forget(profile: FreeNodes, machine: int, now: float) -> None:
    """Drop what is past."""
    times, free = profile.time[machine], profile.free[machine]
    count, past = profile.size[machine], 0
    while past + 1 < count and times[past + 1] <= now:
        past += 1
    if past > 0:
        for place in range(past, count):
            times[place - past], free[place - past] = times[place], free[place]
        profile.size[machine] = count - past


@compiled
def earliest_slot(profile: FreeNodes, machine: int, nodes: int, seconds: float, now: float) -> float:
    """First time from now on at which `nodes` nodes are free for `seconds`."""
    times, free, count = profile.time[machine], profile.free[machine], profile.size[machine]
    start = now
    for place in range(count):
        ends = times[place + 1] if place + 1 < count else np.inf
        if ends <= start:
            continue
        if free[place] < nodes:
            start = ends
        elif start + seconds <= ends:
            break
    return start


@compiled
def _cut(profile: FreeNodes, machine: int, time: float) -> int:
    """The step that begins at a time; made where there is none."""
    times, free = profile.time[machine], profile.free[machine]
    place = profile.size[machine]
    while times[place - 1] > time:
        place -= 1
    if times[place - 1] == time:
        return int(place - 1)
    for later in range(profile.size[machine], place, -1):
        times[later], free[later] = times[later - 1], free[later - 1]
    times[place], free[place] = time, free[place - 1]
    profile.size[machine] += 1
    return int(place)


@compiled
def _join(profile: FreeNodes, machine: int, place: int) -> None:
    """Steps that do not differ from the one before are none."""
    times, free = profile.time[machine], profile.free[machine]
    if place == 0 or free[place] != free[place - 1]:
        return
    profile.size[machine] -= 1
    for later in range(place, profile.size[machine]):
        times[later], free[later] = times[later + 1], free[later + 1]


class _PlanState(NamedTuple):
    machine_nodes: Integers
    running: Running
    ends: Heap
    queue: Queue
    profile: FreeNodes
    planned: Floats
    """Start of each waiting job; its option is in the outcome already."""


@compiled
def run_conservative(jobs: Jobs, machine_nodes: Integers, learner: Learner, outcome: Outcome) -> None:
    """Schedule all jobs; fills the outcome."""
    count = len(jobs.submit)
    state = _PlanState(
        machine_nodes,
        new_running(machine_nodes),
        new_heap(machine_nodes.sum()),
        new_queue(count),
        new_profile(machine_nodes, 2 * count + 4),
        np.full(count, np.inf),
    )
    arrived = int(np.int64(0))  # For a literal 0, all that takes it would be compiled once more.
    # Plans can leave a machine idle for a while: then nothing runs, and yet jobs wait.
    while arrived < count or state.ends.size[0] > 0 or state.queue.size[0] > 0:
        now = _next_time(jobs, arrived, state)
        for machine in range(len(machine_nodes)):
            forget(state.profile, machine, now)
        ended_early = _end_jobs(jobs, state, learner, outcome, now)
        if correct_overdue(state.running, now, outcome.start, jobs.limit, outcome.option):
            _plan_anew(jobs, state, outcome, now)
        elif ended_early:
            _move_forward(jobs, state, outcome, now)
        while arrived < count and jobs.submit[arrived] <= now:
            estimate_job(learner, jobs, arrived)
            enqueue(state.queue, arrived, 0.0)
            _plan(jobs, state, outcome, arrived, now)
            outcome.promised[arrived] = state.planned[arrived]
            arrived += 1
        _start_due(jobs, state, outcome, now)


@compiled
def _next_time(jobs: Jobs, arrived: int, state: _PlanState) -> float:
    now = next_expected(state.running)
    if state.ends.size[0] > 0:
        now = min(now, state.ends.time[0])
    if arrived < len(jobs.submit):
        now = min(now, jobs.submit[arrived])
    for place in range(state.queue.size[0]):
        now = min(now, state.planned[state.queue.job[place]])
    return now


@compiled
def _end_jobs(jobs: Jobs, state: _PlanState, learner: Learner, outcome: Outcome, now: float) -> bool:
    """Whether any ended before it was expected to."""
    any_early = False
    while state.ends.size[0] > 0 and state.ends.time[0] <= now:
        job = pop(state.ends)
        option = outcome.option[job]
        expected = remove(state.running, jobs.machine[option], job)
        if expected > now:
            change(state.profile, jobs.machine[option], now, expected, jobs.nodes[option])
            any_early = True
        learn(learner, jobs, job, option)
    return any_early


@compiled
def _plan(jobs: Jobs, state: _PlanState, outcome: Outcome, job: int, now: float) -> None:
    """Plan a job where it is expected to end first."""
    best_end = np.inf
    for option in range(jobs.first[job], jobs.first[job + 1]):
        seconds = jobs.estimate[option]
        start = earliest_slot(state.profile, jobs.machine[option], jobs.nodes[option], seconds, now)
        if start + seconds < best_end:
            best_end = start + seconds
            state.planned[job], outcome.option[job] = start, option
    option = outcome.option[job]
    change(state.profile, jobs.machine[option], state.planned[job], best_end, -jobs.nodes[option])


@compiled
def _move_forward(jobs: Jobs, state: _PlanState, outcome: Outcome, now: float) -> None:
    for place in range(state.queue.size[0]):
        job = state.queue.job[place]
        option = outcome.option[job]
        start = state.planned[job]
        change(state.profile, jobs.machine[option], start, start + jobs.estimate[option], jobs.nodes[option])
        _plan(jobs, state, outcome, job, now)


@compiled
def _plan_anew(jobs: Jobs, state: _PlanState, outcome: Outcome, now: float) -> None:
    clear(state.profile, state.machine_nodes)
    running = state.running
    for machine in range(len(state.machine_nodes)):
        for place in range(running.size[machine]):
            change(state.profile, machine, now, running.expected[machine, place], -running.nodes[machine, place])
    for place in range(state.queue.size[0]):
        _plan(jobs, state, outcome, state.queue.job[place], now)


@compiled
def _start_due(jobs: Jobs, state: _PlanState, outcome: Outcome, now: float) -> None:
    """Start the jobs whose planned time has come."""
    any_started = False
    for place in range(state.queue.size[0]):
        job = state.queue.job[place]
        if state.planned[job] > now:
            continue
        option = outcome.option[job]
        outcome.start[job] = now
        outcome.end[job] = now + min(jobs.run[option], jobs.limit[option])
        outcome.was_backfilled[job] = place > 0 and np.isnan(outcome.start[state.queue.job[0]])
        push(state.ends, outcome.end[job], job)
        add(state.running, jobs.machine[option], now + jobs.estimate[option], job, jobs.nodes[option])
        any_started = True
    if any_started:
        drop_started(state.queue, outcome.start)
