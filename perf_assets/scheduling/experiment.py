"""The experiment of `out_schedule__turnaround`: strategies side by side, over loads, with shaken submissions."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.infra.resume import Kept, NothingKept, Rows, resumed
from perf_assets.scheduling.fleet_jobs import FleetJobs, Problem
from perf_assets.scheduling.metrics import Metrics
from perf_assets.scheduling.simulate import Machine, Schedule, compile_all
from perf_assets.scheduling.strategies import (
    PRACTICE,
    PREDICTOR_MOLDABLE,
    STRATEGIES,
    Strategy,
    better_loads,
    measured,
    nodes_to_match,
)
from perf_assets.scheduling.traces.trace import Trace

LOADS = tuple(round(0.5 + 0.1 * step, 1) for step in range(11))
FULL_LOAD = 1.0


@dataclass(frozen=True, eq=False)
class Experiment:
    """A trace on one machine, its jobs being problems of the fleet."""

    trace: Trace
    problems: Sequence[Problem]
    machine: Machine
    seed: int

    @property
    def digest(self) -> str:
        """Identity of what is simulated."""
        apps = [problem.app for problem in self.problems]
        seen = hashlib.sha256(repr((self.trace.name, apps, self.machine, self.seed)).encode())
        for holder in (self.trace, *self.problems):
            for values in vars(holder).values():
                seen.update(values.tobytes() if isinstance(values, np.ndarray) else b"")
        return seen.hexdigest()

    def fleet(self, load: float, repetition: int) -> FleetJobs:
        """The jobs at a load; repetition 0 as they are, others shaken."""
        trace = self.trace.at_load(load, self.machine.nodes)
        if repetition:
            trace = trace.shaken(repetition)
        return FleetJobs.mapped(trace, self.problems, [self.machine.nodes], self.seed)

    def rows(
        self, loads: Sequence[float], repetitions: int, progress: Callable[[str], None], kept: Kept | None = None
    ) -> Rows:
        """Rows of the table, but for where the data are from: all loads once, full load with shaken submissions too.

        What is `kept` of an interrupted run of the same experiment is not simulated again.
        """
        pieces = [(load, each) for load in loads for each in range(repetitions if load == FULL_LOAD else 1)]
        compile_all()  # here, once: what runs elsewhere finds the machine code on disk
        rows_of = {}
        for piece, rows in resumed(_measure_strategies, self, pieces, kept or NothingKept()):
            rows_of[piece] = rows
            load, repetition = piece
            progress(f"{len(rows_of)} of {len(pieces)}: load {load:g}, repetition {repetition}: {len(rows)} strategies")
        return [row for piece in pieces for row in rows_of[piece]]

    def schedules(self, load: float) -> dict[str, Schedule]:
        """Schedules of practice and of the moldable predictor, for pictures."""
        fleet = self.fleet(load, 0)
        return {name: STRATEGIES[name].schedule(fleet, (self.machine,)) for name in (PRACTICE, PREDICTOR_MOLDABLE)}

    def nodes_to_match(self, load: float) -> int | None:
        """Nodes with which practice would be as fast as the moldable predictor is."""
        fleet = self.fleet(load, 0)
        goal = measured(fleet, STRATEGIES[PREDICTOR_MOLDABLE], (self.machine,)).turnaround.mean
        return nodes_to_match(fleet, STRATEGIES[PRACTICE], self.machine, goal)


def _measure_strategies(experiment: Experiment, load_and_repetition: tuple[float, int]) -> Rows:
    fleet = experiment.fleet(*load_and_repetition)
    return [
        _described(name, strategy, *load_and_repetition) | _row(measured(fleet, strategy, (experiment.machine,)))
        for name, strategy in STRATEGIES.items()
    ]


def where_faster(turnaround: Mapping[tuple[str, float], float], strategy: str) -> str:
    """Loads at which a strategy has a lower mean turnaround than practice."""
    loads = sorted({load for name, load in turnaround if name == strategy})
    ours, theirs = ([turnaround[name, load] for load in loads] for name in (strategy, PRACTICE))
    ranges = better_loads(loads, ours, theirs)
    if ranges == [(loads[0], loads[-1])]:
        return f"faster at all loads from {loads[0]:g} to {loads[-1]:g}"
    return (
        "faster at loads " + ", ".join(f"{low:.2f} to {high:.2f}" for low, high in ranges) if ranges else "never faster"
    )


def _described(name: str, strategy: Strategy, load: float, repetition: int) -> dict[str, object]:
    return {
        "strategy": name,
        "policy": strategy.policy.value,
        "estimates": strategy.planning.estimates.value,
        "kill_at": strategy.planning.kill_at.value,
        "is_moldable": strategy.freedom.nodes,
        "load_ratio": load,
        "repetition": repetition,
    }


def _row(metrics: Metrics) -> dict[str, object]:
    return {
        "jobs_count": metrics.jobs,
        "turnaround_mean_seconds": metrics.turnaround.mean,
        "turnaround_median_seconds": metrics.turnaround.median,
        "turnaround_p95_seconds": metrics.turnaround.p95,
        "wait_mean_seconds": metrics.wait.mean,
        "wait_p95_seconds": metrics.wait.p95,
        "bounded_slowdown_mean": metrics.bounded_slowdown.mean,
        "bounded_slowdown_p95": metrics.bounded_slowdown.p95,
        "makespan_seconds": metrics.makespan_s,
        "utilisation_ratio": metrics.utilisation,
        "node_hours": metrics.node_hours,
        "killed_count": metrics.killed,
        "killed_node_hours": metrics.killed_node_hours,
        "underestimated_count": metrics.underestimated,
        "promises_broken_count": metrics.promises_broken,
    }


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
    """Start of the day at whose noon most jobs wait; days are counted from the first submission."""
    noons = (np.arange(int(schedule.jobs.submit[-1] // DAY_SECONDS) + 1) + 0.5) * DAY_SECONDS
    waiting = np.searchsorted(schedule.jobs.submit, noons) - np.searchsorted(np.sort(schedule.outcome.start), noons)
    return float(noons[int(np.argmax(waiting))] - DAY_SECONDS / 2)


def bars(schedule: Schedule, machine: int, begins: float, ends: float) -> list[Bar]:
    """Jobs that run on a machine in a time, each on the lowest nodes that were free when it started."""
    outcome, nodes, was_killed = schedule.outcome, schedule.nodes, schedule.was_killed
    is_narrower = nodes < schedule.jobs.nodes[schedule.jobs.first[:-1]]
    free_from = np.full(schedule.machines[machine].nodes, -np.inf)
    drawn: list[Bar] = []
    here = np.flatnonzero((schedule.machine == machine) & (outcome.end > begins) & (outcome.start < ends))
    for job in here[np.argsort(outcome.start[here], kind="stable")].tolist():
        start, end = float(outcome.start[job]), float(outcome.end[job])
        taken = np.flatnonzero(free_from <= start)[: nodes[job]]
        free_from[taken] = end
        parts = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
        how = bool(is_narrower[job]), bool(was_killed[job])
        drawn += [Bar(job, start, end, int(part[0]), len(part), *how) for part in parts]
    return drawn
