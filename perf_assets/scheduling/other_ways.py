"""Other ways to run jobs of a log: fewer nodes and other machines, as models of their applications predict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.scheduling.choices import Estimates, Planning
from perf_assets.scheduling.estimates import asked_seconds, history_learner, planned
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS, Jobs
from perf_assets.scheduling.kernels.learner import Learner
from perf_assets.scheduling.simulate import Machine
from perf_assets.scheduling.traces.trace import Trace

NINETY_PERCENT = 1.645
"""Standard deviations of a normal distribution that 90% of its values are within."""


@dataclass(frozen=True)
class Way:
    """Another way to run a job."""

    machine: int
    """Place in the list of machines; 0 is the log's own."""
    nodes: int
    ratio: float
    """Predicted time over that of the job as it was submitted."""
    deviation: float
    """Standard deviation of its logarithm."""


@dataclass(frozen=True, eq=False)
class ModelledJobs:
    """Applications of a log that have models, and what these say of other ways to run."""

    machines: tuple[Machine, ...]
    """The log's own machine first."""
    ways: Mapping[str, Callable[[int], Sequence[Way]]]
    """Other ways of a job by the nodes it asked for, for each application."""
    notes: tuple[str, ...]

    def options(self, trace: Trace, seed: int) -> tuple[Jobs, Learner]:
        """Jobs as they were submitted and their other ways, whose true times are drawn from what is predicted.

        One draw per application and way: a model that is wrong is wrong for all jobs.
        """
        random, planning = np.random.default_rng(seed), Planning(Estimates.PREDICTED)
        by_code = [self.ways.get(name) for name in trace.application_names]
        known: dict[tuple[int, int], Sequence[Way]] = {}
        wrong: dict[tuple[int, int, int], float] = {}
        rows = []
        for job, (code, nodes) in enumerate(zip(trace.application.tolist(), trace.nodes.tolist(), strict=True)):
            rows.append((job, 0, nodes, 1.0, 1.0, 1.0))
            find = by_code[code] if 0 <= code < len(by_code) else None
            if find is None:
                continue
            if (code, nodes) not in known:
                known[code, nodes] = find(nodes)
            for way in known[code, nodes]:
                key = code, way.machine, way.nodes * 100 // nodes
                if key not in wrong:
                    wrong[key] = float(random.normal())
                true = way.ratio * np.exp(wrong[key] * way.deviation)
                most = way.ratio * np.exp(NINETY_PERCENT * way.deviation)
                rows.append((job, way.machine, way.nodes, way.ratio, true, max(1.0, most)))
        job, machine, nodes, ratio, true, most = np.array(rows).T
        place = job.astype(np.int64)
        asked = asked_seconds(trace)[place] * most
        run = np.maximum(trace.run[place] * true, LEAST_SECONDS)
        first = np.searchsorted(place, np.arange(len(trace) + 1))
        jobs = Jobs(
            trace.submit, first, machine.astype(np.int64), nodes.astype(np.int64), run, *planned(run, asked, planning)
        )
        return jobs, history_learner(trace, planning, ratio, asked)

    def count(self, trace: Trace) -> int:
        """Jobs whose application has another way to run."""
        return sum(
            bool(find(nodes))
            for code, nodes in zip(trace.application.tolist(), trace.nodes.tolist(), strict=True)
            if 0 <= code < len(trace.application_names)
            and (find := self.ways.get(trace.application_names[code])) is not None
        )
