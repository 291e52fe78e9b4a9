"""Schedules jobs by a policy."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.compiled import Floats, Integers, Mask
from perf_assets.scheduling.conservative_kernel import run_conservative
from perf_assets.scheduling.estimates import Planning, history_learner, no_learner, plain_jobs
from perf_assets.scheduling.jobs import Jobs, Outcome, empty_outcome
from perf_assets.scheduling.learner import Learner
from perf_assets.scheduling.list_kernel import Order, run_list
from perf_assets.scheduling.trace import Trace


class Policy(Enum):
    """How it is decided which job starts."""

    FCFS = "fcfs"
    """First come, first served: nobody passes the head of the queue."""
    SJF = "sjf"
    """The job with the shortest estimate is the head; nobody passes it."""
    EASY = "easy"
    """First come, first served; others may pass the head if they do not delay it."""
    EASY_SJBF = "easy-sjbf"
    """The same, with the shortest of these others first."""
    CONSERVATIVE = "conservative"
    """Others may pass if they delay nobody who came before them."""


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
    """What became of the jobs, in the order of submission."""

    machines: tuple[Machine, ...]
    jobs: Jobs
    """With the estimates and limits that they had in the end."""
    outcome: Outcome

    @property
    def machine(self) -> Integers:
        """Position of the machine that each job ran on."""
        return self.jobs.machine[self.outcome.option]

    @property
    def nodes(self) -> Integers:
        """That each job ran on."""
        return self.jobs.nodes[self.outcome.option]

    @property
    def was_killed(self) -> Mask:
        """Of each job."""
        taken = self.outcome.option
        return np.asarray(self.jobs.run[taken] > self.jobs.limit[taken])

    @property
    def was_underestimated(self) -> Mask:
        """Of each job: whether it ran longer than the scheduler had planned at its submission."""
        taken = self.outcome.option
        seconds = np.minimum(self.jobs.run[taken], self.jobs.limit[taken])
        return np.asarray(seconds > self.jobs.estimate[taken])

    @property
    def seconds(self) -> Floats:
        """That each job ran."""
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


def simulate_trace(trace: Trace, nodes: int, policy: Policy, planning: Planning) -> Schedule:
    """Schedule the jobs of a trace as they were submitted, on one machine."""
    jobs, learner = plain_jobs(trace, planning), history_learner(trace, planning)
    return simulate((Machine("nodes", nodes),), jobs, policy, learner)
