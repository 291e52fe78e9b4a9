"""Time at numbers of nodes, ranks, threads or watts that nobody ran: laws of scaling, averaged by their evidence.

Each law is the mean of a Gaussian process (`process.py`): a power law of the width, and Amdahl's law with two serial
shares. They are averaged with the probability that the runs give them; what they disagree about widens the interval.
Intervals are then stretched by held-out errors: of single runs at widths that were run, and at other widths of all
runs of a width, each width predicted from the others only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices, Mask
from perf_assets.models.common.conformal import conformal_quantile
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.scaling.process import NOISE, ScalingInputs, covariance, learned, predicted

LEAST_RUNS, LEAST_WIDTHS = 4, 3
_MOST_LEARNED, _MOST_LEFT_OUT, _MOST_RUNS = 150, 100, 600
"""Runs that settings are learned from, learned anew from without a width, and that are remembered."""
_STEPS_ANEW, _FOLDS = 15, 5
_TINY = 1e-9
_LEVEL = 0.9


def _amdahl(serial: float) -> Callable[[Floats], Floats]:
    return lambda ratio: np.log(serial + (1 - serial) / ratio)


LAWS: Mapping[str, Callable[[Floats], Floats]] = {
    "power law": np.log,
    "Amdahl, 3% serial": _amdahl(0.03),
    "Amdahl, 10% serial": _amdahl(0.1),
}
"""Logarithm of the time by the width, relative to the narrowest that was run."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of runs, as the process sees them: logarithms of numbers, indicators as they are."""

    mean: Floats
    spread: Floats
    is_level: Mask

    @classmethod
    def fit(cls, values: Floats, is_level: Mask) -> "Parameters":
        """Standardisation by the runs that were made."""
        logs = _logs(values, is_level)
        spread = logs.std(axis=0)
        return cls(logs.mean(axis=0), np.where(spread > _TINY, spread, 1.0), is_level)

    def standardised(self, values: Floats) -> Floats:
        """Rows x parameters."""
        return (_logs(values, self.is_level) - self.mean) / self.spread


def _logs(values: Floats, is_level: Mask) -> Floats:
    if not np.isfinite(values).all():
        raise BadInputError("parameters of runs must be numbers: some are missing")
    if (values[:, ~is_level] <= 0).any():
        raise BadInputError("parameters of runs must be positive: their logarithm is taken")
    return np.where(is_level, values, np.log(np.where(is_level, 1.0, values)))


@dataclass(frozen=True)
class ScaledTimes:
    """Predicted seconds with their 90% interval."""

    seconds: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class _Law:
    """A law of scaling as the mean of a process."""

    shape: Callable[[Floats], Floats]
    narrowest: float
    centre: float
    spread: float

    @classmethod
    def of(cls, shape: Callable[[Floats], Floats], widths: Floats) -> "_Law":
        values = shape(widths / widths.min())
        return cls(shape, float(widths.min()), float(values.mean()), float(values.std()) or 1.0)

    def inputs(self, parameters: Parameters, values: Floats, width: int) -> ScalingInputs:
        every = parameters.standardised(values)
        shape = (self.shape(values[:, width] / self.narrowest) - self.centre) / self.spread
        return ScalingInputs(np.delete(every, width, axis=1), shape, every[:, width])


@dataclass(frozen=True, eq=False)
class _Member:
    """A law with the settings that were learned for it."""

    law: _Law
    settings: Floats
    probability: float


@dataclass(frozen=True, eq=False)
class ScalingModel:
    """The fitted average."""

    parameters: Parameters
    width: int
    """Column of the parameters that is the width."""
    members: tuple[_Member, ...]
    values: Floats
    """Parameters of the runs that are remembered."""
    target: Floats
    """Logarithms of their seconds."""
    stretch: float
    """Standard deviations that 90% of single runs are within, predicted from all others."""
    far_stretch: float
    """Standard deviations that 90% of runs of other widths are within: each width predicted from the others."""
    left_out_error: float
    """Mean absolute relative error of runs whose width was left out as a whole."""
    widths: Floats
    """Widths that were run."""

    @classmethod
    def fit(
        cls, values: Floats, seconds: Floats, width: int, is_level: Mask | None = None, seed: int = 0
    ) -> "ScalingModel":
        """Fit to runs: rows x parameters, how long each took, and which parameter is the width."""
        if len(seconds) < LEAST_RUNS:
            raise BadInputError(f"{len(seconds)} runs are too few for a model of scaling: give at least {LEAST_RUNS}")
        if not (np.isfinite(seconds) & (seconds > 0)).all():
            raise BadInputError("run times must be positive: their logarithm is taken")
        keep_blas_to_one_thread()
        parameters = Parameters.fit(values, np.zeros(values.shape[1], bool) if is_level is None else is_level)
        widths = np.unique(values[:, width])
        if len(widths) < LEAST_WIDTHS:
            shown = ", ".join(f"{one:g}" for one in widths)
            raise BadInputError(
                f"the runs have {len(widths)} widths ({shown}): a model of scaling needs at least {LEAST_WIDTHS}"
            )
        order = np.random.default_rng(seed).permutation(len(seconds))[:_MOST_RUNS]
        values, target = values[order], np.log(seconds[order])
        members = _members(parameters, width, values[:_MOST_LEARNED], target[:_MOST_LEARNED])
        near = _single_runs(members, parameters, width, values, target)
        far, error = _widths_left_out(members, parameters, width, values, target)
        stretch = max(conformal_quantile(near, _LEVEL), NINETY_PERCENT)
        return cls(parameters, width, members, values, target, stretch, max(stretch, far), error, widths)

    def predict(self, values: Floats) -> ScaledTimes:
        """Seconds of runs at parameters."""
        keep_blas_to_one_thread()
        mean, deviation = _averaged(self.members, self.parameters, self.width, self.values, self.target, values)
        was_run = np.isin(values[:, self.width], self.widths)
        reach = np.where(was_run, self.stretch, self.far_stretch) * deviation
        return ScaledTimes(np.exp(mean), np.exp(mean - reach), np.exp(mean + reach))


