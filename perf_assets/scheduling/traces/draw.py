"""Jobs drawn from a window of a log: submissions stay, what comes is drawn from what came at such times.

A job's size, duration, user and application are those of a job of the same hours (working hours, off hours, weekend);
its limit is what users asked for, at such hours, of jobs that took about as long. Nothing else is assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.kernels.compiled import Floats, Integers
from perf_assets.scheduling.traces.swf import read_swf
from perf_assets.scheduling.traces.trace import Trace

WORKING, OFF, WEEKEND = "working hours", "off hours", "weekend"
HOURS = (WORKING, OFF, WEEKEND)
_FIRST_HOUR, _LAST_HOUR, _SATURDAY = 8, 18, 5
_NEIGHBOURS = 50
"""Jobs of about the same length whose limits are drawn from."""
_MOST_DISTANCE = 1.95
"""Kolmogorov-Smirnov distance, times the root of the harmonic size, that one draw in a thousand exceeds by chance."""


def simulated_trace() -> Trace:
    """The small log that ships with the package: simulated, no machine ran it."""
    return replace(read_swf(Path(__file__).with_name("simulated.swf.gz")), name="simulated log", is_simulated=True)


def hours_of(trace: Trace) -> Integers:
    """Kind of hours in which each job is submitted; all the same where the log does not say when it begins."""
    local = trace.local_times()
    if local is None:
        return np.zeros(len(trace), np.int64)
    works = (local.hour >= _FIRST_HOUR) & (local.hour < _LAST_HOUR)
    return np.where(local.dayofweek >= _SATURDAY, 2, np.where(works, 0, 1)).astype(np.int64)


def drawn(window: Trace, seed: int) -> Trace:
    """The submissions of a window with jobs drawn from it, with replacement."""
    random = np.random.default_rng(seed)
    hours = hours_of(window)
    source, limit = np.empty(len(window), np.int64), np.empty(len(window))
    for kind in np.unique(hours):
        of_kind = np.flatnonzero(hours == kind)
        source[of_kind] = random.choice(of_kind, len(of_kind))
        limit[of_kind] = limits_for(window.where(of_kind), window.run[source[of_kind]], random)
    jobs = window.where(source)
    return replace(
        jobs,
        name=f"{window.name}, drawn with seed {seed}",
        number=np.arange(1, len(window) + 1),
        submit=window.submit,
        request=_at_least(limit, jobs),
    )


def limits_for(window: Trace, run: Floats, random: np.random.Generator) -> Floats:
    """Limits that users asked for of jobs about as long as these; NaN where such a job had none."""
    order = np.argsort(window.run, kind="stable")
    count = min(_NEIGHBOURS, len(order))
    # From either side of the jobs of just that length: times are whole seconds, and many are the same.
    low, high = (np.searchsorted(window.run[order], run, side) for side in ("left", "right"))
    place = np.where(high > low, low + np.floor(random.random(len(run)) * np.maximum(high - low, 1)), low)
    first = np.clip(place.astype(np.int64) - count // 2, 0, len(order) - count)
    limits: Floats = window.request[order[first + random.integers(0, count, len(run))]]
    return limits


def _at_least(limit: Floats, jobs: Trace) -> Floats:
    """Limits, but a job that ended within its own keeps it where a neighbour's would kill it."""
    return np.where((limit < jobs.run) & ~(jobs.request < jobs.run), jobs.request, limit)


@dataclass(frozen=True)
class Likeness:
    """One quantity of drawn jobs beside the window's."""

    window_mean: float
    drawn_mean: float
    distance: float
    """Kolmogorov-Smirnov distance of both distributions."""
    expected: float
    """Distance that chance exceeds once in a thousand draws."""

    @property
    def is_alike(self) -> bool:
        """Whether chance explains the difference."""
        return self.distance <= self.expected


def likeness(window: Trace, jobs: Trace) -> Mapping[str, Likeness]:
    """Nodes, durations, node-seconds and limits of drawn jobs beside the window's, by kind of hours."""
    if len(window) != len(jobs):
        raise BadInputError("drawn jobs are as many as the window has")
    hours, likenesses = hours_of(window), {}
    for kind in np.unique(hours):
        chosen = hours == kind
        ours, theirs = jobs.where(chosen), window.where(chosen)
        for name in ("nodes", "run", "node_seconds", "request"):
            one, other = _values(theirs, name), _values(ours, name)
            if len(one) and len(other):
                likenesses[f"{name}, {HOURS[kind]}"] = _compared(one, other)
    return likenesses


def _values(trace: Trace, name: str) -> Floats:
    values = trace.run * trace.nodes if name == "node_seconds" else getattr(trace, name)
    return np.asarray(values[np.isfinite(values)], float)


def _compared(window: Floats, jobs: Floats) -> Likeness:
    every = np.unique(np.concatenate([window, jobs]))
    shares = [np.searchsorted(np.sort(values), every, "right") / len(values) for values in (window, jobs)]
    size = len(window) * len(jobs) / (len(window) + len(jobs))
    return Likeness(
        float(window.mean()),
        float(jobs.mean()),
        float(np.abs(shares[0] - shares[1]).max()),
        float(_MOST_DISTANCE / np.sqrt(size)),
    )
