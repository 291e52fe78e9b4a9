"""The model of one way in which programs see a machine, and the choice it came from.

The candidates that pair runs (the source's time or a prior, as it is, with a constant ratio, with a correction over
runs) are averaged by their evidence on the shots. Where the shots disagree with that average more than with a model of
the shots alone, that one is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.core.metrics import mape_of_logs
from perf_assets.features.folds import folds_of
from perf_assets.features.samples import Floats, Indices, Mask, PairedSamples
from perf_assets.models.common.conformal import Interval, cross_conformal
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.common.severity import severity
from perf_assets.models.target.causes import Expectation
from perf_assets.models.target.correction import PairedModel, fit_correction, starts
from perf_assets.models.target.prior import Prior
from perf_assets.models.target.shots_only import SHOTS_ONLY, ShotsOnly

PAIRED = "paired"
"""The average of all candidates that pair runs."""
_FOLDS = 5
_LEAST_SHOTS = 5
"""Shots that a choice on held-out ones needs: with fewer, a model of the shots alone knows next to nothing."""
_ENOUGH_FOR_INTERVAL = 20
"""Held-out shots that tell where nine tenths of the errors end, with two of them beyond; with fewer, the model's own
spread tells."""
_LEVEL = 0.9


@dataclass(frozen=True)
class CandidateScore:
    """Score of a candidate on held-out shots."""

    name: str
    mape: float
    log_rmse: float


@dataclass(frozen=True, eq=False)
class AdaptedView:
    """The model of one way in which programs see the machine."""

    source: str
    """Reference machine whose runs it starts from."""
    shots: int
    chosen: str
    candidates: tuple[CandidateScore, ...]
    """Candidates and baselines, on the same held-out shots; none where there are too few shots to hold out."""
    interval: Interval | None
    """Interval of log seconds, from held-out shots or, without any shot, from known machines that played the target;
    where it is None the model's own spread is taken."""
    interval_alone: Interval | None
    """Interval of configurations that ran on the source and nowhere else: less is known of them."""
    model: PairedModel
    shots_only: ShotsOnly | None = None
    """Predicts instead of `model` where it was chosen; next runs are planned with `model` all the same."""
    severity: float | None = None
    """Severity of the transfer, 0 (easy) to 1; None where shots are too few."""
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Log seconds of each shot by its configuration, predicted by a fit that did not see it."""
    held_out_alone: Mapping[str, float] = field(default_factory=dict)
    """Log seconds of each shot by its configuration, by the best baseline that is fitted to the shots alone."""

    def distribution(self, samples: PairedSamples, rows: Indices) -> tuple[Floats, Floats]:
        """Log seconds of configurations, and the half width of their 90% interval."""
        if self.interval is None or self.interval_alone is None:
            mean, spread = self.model.distribution(samples, rows)
            return mean, NINETY_PERCENT * spread
        widths = np.where(
            known_elsewhere(samples, rows, self.model), self.interval.half_width, self.interval_alone.half_width
        )
        if self.shots_only is not None:
            return self.shots_only.predict(samples.counters[self.model.source, rows]), widths
        return self.model.predict(samples, rows), widths

    @property
    def uses_prior(self) -> bool:
        """Whether its predictions rest mainly on the benchmark, not on the source's time alone."""
        has_weights = self.model.prior is not None and bool(self.model.prior.weights)
        return has_weights and self.shots_only is None and float(self.model.shares @ self.model.has_prior) >= 0.5


