"""Whether a new model should replace the one in use, and whether new runs contradict that one.

Both are judged on runs that the models did not see: a run that a model was fitted to is predicted by a fit without it.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincc, betaln

from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.models.common.questions import Questions
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.models.target.view import AdaptedView

THRESHOLD = 1.05
"""Most that a new model's squared log error may be over the champion's, and over the best target-only baseline's."""
_OUTSIDE_SHARE = 0.10
"""Share of runs that a 90% interval leaves outside."""
_FALSE_ALARMS = 0.01
"""Chance of a drift alarm, at any time, for a champion whose intervals hold what they promise."""
SAME_LOG_TIME = 0.01
"""Times that differ by less are the same measurement."""
LARGEST_LOG_ERROR = 50.0
"""Largest log error that counts: beyond it the exponential is not a number."""


@dataclass(frozen=True)
class HeldOutErrors:
    """Log errors on the same held-out runs."""

    own: Floats
    alone: Floats
    """Errors of the best target-only baseline."""
    champion: Floats
    """NaN where there is no champion, or it has no answer."""


@dataclass(frozen=True)
class ModelComparison:
    """A new model beside the champion and the best target-only baseline."""

    is_promoted: bool
    reason: str
    held_out_count: int = 0
    mape_ratio: float | None = None
    log_rmse: float | None = None
    champion_log_rmse: float | None = None
    target_only_mape_ratio: float | None = None
    target_only_log_rmse: float | None = None


@dataclass(frozen=True)
class Drift:
    """Runs that the champion had not seen, against its 90% intervals."""

    new_runs: int
    outside: int
    allowed: int
    """Most that chance explains, however often it is looked at."""
    worst: tuple[tuple[str, float], ...] = ()
    """Runs furthest from what was predicted, and measured over predicted time."""

    @property
    def has_drifted(self) -> bool:
        """Whether more are outside than chance explains."""
        return self.outside > self.allowed


def compare(new: AdaptedTarget, champion: AdaptedTarget | None) -> ModelComparison:
    """Decide whether a new model replaces the champion."""
    by_view = [_held_out(new, name, view, champion) for name, view in new.views.items()]
    own, alone, theirs = (
        np.concatenate([getattr(errors, part) for errors in by_view]) for part in ("own", "alone", "champion")
    )
    was_judged = champion is not None and any(view.held_out for view in champion.views.values())
    return decide(HeldOutErrors(own, alone, theirs), was_judged=was_judged)


def decide(
    errors: HeldOutErrors, *, was_judged: bool, relative: Callable[[Floats], Floats] = np.expm1
) -> ModelComparison:
    """Compare errors on held-out runs; `was_judged` says whether the champion had such runs.

    `relative` makes errors relative to the true values: by their exponential where they are of logarithms.
    """
    own, alone, theirs = errors.own, errors.alone, errors.champion
    if not len(own):
        return _without_runs(was_judged=was_judged)
    judged = np.isfinite(theirs)
    rivals = {"the best target-only baseline": (own, alone)}
    if judged.any():
        rivals["the champion"] = (own[judged], theirs[judged])
    problems = [
        f"its squared error is {_mse(ours) / _mse(other):.2f} times that of {rival}"
        for rival, (ours, other) in rivals.items()
        if _mse(ours) > THRESHOLD * _mse(other)
    ]
    return ModelComparison(
        held_out_count=len(own),
        mape_ratio=float(np.mean(np.abs(relative(own)))),
        log_rmse=float(np.sqrt(_mse(own))),
        champion_log_rmse=float(np.sqrt(_mse(theirs[judged]))) if judged.any() else None,
        target_only_mape_ratio=float(np.mean(np.abs(relative(alone)))),
        target_only_log_rmse=float(np.sqrt(_mse(alone))),
        is_promoted=not problems,
        reason=f"{' and '.join(problems)} (at most {THRESHOLD:g} is allowed)"
        if problems
        else f"not worse than {' and '.join(rivals)}",
    )


def drift(champion: AdaptedTarget, samples: PairedSamples) -> Drift:
    """Hold what was measured since against the champion's intervals."""
    inside, ratios, names = [], [], []
    for name, view in champion.views.items():
        rows = _since(champion, samples, name)
        for row, (mean, lower, upper) in zip(rows, _answers(champion, name, view, samples, rows), strict=True):
            true = samples.log_seconds[samples.machines.index(name), row]
            if np.isfinite(mean):
                inside.append(lower <= true <= upper)
                ratios.append(float(np.exp(np.clip(true - mean, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR))))
                names.append(f"{samples.configurations[row]} on {name}")
    return drift_of(names, inside, ratios)


