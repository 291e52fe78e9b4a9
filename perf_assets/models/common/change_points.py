"""Change points of a series of measurements, by a test that may be looked at after every one of them.

The values before a change and those after it are compared by order alone. As long as nothing changes, every order of
the values is as likely as any other, whatever their distribution: a new value falls between two of the first `t` with
a chance that is known (Polya's urn). A bet on where it falls, should the level have moved after the first `t`, wins
where the level has moved. The mean of such bets, over all `t` and several sizes of the change, is expected to stay
what it is where nothing changes, so it ever grows to `1 / chance` with that chance at most (Ville's inequality), over
all looks.

That is so where no value remembers the one before it. Where values do, `n` of them say as much about their level as
`n (1 - r) / (1 + r)` independent ones, with `r` their correlation with the one before (autoregressive values of order
one). So what a bet wins is raised to that power, with `r` as the values before the change have it, estimated with
care: a few of them are taken to remember. Such a power of a bet wins less than the bet on average, so that the promise
stays for independent values; for others it is kept as well as their memory is known (benchmarks/health.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from perf_assets.features.samples import Floats, Indices

FEWEST = 8
"""Values before a change from which on it can be noticed."""
MOST = 730
"""Values that count, the newest: the cost grows with their square."""
_EXPECTED_MEMORY, _EXPECTED_BY = 0.5, 20
"""Correlation of values with the one before them that is expected, and as how many values that counts."""
_SHIFTS = np.array([-8.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0, 8.0])
"""Sizes of the changes that are bet on, in standard deviations."""


@dataclass(frozen=True)
class Period:
    """Values of a series between two changes: from `begin` up to, and without, `end`."""

    begin: int
    end: int
    log_evidence: float
    """Logarithm of what the bets against no further change have won when it was greatest."""


def periods(values: Sequence[float] | Floats, false_alarms: float) -> list[Period]:
    """Cut a series, oldest first, where its level changed.

    In a series without any change a cut is ever made with chance `false_alarms` at most. After a cut the test begins
    anew with what follows the value that gave it away.
    """
    series = _in_order(np.asarray(values, np.float64)[-MOST:])
    dropped, limit = len(values) - len(series), -np.log(false_alarms)
    finished: list[Period] = []
    begin = start = 0
    while True:
        evidence, change_points = _evidence(series[start:])
        reached = np.flatnonzero(evidence >= limit)
        if not len(reached):
            most = float(evidence.max(initial=0.0))
            return [*finished, Period(dropped + begin if begin else 0, len(values), most)]
        look = int(reached[0])
        change = start + int(change_points[look])
        finished.append(Period(dropped + begin if begin else 0, dropped + change, float(evidence[look])))
        begin, start = change, start + look + 1


def _in_order(values: Floats) -> Floats:
    """Place of each value among all; of equal ones a random one comes first."""
    places = np.empty(len(values))
    places[np.lexsort((np.random.default_rng(0).random(len(values)), values))] = np.arange(len(values))
    return places


def _evidence(series: Floats) -> tuple[Floats, Indices]:
    """After every value the log of the mean bet, and the number of values before the most likely change."""
    count = len(series)
    if count <= FEWEST:
        return np.zeros(count), np.zeros(count, np.intp)
    # The shares of the change points, c / (t (t + 1)), add up to one over all t from FEWEST on.
    points = np.arange(FEWEST, count)
    won = np.stack([_won(series, point) for point in range(FEWEST, count)])
    shares = np.log(FEWEST) - np.log(points) - np.log(points + 1)
    # What has not begun yet keeps its share.
    total = np.logaddexp.reduce(won + shares[:, None], axis=0)
    later = np.log(FEWEST / count)
    return np.logaddexp(total, later), points[np.argmax(won + shares[:, None], axis=0)]


def _won(series: Floats, point: int) -> Floats:
    """Log of the bet that the level moved after the first `point` values, after every value."""
    later = series[point:]
    slots = np.searchsorted(np.sort(series[:point]), later)
    before = _earlier_in_the_same_slot(slots)
    if_unchanged = np.log1p(before) - np.log(point + 1 + np.arange(len(later)))
    bets = np.cumsum(_log_chances(point)[:, slots] - if_unchanged, axis=1)
    memory = _memory(series[:point])
    counted = bets * (1 - memory) / (1 + memory)
    return np.concatenate([np.zeros(point), np.logaddexp.reduce(counted, axis=0) - np.log(len(_SHIFTS))])


@lru_cache(maxsize=MOST)
def _log_chances(point: int) -> Floats:
    """Log of the chance of each gap between the first values, per size of the change."""
    edges = ndtri(np.arange(point + 2) / (point + 1))
    return np.asarray(np.log(np.maximum(np.diff(ndtr(edges[None, :] - _SHIFTS[:, None]), axis=1), 1e-300)))


def _memory(first: Floats) -> float:
    """Correlation of values with the one before them, by their order: a careful estimate, between 0 and 1."""
    count = len(first)
    scores = ndtri((np.argsort(np.argsort(first)) + 0.5) / count)
    estimate = max(float(scores[1:] @ scores[:-1] / (scores @ scores)), 0.0)
    # That of few values is too small on average.
    unbiased = min(estimate + (1 + 3 * estimate) / count, 1.0)
    return (count * unbiased + _EXPECTED_BY * _EXPECTED_MEMORY) / (count + _EXPECTED_BY)


def _earlier_in_the_same_slot(slots: Indices) -> Indices:
    """Number of earlier values in the slot of each value."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.arange(len(slots)) - np.repeat(starts, np.diff([*starts, len(slots)]))
    earlier = np.empty(len(slots), np.intp)
    earlier[order] = counts
    return earlier
