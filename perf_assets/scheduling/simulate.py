"""Schedules jobs by a policy."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Planning, Policy
from perf_assets.scheduling.estimates import history_learner, no_learner, plain_jobs
from perf_assets.scheduling.kernels.compiled import Floats, Integers, Mask
from perf_assets.scheduling.kernels.conservative import run_conservative
from perf_assets.scheduling.kernels.jobs import Jobs, Outcome, empty_outcome
from perf_assets.scheduling.kernels.learner import Learner
from perf_assets.scheduling.kernels.list import Order, run_list
from perf_assets.scheduling.traces.trace import Trace

_ORDERS = {
    Policy.FCFS: Order(False, False, False),
    Policy.SJF: Order(True, False, False),
    Policy.EASY: Order(False, True, False),
    Policy.EASY_SJBF: Order(False, True, True),
}


@dataclass(frozen=True)
class Machine:
    """Nodes of one type."""

    name: str
    nodes: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """Outcome of the jobs, in the order of submission."""

    machines: tuple[Machine, ...]
    jobs: Jobs
    """Jobs with the estimates and limits that they had in the end."""
    outcome: Outcome

    @property
    def machine(self) -> Integers:
        """Position of the machine that each job ran on."""
        return self.jobs.machine[self.outcome.option]

    @property
    def nodes(self) -> Integers:
        """Nodes that each job ran on."""
        return self.jobs.nodes[self.outcome.option]

    @property
    def was_killed(self) -> Mask:
        """Per job, whether it was killed."""
        taken = self.outcome.option
        return np.asarray(self.jobs.run[taken] > self.jobs.limit[taken])

    @property
    def was_underestimated(self) -> Mask:
        """Per job, whether it ran longer than the scheduler had planned at its submission."""
        taken = self.outcome.option
        seconds = np.minimum(self.jobs.run[taken], self.jobs.limit[taken])
        return np.asarray(seconds > self.jobs.estimate[taken])

    @property
    def seconds(self) -> Floats:
        """Seconds that each job ran."""
        return self.outcome.end - self.outcome.start


def simulate(machines: tuple[Machine, ...], jobs: Jobs, policy: Policy, learner: Learner | None = None) -> Schedule:
    """Schedule jobs. Every option must fit into its machine."""
    sizes = np.array([machine.nodes for machine in machines], np.int64)
    if (jobs.nodes > sizes[jobs.machine]).any() or (jobs.nodes < 1).any():
        raise BadInputError("a job asks for more nodes than its machine has, or for none")
    if (np.diff(jobs.submit) < 0).any():
        raise BadInputError("jobs must stand in the order of submission")
    own = jobs._replace(estimate=jobs.estimate.copy(), limit=jobs.limit.copy())
    outcome = empty_outcome(len(jobs.submit))
    learner = learner or no_learner()
    if policy is Policy.CONSERVATIVE:
        run_conservative(own, sizes, learner, outcome)
    else:
        run_list(own, sizes, _ORDERS[policy], learner, outcome)
    return Schedule(machines, own, outcome)


def compile_all() -> float:
    """Have all policies compiled, or loaded from where they are kept; seconds that this took."""
    started = perf_counter()
    one = np.ones(1)
    job = Jobs(one, np.arange(2), np.zeros(1, np.int64), np.ones(1, np.int64), one, one, one)
    for policy in (Policy.EASY, Policy.CONSERVATIVE):
        simulate((Machine("node", 1),), job, policy)
    return perf_counter() - started


def simulate_trace(trace: Trace, nodes: int, policy: Policy, planning: Planning) -> Schedule:
    """Schedule the jobs of a trace as they were submitted, on one machine."""
    jobs, learner = plain_jobs(trace, planning), history_learner(trace, planning)
    return simulate((Machine("nodes", nodes),), jobs, policy, learner)
