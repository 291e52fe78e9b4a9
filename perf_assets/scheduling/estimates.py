"""Times that a scheduler plans with, and limits at which it kills."""

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Estimates, KillAt, Planning
from perf_assets.scheduling.kernels.compiled import Floats, Integers
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS, Jobs
from perf_assets.scheduling.kernels.learner import Learner
from perf_assets.scheduling.traces.trace import Trace

_REMEMBERED = 8
"""Last jobs of a group that an estimate is the median of."""
_SCORES = 1000
"""Last jobs that a bound is a quantile over."""
_STEP = 0.005
WITHOUT_REQUEST_SECONDS = 86_400.0
"""Planned for a job that nothing is known of: neither did its user ask for a time nor has the like of it ended."""


def plain_jobs(trace: Trace, planning: Planning) -> Jobs:
    """The jobs of a trace as they were submitted: one machine, as many nodes as asked for."""
    check_requests(trace, planning)
    count = len(trace)
    return Jobs(
        trace.submit,
        np.arange(count + 1),
        np.zeros(count, np.int64),
        trace.nodes,
        trace.run,
        *planned(trace.run, asked_seconds(trace), planning),
    )


def check_requests(trace: Trace, planning: Planning) -> None:
    """Refuse to plan with users' estimates where a log has none."""
    if planning.estimates is Estimates.USER and not trace.has_requests():
        raise BadInputError(f"{trace.name} does not say how long users asked for: take other estimates than the user's")


def planned(run: Floats, asked: Floats, planning: Planning) -> tuple[Floats, Floats]:
    """Estimates and limits of options before anything is learned; `asked` is infinite where nobody asked."""
    limit = np.full(len(run), np.inf) if planning.kill_at is KillAt.NEVER else asked.copy()
    if planning.estimates is Estimates.ORACLE:
        return np.minimum(run, limit), limit
    return np.where(np.isfinite(asked), asked, WITHOUT_REQUEST_SECONDS), limit


def asked_seconds(trace: Trace) -> Floats:
    """Seconds that users asked for, at least one; infinite where they did not ask."""
    return np.where(np.isfinite(trace.request), np.maximum(trace.request, LEAST_SECONDS), np.inf)


def no_learner() -> Learner:
    """Learner that leaves the estimates of the jobs unchanged."""
    return _learner(Planning(), np.inf, np.zeros(0), np.zeros(0), np.zeros((0, 0), np.int64))


def history_learner(
    trace: Trace, planning: Planning, ratio: Floats | None = None, asked_of: Floats | None = None
) -> Learner:
    """Learner from jobs of the same user: of the same size and request, then of the same request, then of any.

    Where jobs have several options, `ratio` is the predicted time of each over that of the job as it was submitted, and
    `asked_of` its limit.
    """
    if not planning.learns:
        return no_learner()
    asked = asked_seconds(trace)
    levels = [
        _group(trace.user, trace.application, trace.nodes, asked),
        _group(trace.user, trace.application, asked),
        _group(trace.user),
        np.zeros(len(trace), np.int64),
    ]
    most = asked if asked_of is None else asked_of
    cap = np.where(np.isfinite(most), most, WITHOUT_REQUEST_SECONDS)
    base = np.ones(len(trace)) if ratio is None else ratio
    return _learner(planning, np.inf, base, cap, _without_overlap(levels))


def model_learner(kinds: Integers, base: Floats, cap: Floats, planning: Planning) -> Learner:
    """Learner from what a model predicts of each option, and how jobs of the same kind compared with it so far."""
    if not planning.learns:
        return no_learner()
    return _learner(planning, 1.0, base, cap, _without_overlap([kinds, np.zeros(len(kinds), np.int64)]))


def _learner(planning: Planning, ratio_before: float, base: Floats, cap: Floats, groups: Integers) -> Learner:
    levels, jobs, options = len(groups), groups.shape[1], len(base)
    count = int(groups.max()) + 1 if groups.size else 0
    return Learner(
        planning.learns,
        planning.estimates is Estimates.BOUND,
        planning.kill_at is KillAt.BOUND,
        planning.kill_target,
        _STEP,
        ratio_before,
        base,
        cap,
        groups,
        np.zeros((count, _REMEMBERED)),
        np.zeros(count, np.int64),
        np.zeros((levels + 1, _SCORES)),
        np.zeros(levels + 1, np.int64),
        np.full(levels + 1, planning.kill_target),
        np.zeros(jobs, np.int64),
        np.zeros(options),
        np.zeros(options),
    )


def _group(*columns: Floats | Integers) -> Integers:
    """Number of each job's group: jobs that agree in all columns."""
    stacked = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    return np.unique(stacked, axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _without_overlap(levels: list[Integers]) -> Integers:
    """Group numbers that no other level uses."""
    first = np.cumsum([0, *(int(level.max()) + 1 for level in levels[:-1])])
    return np.stack([level + start for level, start in zip(levels, first, strict=True)])
