"""Free nodes over time, with all that is planned: the profile of conservative backfilling."""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled


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
    """From `start` to `end`, `nodes` more are free (fewer, where negative)."""
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
