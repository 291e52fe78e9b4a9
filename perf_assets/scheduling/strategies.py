"""Ways to schedule that are compared side by side on the fleet, and what each is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perf_assets.scheduling.choices import Estimates, KillAt, Planning, Policy
from perf_assets.scheduling.fleet_jobs import FleetJobs, Freedom
from perf_assets.scheduling.metrics import Metrics, measure
from perf_assets.scheduling.simulate import Machine, Schedule, simulate

_MOST_NODES_FACTOR = 8


@dataclass(frozen=True)
class Strategy:
    """A policy, the times that it plans with, and the options that it may choose."""

    policy: Policy
    planning: Planning
    freedom: Freedom = field(default_factory=Freedom)

    def schedule(self, fleet: FleetJobs, machines: tuple[Machine, ...]) -> Schedule:
        """Schedule jobs of the fleet."""
        jobs, learner = fleet.jobs(self.planning, self.freedom)
        return simulate(machines, jobs, self.policy, learner)


PRACTICE = "practice"
PREDICTOR_MOLDABLE = "predictor, moldable"
STRATEGIES = {
    PRACTICE: Strategy(Policy.EASY, Planning()),
    "oracle": Strategy(Policy.EASY, Planning(Estimates.ORACLE)),
    "predictor": Strategy(Policy.EASY, Planning(Estimates.PREDICTED)),
    "user estimates, moldable": Strategy(Policy.EASY, Planning(), Freedom(nodes=True)),
    "oracle, moldable": Strategy(Policy.EASY, Planning(Estimates.ORACLE), Freedom(nodes=True)),
    PREDICTOR_MOLDABLE: Strategy(Policy.EASY, Planning(Estimates.PREDICTED), Freedom(nodes=True)),
    "safe predictor, moldable": Strategy(Policy.EASY, Planning(Estimates.BOUND, KillAt.BOUND), Freedom(nodes=True)),
}
"""Practice is what centres do now: EASY backfilling with users' estimates, jobs as wide as asked for. The safe
predictor plans with an upper bound and kills there."""


def better_loads(loads: Sequence[float], ours: Sequence[float], theirs: Sequence[float]) -> list[tuple[float, float]]:
    """Ranges of loads in which ours is lower than theirs; their ends, inside, are break-even loads.

    Linear between the loads that were simulated.
    """
    gains = np.array(theirs) - np.array(ours)
    ranges: list[tuple[float, float]] = []
    begins = loads[0] if gains[0] > 0 else None
    for place in range(1, len(loads)):
        if (gains[place] > 0) == (gains[place - 1] > 0):
            continue
        share = gains[place - 1] / (gains[place - 1] - gains[place])
        crossing = float(loads[place - 1] + share * (loads[place] - loads[place - 1]))
        if begins is None:
            begins = crossing
        else:
            ranges.append((begins, crossing))
            begins = None
    return ranges if begins is None else [*ranges, (begins, loads[-1])]


def nodes_to_match(fleet: FleetJobs, strategy: Strategy, machine: Machine, turnaround: float) -> int | None:
    """Fewest nodes with which a strategy reaches a mean turnaround; None where even many times more do not suffice."""

    def reaches(nodes: int) -> bool:
        wider = FleetJobs(fleet.trace, fleet.problems, [nodes], fleet.problem)
        return measure(strategy.schedule(wider, (Machine(machine.name, nodes),))).turnaround.mean <= turnaround

    low, high = int(fleet.trace.nodes.max()) - 1, machine.nodes
    while not reaches(high):
        low, high = high, 2 * high
        if high > _MOST_NODES_FACTOR * machine.nodes:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def measured(fleet: FleetJobs, strategy: Strategy, machines: tuple[Machine, ...]) -> Metrics:
    """Metrics of a strategy."""
    return measure(strategy.schedule(fleet, machines))
