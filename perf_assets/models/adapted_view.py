"""The model of one way in which programs see a machine, and the choice it came from.

The correction is chosen on held-out shots among those without prior, with it, and both weighted by evidence. Where the
shots disagree with all of them more than with a model of the shots alone, that one is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Floats, Indices, Mask, PairedSamples
from perf_assets.models.conformal import Interval, cross_conformal
from perf_assets.models.folds import folds_of
from perf_assets.models.paired_adaptation import PairedModel, fit_correction
from perf_assets.models.paired_evaluation import NINETY_PERCENT
from perf_assets.models.paired_prior import Prior
from perf_assets.models.severity import severity
from perf_assets.models.shots_only import SHOTS_ONLY, ShotsOnly

CANDIDATES = ("without_prior", "with_prior", "paired")
"""Simplest first: ties go to it."""
_FOLDS = 5
_LEAST_SHOTS = 5
"""To choose on held-out shots."""
_TIE = 0.98
"""A candidate must have less than this share of a simpler one's squared error to be taken."""


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did on held-out shots."""

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
    """All of them and the baselines, on the same held-out shots; none where there are too few shots to hold out."""
    interval: Interval | None
    """Of log seconds, from held-out shots; without, the model's own spread is taken."""
    interval_alone: Interval | None
    """The same for configurations that ran on the source and nowhere else: less is known of them."""
    model: PairedModel
    shots_only: ShotsOnly | None = None
    """Predicts instead of `model` where it was chosen; next runs are planned with `model` all the same."""
    severity: float | None = None
    """How hard the transfer is, 0 to 1; None where shots are too few to tell."""
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Log seconds of each shot by its configuration, predicted by a fit that did not see it."""
    held_out_alone: Mapping[str, float] = field(default_factory=dict)
    """The same by the best baseline that is fitted to the shots alone."""

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
    def ratio_to_target_only(self) -> float | None:
        """Squared log error of what was chosen over that of the best target-only baseline, on held-out shots."""
        errors = {score.name: score.log_rmse**2 for score in self.candidates}
        alone = [error for name, error in errors.items() if name.startswith("target_")]
        return errors[self.chosen] / min(alone) if alone else None


def adapt_view(
    samples: PairedSamples, source: int, target: int, shots: Indices, seed: int, prior: Prior | None
) -> AdaptedView:
    """Choose among the candidates on held-out shots, and fit to all shots what was chosen."""
    name = samples.machines[source]
    candidates = CANDIDATES if prior is not None else CANDIDATES[:1]
    if len(shots) < _LEAST_SHOTS:
        chosen = candidates[-1] if len(shots) or prior is None else "with_prior"
        model = fit_correction(samples, source, target, shots, _priors(chosen, prior))
        return AdaptedView(name, len(shots), chosen, (), None, None, model)
    true = samples.log_seconds[target, shots]
    held_out = {method: _held_out(method, samples, source, target, shots, seed, prior) for method in candidates}
    correction = _chosen(candidates, held_out, true)
    held_out |= {method: _shots_only_held_out(method, samples, source, target, shots, seed) for method in SHOTS_ONLY}
    chosen = _or_shots_only(correction, held_out, true)
    hard = pair_severity(samples, source, target, shots)
    narrow, wide = (cross_conformal(found, true, 1.0 if hard is None else hard) for found in held_out[chosen])
    unchanged = _score("source_unchanged", samples.log_seconds[source, shots], true)
    scores = (unchanged, *(_score(method, found[0], true) for method, found in held_out.items()))
    model = fit_correction(samples, source, target, shots, _priors(correction, prior))
    alone = ShotsOnly.fit(chosen, samples, source, target, shots) if chosen in SHOTS_ONLY else None
    baseline = min(SHOTS_ONLY, key=lambda method: float(np.mean((held_out[method][0] - true) ** 2)))
    names = [samples.configurations[row] for row in shots]
    by_name = [dict(zip(names, held_out[method][0].tolist(), strict=True)) for method in (chosen, baseline)]
    return AdaptedView(name, len(shots), chosen, scores, narrow, wide, model, alone, hard, *by_name)


def known_elsewhere(samples: PairedSamples, rows: Indices, model: PairedModel) -> Mask:
    """Of configurations, whether a machine that is neither source nor target ran them."""
    others = np.setdiff1d(np.arange(len(samples.machines)), [model.source, model.target])
    return np.asarray(np.isfinite(samples.log_seconds[others][:, rows]).any(axis=0))


def as_run_on_source_only(samples: PairedSamples, source: int, rows: Indices) -> PairedSamples:
    """The same, but for some configurations nobody but the source seems to have run them."""
    names = list(samples.configurations)
    for row in rows:
        names[row] = f"unknown {row}"
    hidden = np.zeros_like(samples.log_seconds, bool)
    hidden[:, rows] = True
    hidden[source] = False
    return replace(samples, configurations=tuple(names), log_seconds=np.where(hidden, np.nan, samples.log_seconds))


def pair_severity(samples: PairedSamples, source: int, target: int, shots: Indices) -> float | None:
    """Rescaled severity of the transfer, from what was measured on both machines; None where shots are too few."""
    runs = np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark
    theirs, ours = samples.counters[source, runs], samples.counters[target, shots]
    theirs, ours = (values[:, np.isfinite(values).all(axis=0)] for values in (theirs, ours))
    try:
        return severity(theirs, samples.log_seconds[source, runs], ours, samples.log_seconds[target, shots]).rescaled
    except BadInputError:
        return None


def _held_out(
    method: str, samples: PairedSamples, source: int, target: int, shots: Indices, seed: int, prior: Prior | None
) -> tuple[Floats, Floats]:
    """Log seconds of the shots, each predicted by a fit that did not see it: as they are, and as if they had run on
    the source only.
    """
    found = np.empty((2, len(shots)))
    for inside, outside in folds_of(len(shots), _FOLDS, seed):
        model = fit_correction(samples, source, target, shots[inside], _priors(method, prior))
        asked = shots[outside]
        found[0, outside] = model.predict(samples, asked)
        found[1, outside] = model.predict(as_run_on_source_only(samples, source, asked), asked)
    return found[0], found[1]


def _shots_only_held_out(
    method: str, samples: PairedSamples, source: int, target: int, shots: Indices, seed: int
) -> tuple[Floats, Floats]:
    """The same of a model of the shots alone: other machines make no difference to it."""
    found = np.empty(len(shots))
    for inside, outside in folds_of(len(shots), _FOLDS, seed):
        model = ShotsOnly.fit(method, samples, source, target, shots[inside])
        found[outside] = model.predict(samples.counters[source, shots[outside]])
    return found, found


def _chosen(candidates: Sequence[str], held_out: Mapping[str, tuple[Floats, Floats]], true: Floats) -> str:
    """The correction with the smallest squared error, ties to the simpler."""
    errors = {method: float(np.mean((held_out[method][0] - true) ** 2)) for method in candidates}
    chosen = candidates[0]
    for method in candidates[1:]:
        if errors[method] < _TIE * errors[chosen]:
            chosen = method
    return chosen


def _or_shots_only(correction: str, held_out: Mapping[str, tuple[Floats, Floats]], true: Floats) -> str:
    """A model of the shots alone where it is better by more than a standard error; it has much more to learn."""
    squares = {method: (found[0] - true) ** 2 for method, found in held_out.items()}
    best = min(SHOTS_ONLY, key=lambda method: float(squares[method].mean()))
    gain = squares[correction] - squares[best]
    return best if gain.mean() > gain.std(ddof=1) / np.sqrt(len(true)) else correction


def _score(name: str, found: Floats, true: Floats) -> CandidateScore:
    error = np.clip(found - true, -50, 50)
    return CandidateScore(name, float(np.mean(np.abs(np.expm1(error)))), float(np.sqrt(np.mean(error**2))))


def _priors(chosen: str, prior: Prior | None) -> Sequence[Prior | None]:
    wanted: dict[str, Sequence[Prior | None]] = {
        "without_prior": [None],
        "with_prior": [prior],
        "paired": [prior, None],
    }
    return wanted[chosen]
