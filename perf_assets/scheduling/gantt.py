"""Which nodes jobs ran on, for drawing: the scheduler itself only counts them."""

from dataclasses import dataclass

import numpy as np

from perf_assets.scheduling.simulate import Schedule

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Bar:
    """A job on neighbouring nodes."""

    job: int
    start: float
    end: float
    first_node: int
    nodes: int
    is_narrower: bool
    """Whether it ran on fewer nodes than asked for."""
    was_killed: bool


def busy_day(schedule: Schedule) -> float:
    """When the day begins at whose noon most jobs wait; days are counted from the first submission."""
    noons = (np.arange(int(schedule.jobs.submit[-1] // DAY_SECONDS) + 1) + 0.5) * DAY_SECONDS
    waiting = np.searchsorted(schedule.jobs.submit, noons) - np.searchsorted(np.sort(schedule.outcome.start), noons)
    return float(noons[int(np.argmax(waiting))] - DAY_SECONDS / 2)


def bars(schedule: Schedule, machine: int, begins: float, ends: float) -> list[Bar]:
    """Jobs that run on a machine in a time, each on the lowest nodes that were free when it started."""
    outcome, nodes, was_killed = schedule.outcome, schedule.nodes, schedule.was_killed
    is_narrower = nodes < schedule.jobs.nodes[schedule.jobs.first[:-1]]
    free_from = np.full(schedule.machines[machine].nodes, -np.inf)
    found: list[Bar] = []
    here = np.flatnonzero((schedule.machine == machine) & (outcome.end > begins) & (outcome.start < ends))
    for job in here[np.argsort(outcome.start[here], kind="stable")].tolist():
        start, end = float(outcome.start[job]), float(outcome.end[job])
        taken = np.flatnonzero(free_from <= start)[: nodes[job]]
        free_from[taken] = end
        parts = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
        how = bool(is_narrower[job]), bool(was_killed[job])
        found += [Bar(job, start, end, int(part[0]), len(part), *how) for part in parts]
    return found