def _members(
    parameters: Parameters, width: int, values: Floats, target: Floats, starts: tuple[_Member, ...] = ()
) -> tuple[_Member, ...]:
    """Laws with their settings, learned from runs (a few steps from where they were), and their probabilities."""
    laws = [_Law.of(shape, values[:, width]) for shape in LAWS.values()]
    centred = target - target.mean()
    fits = [
        learned(law.inputs(parameters, values, width), centred, start.settings, _STEPS_ANEW)
        if start is not None
        else learned(law.inputs(parameters, values, width), centred)
        for law, start in zip(laws, starts or [None] * len(laws), strict=True)
    ]
    evidence = np.array([one for _, one in fits])
    probability = np.exp(evidence - evidence.max())
    probability /= probability.sum()
    return tuple(
        _Member(law, settings, float(share)) for law, (settings, _), share in zip(laws, fits, probability, strict=True)
    )


def _averaged(
    members: tuple[_Member, ...], parameters: Parameters, width: int, values: Floats, target: Floats, asked: Floats
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the average of laws, which disagree."""
    level = float(target.mean())
    means, variances = zip(
        *(
            predicted(one.settings, one.law.inputs(parameters, values, width), target - level,
                      one.law.inputs(parameters, asked, width))
            for one in members
        ),
        strict=True,
    )  # fmt: skip
    shares = np.array([one.probability for one in members])
    mean = shares @ np.array(means)
    variance = shares @ (np.array(variances) + (np.array(means) - mean) ** 2)
    return mean + level, np.sqrt(variance)


def _single_runs(
    members: tuple[_Member, ...], parameters: Parameters, width: int, values: Floats, target: Floats
) -> Floats:
    """Standardised errors of runs, each predicted from all others by the most probable law.

    Few runs are predicted by what is learned anew without them: they fit their own settings too well.
    """
    if len(target) <= _MOST_LEARNED:
        fold = np.arange(len(target)) % min(_FOLDS, len(target))
        errors = np.empty(len(target))
        for each in np.unique(fold):
            known, asked = fold != each, fold == each
            anew = _members(parameters, width, values[known], target[known])
            mean, deviation = _averaged(anew, parameters, width, values[known], target[known], values[asked])
            errors[asked] = np.abs(mean - target[asked]) / deviation
        return errors
    best = max(members, key=lambda one: one.probability)
    inputs = best.law.inputs(parameters, values, width)
    total = covariance(best.settings, inputs, inputs) + np.exp(best.settings[NOISE]) * np.eye(len(target))
    inverse = np.linalg.inv(total)
    return np.asarray(np.abs(inverse @ (target - target.mean())) / np.sqrt(np.diag(inverse)))


def _widths_left_out(
    members: tuple[_Member, ...], parameters: Parameters, width: int, values: Floats, target: Floats
) -> tuple[float, float]:
    """Stretch and mean error of runs of widths that are predicted from the other widths.

    Runs of a width are wrong together, so widths are counted and not runs: the stretch is a quantile of Student's t
    with as many degrees of freedom, times the scale of the standardised errors.
    """
    from scipy.stats import t

    squares, errors = [], []
    for left_out in np.unique(values[:, width]):
        known: Indices = np.flatnonzero(values[:, width] != left_out)[:_MOST_LEFT_OUT]
        asked = values[:, width] == left_out
        anew = _members(parameters, width, values[known], target[known], members)
        mean, deviation = _averaged(anew, parameters, width, values[known], target[known], values[asked])
        errors.append(float(np.mean(np.abs(np.expm1(mean - target[asked])))))
        squares.append(float(np.mean(((mean - target[asked]) / deviation) ** 2)))
    scale = max(1.0, float(np.sqrt(np.mean(squares))))
    return scale * float(t.ppf((1 + _LEVEL) / 2, len(squares))), float(np.mean(errors))
