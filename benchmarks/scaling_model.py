"""Time at numbers of nodes, ranks, threads or watts that nobody ran: a process around a power law.

    log t = level + sum_i a_i log(x_i) + g(log x) + noise

Coefficients of the power law have a wide prior and are integrated out, g is a Gaussian process with a length per
parameter. Far from all runs g says nothing, and the doubt about the coefficients grows with the distance: intervals
widen outside what was run. They are stretched until 90% of the runs lie inside their own, each predicted from others:
from all others where every value asked for was run, and from those with other values where one was not.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices, Mask
from perf_assets.models.common.conformal import conformal_quantile
from perf_assets.models.common.threads import keep_blas_to_one_thread

LEAST_RUNS = 4
_MOST_LEARNED, _MOST_RUNS = 150, 800
"""Runs that lengths are learned from, and runs that are remembered, drawn where there are more."""
_TINY = 1e-9
_FOLDS, _FEW = 5, 100
"""Folds that lengths are learned anew without, where there are few runs: these fit their own lengths too well."""
_LEVEL = 0.9


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
class ScalingModel:
    """The fitted process."""

    parameters: Parameters
    process: GaussianProcessRegressor
    level: float
    """Mean logarithm of the seconds."""
    stretch: float
    """Standard deviations that 90% of the runs are within, predicted from all others."""
    far_stretch: float
    """Predicted from runs with other values of a parameter."""
    values: tuple[Floats, ...]
    """Values of each parameter that were run."""

    @classmethod
    def fit(cls, values: Floats, seconds: Floats, is_level: Mask | None = None, seed: int = 0) -> "ScalingModel":
        """Fit to runs: rows x parameters, and how long each took."""
        if len(seconds) < LEAST_RUNS:
            raise BadInputError(f"{len(seconds)} runs are too few for a model of scaling: give at least {LEAST_RUNS}")
        if not (seconds > 0).all():
            raise BadInputError("run times must be positive: their logarithm is taken")
        keep_blas_to_one_thread()
        parameters = Parameters.fit(values, np.zeros(values.shape[1], bool) if is_level is None else is_level)
        order = np.random.default_rng(seed).permutation(len(seconds))[:_MOST_RUNS]
        inputs, level = parameters.standardised(values[order]), float(np.log(seconds).mean())
        target = np.log(seconds[order]) - level
        kernel = _learned(inputs[:_MOST_LEARNED], target[:_MOST_LEARNED], seed)
        process = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-8).fit(inputs, target)
        if len(target) <= _FEW:
            near = _held_out(inputs, target, seed)
        else:
            near = _left_out(process, target, list(np.arange(len(target))[:, None]))
        groups = [np.flatnonzero(column == value) for column in values[order].T for value in np.unique(column)]
        far = _left_out(process, target, [group for group in groups if len(group) < len(target)])
        stretch = _quantile(near)
        runs = tuple(np.unique(column) for column in values.T)
        return cls(parameters, process, level, stretch, max(stretch, _quantile(far)), runs)

    def predict(self, values: Floats) -> ScaledTimes:
        """Seconds of runs at parameters."""
        keep_blas_to_one_thread()
        mean, deviation = self.process.predict(self.parameters.standardised(values), return_std=True)
        was_run = np.column_stack([np.isin(*pair) for pair in zip(values.T, self.values, strict=True)]).all(axis=1)
        middle, reach = mean + self.level, np.where(was_run, self.stretch, self.far_stretch) * deviation
        return ScaledTimes(np.exp(middle), np.exp(middle - reach), np.exp(middle + reach))


def _learned(inputs: Floats, target: Floats, seed: int) -> "RBF":
    """Kernel with the lengths, variances and noise that explain the runs best."""
    variance = max(float(target.var()), 1e-4)
    power_law = ConstantKernel(variance, (1e-4, 1e2)) * DotProduct(1.0, (1e-2, 1e2))
    rest = ConstantKernel(variance / 4, (1e-6, 1e2)) * RBF(np.full(inputs.shape[1], 2.0), (0.2, 50.0))
    kernel = power_law + rest + WhiteKernel(variance / 20, (1e-6, 1e1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound is an answer
        return GaussianProcessRegressor(kernel, random_state=seed, alpha=1e-8).fit(inputs, target).kernel_


def _held_out(inputs: Floats, target: Floats, seed: int) -> Floats:
    """Standardised errors of few runs, each predicted by a process that never saw it."""
    fold = np.random.default_rng(seed).permutation(len(target)) % min(_FOLDS, len(target))
    errors = np.empty(len(target))
    for each in np.unique(fold):
        kept, asked = fold != each, fold == each
        kernel = _learned(inputs[kept], target[kept], seed)
        process = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-8).fit(inputs[kept], target[kept])
        mean, deviation = process.predict(inputs[asked], return_std=True)
        errors[asked] = np.abs(target[asked] - mean) / deviation
    return errors


def _left_out(process: GaussianProcessRegressor, target: Floats, groups: "Sequence[Indices]") -> Floats:
    """Standardised errors of groups of runs, each predicted from all others."""
    factor = np.linalg.inv(process.L_)
    inverse = factor.T @ factor
    weights = inverse @ target
    found = []
    for group in groups:
        covariance = np.linalg.inv(inverse[np.ix_(group, group)])
        found.append(np.abs(covariance @ weights[group]) / np.sqrt(np.diag(covariance)))
    return np.concatenate(found) if found else np.empty(0)


def _quantile(errors: Floats) -> float:
    """90% quantile; where there are too few errors for that, the largest is stretched, as in `cross_conformal`."""
    count = len(errors)
    if not count:
        return 0.0
    quantile = conformal_quantile(errors, _LEVEL)
    if np.ceil(_LEVEL * (count + 1)) > count:
        quantile *= float(np.log(1 - _LEVEL) / np.log(1 / (count + 1)))
    return quantile
