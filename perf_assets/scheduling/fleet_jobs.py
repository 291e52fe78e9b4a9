"""Jobs of a trace that behave like applications of the fleet: as wide and long as in the trace, scaling as there.

A job stands for a problem of the fleet, run as often as fills the time that the trace has for it. The trace thus says
how long the job takes on the nodes it asked for (measured); how much longer it takes on fewer nodes or on another
machine is what the fleet's runs say; and what a scheduler expects of each is the target model's prediction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Planning
from perf_assets.scheduling.estimates import asked_seconds, check_requests, model_learner, planned
from perf_assets.scheduling.kernels.compiled import Floats, Integers, Mask
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS, Jobs
from perf_assets.scheduling.kernels.learner import Learner
from perf_assets.scheduling.traces.trace import Trace


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem that was run on one or several numbers of nodes, on one or several machines."""

    app: str
    machine: Integers
    """Position of each run's machine in the cluster's list."""
    nodes: Integers
    seconds: Floats
    predicted: Floats
    """Prediction of that machine's model, which has not seen the run."""
    upper: Floats
    """Upper end of its interval."""

    def asked_for(self) -> int:
        """The run that users ask for: the fastest on the first machine. They are taken to know their problem."""
        return int(np.argmin(np.where(self.machine == 0, self.seconds, np.inf)))

    def narrower(self) -> Mask:
        """Per run, whether it is on the first machine, on fewer nodes than users ask for."""
        return np.asarray((self.machine == 0) & (self.nodes < self.nodes[self.asked_for()]))


@dataclass(frozen=True)
class Freedom:
    """Options of a job that the scheduler may choose."""

    nodes: bool = False
    """Fewer nodes than asked for."""
    machine: bool = False
    """Another machine than the first."""


@dataclass(frozen=True, eq=False)
class FleetJobs:
    """A trace whose jobs behave like problems of the fleet."""

    trace: Trace
    problems: Sequence[Problem]
    machine_nodes: Sequence[int]
    problem: Integers
    """Problem of each job."""

    @classmethod
    def mapped(cls, trace: Trace, problems: Sequence[Problem], machine_nodes: Sequence[int], seed: int) -> "FleetJobs":
        """Jobs of the same user, size and request are the same problem, drawn at random: application, then problem.

        A job of several nodes is one that was run on several numbers of nodes, where there is such.
        """
        here = [problem for problem in problems if (problem.machine == 0).any()]
        if not here:
            raise BadInputError("no problem of the fleet was run on the first machine")
        scaling = [index for index, problem in enumerate(here) if problem.narrower().any()]
        everything = list(range(len(here)))
        random = np.random.default_rng(seed)
        # Sorted, so that the same jobs in another order are the same problems.
        keys, group = np.unique(
            np.stack([trace.user, trace.nodes, asked_seconds(trace)], axis=1), axis=0, return_inverse=True
        )
        drawn = [_draw(here, scaling if scaling and nodes > 1 else everything, random) for _, nodes, _ in keys]
        return cls(trace, here, machine_nodes, np.array(drawn, np.int64)[group.reshape(-1)])

    def jobs(self, planning: Planning, freedom: Freedom) -> tuple[Jobs, Learner]:
        """Jobs as the simulator takes them, with their estimates."""
        check_requests(self.trace, planning)
        options = self._options(freedom)
        job, problem_run = options[:, 0], options[:, 1]
        problems = self.problem[job]
        first = np.searchsorted(job, np.arange(len(self.trace) + 1))
        wanted = np.array([problem.asked_for() for problem in self.problems])
        sizes = [len(problem.nodes) for problem in self.problems]
        start = np.cumsum([0, *sizes[:-1]])
        flat, base = start[problems] + problem_run, start[problems] + wanted[problems]
        seconds, predicted, upper, nodes, machine = (
            np.concatenate([getattr(problem, name) for problem in self.problems])
            for name in ("seconds", "predicted", "upper", "nodes", "machine")
        )
        run = np.maximum(self.trace.run[job] * (seconds[flat] / seconds[base]), LEAST_SECONDS)
        expected = np.maximum(self.trace.run[job] * (predicted[flat] / seconds[base]), LEAST_SECONDS)
        # Of other widths and machines users know nothing: what they asked for grows as the model says, with its doubt.
        growth = np.where(flat == base, 1.0, upper[flat] / predicted[base])
        asked = np.maximum(asked_seconds(self.trace)[job] * growth, LEAST_SECONDS)
        width = np.maximum(np.rint(self.trace.nodes[job] * nodes[flat] / nodes[base]), 1).astype(np.int64)
        jobs = Jobs(self.trace.submit, first, machine[flat], width, run, *planned(run, asked, planning))
        apps = sorted({problem.app for problem in self.problems})
        kinds = np.array([apps.index(problem.app) for problem in self.problems])[self.problem]
        return jobs, model_learner(kinds, expected, asked, planning)

    def _options(self, freedom: Freedom) -> Integers:
        """Rows of job and run of its problem: first what was asked for, then what else fits and is not the same."""
        choices = {index: _choices(problem, freedom) for index, problem in enumerate(self.problems)}
        rows: list[tuple[int, int]] = []
        for job, (index, asked) in enumerate(zip(self.problem.tolist(), self.trace.nodes.tolist(), strict=True)):
            problem = self.problems[index]
            wanted = problem.asked_for()
            seen = set()
            for run in choices[index]:
                where = int(problem.machine[run])
                width = max(1, round(asked * int(problem.nodes[run]) / int(problem.nodes[wanted])))
                if width <= self.machine_nodes[where] and (where, width) not in seen:
                    seen.add((where, width))
                    rows.append((job, run))
        return np.array(rows, np.int64)


def _draw(problems: Sequence[Problem], among: list[int], random: np.random.Generator) -> int:
    apps = sorted({problems[index].app for index in among})
    app = apps[random.integers(len(apps))]
    of_app = [index for index in among if problems[index].app == app]
    return of_app[random.integers(len(of_app))]


def _choices(problem: Problem, freedom: Freedom) -> list[int]:
    """Runs of a problem that the scheduler may choose from: what was asked for, then wider before narrower."""
    wanted = problem.asked_for()
    choices = [wanted]
    order = np.argsort(-problem.nodes, kind="stable")
    if freedom.nodes:
        narrower = problem.narrower()
        choices += [int(run) for run in order if narrower[run]]
    if freedom.machine:
        for machine in sorted(set(problem.machine.tolist()) - {0}):
            there = np.flatnonzero(problem.machine == machine)
            fastest = int(there[np.argmin(problem.predicted[there])])
            choices.append(fastest)
            if freedom.nodes:
                choices += [int(run) for run in order if run in there and problem.nodes[run] < problem.nodes[fastest]]
    return choices