def adapt_view(
    samples: PairedSamples,
    source: int,
    target: int,
    shots: Indices,
    seed: int,
    prior: Prior | None,
    expected: Expectation | None = None,
) -> AdaptedView:
    """Fit the candidates to the shots, and choose between their average and models of the shots alone.

    `expected` is what is expected of corrections of the source's time, where that is known already.
    """
    name = samples.machines[source]
    if expected is None and prior is not None:
        expected = prior.expected_unchanged
    every = fit_correction(samples, source, target, shots, starts(prior, shots), expected, keeps_all=True)
    model = every.without_negligible()
    if not len(shots):
        starts_from_prior = model.prior is not None and model.prior.weights
        chosen = "with_prior" if starts_from_prior else "source_unchanged"
        return AdaptedView(name, 0, chosen, (), *_intervals_before_shots(prior), model)
    if len(shots) < _LEAST_SHOTS:
        return AdaptedView(
            source=name, shots=len(shots), chosen=PAIRED, candidates=(), interval=None, interval_alone=None, model=model
        )
    true = samples.log_seconds[target, shots]
    held_out = {PAIRED: model.held_out(samples, shots)[0]}
    held_out |= {method: _shots_only_held_out(method, samples, source, target, shots, seed) for method in SHOTS_ONLY}
    chosen = _or_shots_only(held_out, true)
    hard = pair_severity(samples, source, target, shots)
    intervals: tuple[Interval | None, Interval | None] = (None, None)
    if len(shots) >= _ENOUGH_FOR_INTERVAL or chosen != PAIRED:
        alone_here = model.held_out(samples, shots, alone=True)[0] if chosen == PAIRED else held_out[chosen]
        widening = 1.0 if hard is None else hard
        narrow, wide = (cross_conformal(predicted, true, widening) for predicted in (held_out[chosen], alone_here))
        intervals = narrow, wide
    held_out |= {name: every.only(name).held_out(samples, shots)[0] for name in dict.fromkeys(every.candidates)}
    scores = tuple(_score(method, predicted, true) for method, predicted in held_out.items())
    alone = ShotsOnly.fit(chosen, samples, source, target, shots) if chosen in SHOTS_ONLY else None
    baseline = min(SHOTS_ONLY, key=lambda method: float(np.mean((held_out[method] - true) ** 2)))
    names = [samples.configurations[row] for row in shots]
    by_name = [dict(zip(names, held_out[method].tolist(), strict=True)) for method in (chosen, baseline)]
    return AdaptedView(name, len(shots), chosen, scores, *intervals, model, alone, hard, *by_name)


def known_elsewhere(samples: PairedSamples, rows: Indices, model: PairedModel) -> Mask:
    """Per configuration, whether a machine that is neither source nor target ran them."""
    others = np.setdiff1d(np.arange(len(samples.machines)), [model.source, model.target])
    return np.asarray(np.isfinite(samples.log_seconds[others][:, rows]).any(axis=0))


def pair_severity(samples: PairedSamples, source: int, target: int, shots: Indices) -> float | None:
    """Rescaled severity of the transfer, from what was measured on both machines; None where shots are too few."""
    runs = np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark
    theirs, ours = samples.counters[source, runs], samples.counters[target, shots]
    theirs, ours = (values[:, np.isfinite(values).all(axis=0)] for values in (theirs, ours))
    try:
        return severity(theirs, samples.log_seconds[source, runs], ours, samples.log_seconds[target, shots]).rescaled
    except BadInputError:
        return None


def _intervals_before_shots(prior: Prior | None) -> tuple[Interval | None, Interval | None]:
    if prior is None or prior.half_widths is None:
        return None, None
    narrow, wide = (Interval(width, _LEVEL) for width in prior.half_widths)
    return narrow, wide


def _shots_only_held_out(
    method: str, samples: PairedSamples, source: int, target: int, shots: Indices, seed: int
) -> Floats:
    """Log seconds of the shots, each predicted by a model of some of the others alone."""
    predicted = np.empty(len(shots))
    for inside, outside in folds_of(len(shots), _FOLDS, seed):
        model = ShotsOnly.fit(method, samples, source, target, shots[inside])
        predicted[outside] = model.predict(samples.counters[source, shots[outside]])
    return predicted


def _or_shots_only(held_out: Mapping[str, Floats], true: Floats) -> str:
    """A model of the shots alone where it is better by more than a standard error; it has much more to learn."""
    squares = {method: (predicted - true) ** 2 for method, predicted in held_out.items()}
    best = min(SHOTS_ONLY, key=lambda method: float(squares[method].mean()))
    gain = squares[PAIRED] - squares[best]
    return best if gain.mean() > gain.std(ddof=1) / np.sqrt(len(true)) else PAIRED


def _score(name: str, predicted: Floats, true: Floats) -> CandidateScore:
    error = np.clip(predicted - true, -50, 50)
    return CandidateScore(name, mape_of_logs(error), float(np.sqrt(np.mean(error**2))))
