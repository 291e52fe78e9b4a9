"""Estimates that learn from jobs that have ended, while the schedule is simulated: nothing of the future is used.

Each option of a job has a base: a second, or what a model predicts. What is learned is the ratio of run time to base.
The estimate is the base times the median ratio of the last jobs most like this one. The bound is the estimate times a
factor that past jobs stayed below but for a share, the kill target. The factor follows what happens (adaptive conformal
inference): each job above its bound widens the bounds of those that come, each below narrows them a little.
"""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, compiled
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS, Jobs

_LEAST_SCORES = 50
"""Jobs from which on a bound is below the cap."""


class Learner(NamedTuple):
    """Its settings and what it remembers."""

    learns: bool
    """Whether estimates are learned; otherwise those of the jobs stand."""
    plans_with_bound: bool
    """Whether the scheduler plans with the bound instead of the estimate."""
    kills_at_bound: bool
    """Whether jobs are killed at the bound, instead of the limit that they have."""
    kill_target: float
    """Share of jobs that may run longer than their bound."""
    step: float
    """Speed at which the bounds follow new run times."""
    ratio_before: float
    """Run time / base as long as nothing is known; infinite where estimates then are the cap."""
    base: Floats
    """First estimate of each option, in seconds."""
    cap: Floats
    """Per option, seconds that neither estimate nor bound exceeds."""
    groups: Integers
    """Levels x jobs: which jobs are alike, the closest level first; numbers are not used twice."""
    ratios: Floats
    """Groups x places: run time / base of the last jobs of each group."""
    seen: Integers
    """Ended jobs of each group."""
    scores: Floats
    """Levels x places: run time / estimate of the last jobs that were estimated from that level."""
    scored: Integers
    """Scores of each level so far."""
    missing: Floats
    """Per level, the share that may now lie above the bound, moved around the target."""
    level: Integers
    """Per job, the level that its estimate is from; one more than there are where nothing was known."""
    estimate: Floats
    """Estimate of each option, as it was at submission."""
    bound: Floats


@compiled
def estimate_job(learner: Learner, jobs: Jobs, job: int) -> None:
    """Set what the scheduler plans with, and where it kills, from jobs that have ended."""
    if not learner.learns:
        return
    level, ratio = _ratio(learner, job)
    factor = _factor(learner, level)
    learner.level[job] = level
    for option in range(jobs.first[job], jobs.first[job + 1]):
        cap = learner.cap[option]
        estimate = max(LEAST_SECONDS, min(cap, learner.base[option] * ratio))
        bound = max(LEAST_SECONDS, min(cap, estimate * factor))
        learner.estimate[option], learner.bound[option] = estimate, bound
        jobs.estimate[option] = bound if learner.plans_with_bound else estimate
        if learner.kills_at_bound:
            jobs.limit[option] = bound


@compiled
def learn(learner: Learner, jobs: Jobs, job: int, option: int) -> None:
    """A job has ended. Of one that was killed it is only known that it would have taken longer."""
    if not learner.learns:
        return
    was_killed = jobs.run[option] > jobs.limit[option]
    seconds = min(jobs.run[option], jobs.limit[option])
    for level in range(len(learner.groups)):
        group = learner.groups[level, job]
        learner.ratios[group, learner.seen[group] % learner.ratios.shape[1]] = seconds / learner.base[option]
        learner.seen[group] += 1
    level, bound = learner.level[job], learner.bound[option]
    score = np.inf if was_killed else seconds / learner.estimate[option]
    learner.scores[level, learner.scored[level] % learner.scores.shape[1]] = score
    learner.scored[level] += 1
    is_above = bound < learner.cap[option] and (was_killed or seconds > bound)
    learner.missing[level] += learner.step * (learner.kill_target - (1.0 if is_above else 0.0))


@compiled
def _ratio(learner: Learner, job: int) -> tuple[int, float]:
    """The level that an estimate comes from, and run time / base there."""
    for level in range(len(learner.groups)):
        group = learner.groups[level, job]
        count = min(learner.seen[group], learner.ratios.shape[1])
        if count > 0:
            return level, float(np.median(learner.ratios[group, :count]))
    return len(learner.groups), learner.ratio_before


@compiled
def _factor(learner: Learner, level: int) -> float:
    """Bound / estimate; infinite where too little is known to promise anything."""
    count = min(learner.scored[level], learner.scores.shape[1])
    if count < _LEAST_SCORES or learner.missing[level] <= 0:
        return np.inf
    place = int(np.ceil((count + 1) * (1 - learner.missing[level]))) - 1
    if place >= count:
        return np.inf
    return float(np.partition(learner.scores[level, :count], place)[place])