def drift_of(names: Sequence[str], inside: Sequence[bool], ratios: Sequence[float]) -> Drift:
    """Drift by new runs: whether each is inside of its 90% interval, and its measured over its predicted value."""
    count = len(inside)
    furthest = sorted(zip(names, ratios, strict=True), key=lambda pair: -abs(np.log(pair[1])))
    return Drift(count, count - sum(inside), most_outside(count), tuple(furthest[:5]))


def most_outside(count: int, false_alarms: float = _FALSE_ALARMS) -> int:
    """Largest number of `count` new runs outside of 90% intervals that chance explains, however often one looks.

    A bet on each run pays where more are outside than promised: the mean, over all larger shares, of their likelihood
    over that of the promised one. Where the promise holds, what is won is expected to stay as it is, so it ever grows
    to 1 / `false_alarms` with that chance at most (Ville's inequality): at any number of runs, and over all looks.
    """

    def won(outside: int) -> float:
        left = count - outside
        tail = betaincc(outside + 1, left + 1, _OUTSIDE_SHARE)
        larger = betaln(outside + 1, left + 1) + math.log(tail or sys.float_info.min) - math.log(1 - _OUTSIDE_SHARE)
        return float(larger - outside * math.log(_OUTSIDE_SHARE) - left * math.log(1 - _OUTSIDE_SHARE))

    # The more are outside, the more is won.
    return bisect_left(range(count + 1), -math.log(false_alarms), key=won) - 1


def _without_runs(*, was_judged: bool) -> ModelComparison:
    """Too few runs to hold some out: taken where the champion had no more."""
    reason = (
        "there are too few runs to judge it, and the champion was judged on more"
        if was_judged
        else "there are too few runs to judge it (5 are needed), and no better model exists"
    )
    return ModelComparison(is_promoted=not was_judged, reason=reason)


def _held_out(new: AdaptedTarget, seen_as: str, view: AdaptedView, champion: AdaptedTarget | None) -> HeldOutErrors:
    target = new.samples.machines.index(seen_as)
    row_of = {configuration: row for row, configuration in enumerate(new.samples.configurations)}
    rows = np.array([row_of[configuration] for configuration in view.held_out], np.intp)
    true = new.samples.log_seconds[target, rows]
    own, alone = (
        np.clip(np.array(list(predicted.values()), float) - true, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR)
        for predicted in (view.held_out, view.held_out_alone)
    )
    if champion is None or seen_as not in champion.views:
        return HeldOutErrors(own, alone, np.full(len(rows), np.nan))
    theirs = champion.views[seen_as]
    answers = [mean for mean, _, _ in _answers(champion, seen_as, theirs, new.samples, rows)]
    names = [new.samples.configurations[row] for row in rows]
    known = [theirs.held_out.get(name, mean) for name, mean in zip(names, answers, strict=True)]
    return HeldOutErrors(own, alone, np.clip(np.array(known, float) - true, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR))


def _answers(
    model: AdaptedTarget, name: str, view: AdaptedView, samples: PairedSamples, rows: Indices
) -> Iterator[tuple[float, float, float]]:
    """Log seconds with their interval of configurations, from their runs on the model's reference machine.

    NaN where they did not run there, or the model was made of other features.
    """
    bounds = np.full((3, len(rows)), np.nan)
    if view.source in samples.machines and len(rows):
        source = samples.machines.index(view.source)
        ran = np.isfinite(samples.log_seconds[source, rows])
        asked = rows[ran]
        questions = Questions(
            sources=[view.source] * len(asked),
            targets=[name] * len(asked),
            apps=samples.apps[asked].tolist(),
            configurations=[samples.configurations[row] for row in asked],
            counters=samples.counters[source, asked],
            log_seconds=samples.log_seconds[source, asked],
        )
        if samples.counter_names != model.samples.counter_names:
            return zip(*bounds.tolist(), strict=True)
        if len(asked):
            bounds[:, ran] = model.predict(questions).bounds
    return zip(*bounds.tolist(), strict=True)


def _since(champion: AdaptedTarget, samples: PairedSamples, name: str) -> Indices:
    """Configurations whose time on the machine is new, or another than the champion knew."""
    if name not in samples.machines:
        return np.zeros(0, np.intp)
    now = samples.log_seconds[samples.machines.index(name)]
    before = champion.samples.log_seconds[champion.samples.machines.index(name)]
    then = dict(zip(champion.samples.configurations, before.tolist(), strict=True))
    known = np.array([then.get(configuration, np.nan) for configuration in samples.configurations])
    is_same = np.abs(now - known) < SAME_LOG_TIME
    return np.flatnonzero(np.isfinite(now) & ~samples.is_benchmark & ~is_same)


def _mse(errors: Floats) -> float:
    return float(np.mean(errors**2))
