"""Metrics that judge a schedule."""

from dataclasses import dataclass

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats
from perf_assets.scheduling.simulate import Schedule

BOUND_SECONDS = 10.0
"""Least seconds of bounded slowdown: shorter jobs count as if they took that long."""
_TAIL = 0.95


@dataclass(frozen=True)
class Summary:
    """Mean, median and 95th percentile."""

    mean: float
    median: float
    p95: float

    @classmethod
    def of(cls, values: Floats) -> "Summary":
        """Summarise values of all jobs."""
        return cls(float(values.mean()), float(np.median(values)), float(np.quantile(values, _TAIL)))


@dataclass(frozen=True)
class Metrics:
    """Metrics of all jobs of a schedule, those that were killed included; times in seconds."""

    jobs: int
    turnaround: Summary
    """Time from submission to end."""
    wait: Summary
    bounded_slowdown: Summary
    """(wait + run) / max(run, 10 s), at least 1."""
    makespan_s: float
    """Time from the first submission to the last end."""
    utilisation: float
    """Node-seconds used over those that there were until the last end."""
    node_hours: float
    killed: int
    killed_node_hours: float
    """Node-hours of jobs that were killed: spent for nothing."""
    turnaround_with_reruns_mean_s: float
    """Turnaround as if each killed job had waited once more and then run to its end: what kills cost users."""
    underestimated: int
    """Jobs that ran longer than planned at their submission."""
    promises_broken: int
    """Jobs that started later than the scheduler had first promised (EASY: to the head; conservative: to all)."""
    promise_delay_mean_s: float
    """Seconds by which these started later."""
    backfilled: int

    def as_document(self) -> dict[str, float]:
        """Metrics by name, with units."""
        return {
            "turnaround_mean_s": self.turnaround.mean,
            "turnaround_median_s": self.turnaround.median,
            "turnaround_p95_s": self.turnaround.p95,
            "wait_mean_s": self.wait.mean,
            "wait_median_s": self.wait.median,
            "wait_p95_s": self.wait.p95,
            "bounded_slowdown_mean": self.bounded_slowdown.mean,
            "bounded_slowdown_median": self.bounded_slowdown.median,
            "bounded_slowdown_p95": self.bounded_slowdown.p95,
            "makespan_s": self.makespan_s,
            "utilisation": self.utilisation,
            "node_hours": self.node_hours,
            "killed": self.killed,
            "killed_node_hours": self.killed_node_hours,
            "turnaround_with_reruns_mean_s": self.turnaround_with_reruns_mean_s,
            "underestimated": self.underestimated,
            "promises_broken": self.promises_broken,
            "promise_delay_mean_s": self.promise_delay_mean_s,
            "backfilled": self.backfilled,
        }


def bounded_slowdown(wait: Floats, run: Floats) -> Floats:
    """Bounded slowdown of each job."""
    return np.maximum(1.0, (wait + run) / np.maximum(run, BOUND_SECONDS))


def measure(schedule: Schedule) -> Metrics:
    """All metrics of a schedule."""
    outcome, jobs = schedule.outcome, schedule.jobs
    run, wait, was_killed = schedule.seconds, outcome.start - jobs.submit, schedule.was_killed
    node_seconds = run * schedule.nodes
    makespan = float(outcome.end.max() - jobs.submit[0])
    rerun = np.where(was_killed, wait + jobs.run[outcome.option], 0.0)
    late = outcome.start - outcome.promised
    is_late = late > 0
    return Metrics(
        jobs=len(jobs.submit),
        turnaround=Summary.of(wait + run),
        wait=Summary.of(wait),
        bounded_slowdown=Summary.of(bounded_slowdown(wait, run)),
        makespan_s=makespan,
        utilisation=float(node_seconds.sum() / (sum(machine.nodes for machine in schedule.machines) * makespan)),
        node_hours=float(node_seconds.sum() / 3600),
        killed=int(was_killed.sum()),
        killed_node_hours=float(node_seconds[was_killed].sum() / 3600),
        turnaround_with_reruns_mean_s=float((wait + run + rerun).mean()),
        underestimated=int(schedule.was_underestimated.sum()),
        promises_broken=int(is_late.sum()),
        promise_delay_mean_s=float(late[is_late].mean()) if is_late.any() else 0.0,
        backfilled=int(outcome.was_backfilled.sum()),
    )
