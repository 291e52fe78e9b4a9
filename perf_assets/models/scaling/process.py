"""The process of run times: a law of the width, different for every setting of the other parameters, and what remains.

    log t = level + sum_i a_i x_i + (b + c(x)) s(w) + f(x) + g(x, w) + h(w) + noise

w is the width and s(w) its shape (a power law, Amdahl's law), x are the other parameters. a and b have a normal prior
and are integrated out; c, f, g and h are squared exponentials over x with a length per parameter, g and h also over
w. g and h say nothing far from the widths that were run: there the law alone is left, with the doubt about it.
"""

from typing import NamedTuple

import numpy as np

from perf_assets.features.samples import Floats, Indices, Mask

LEVEL, LINEAR, SHAPE, SURFACE, INTERACTION, LOCAL, CURVE, NOISE, REACH = range(9)
"""Places of the settings: variances of the terms in the order of the formula, noise, and the length along the width.

The lengths of the other parameters follow. All are logarithms."""
_LEAST_VARIANCE = 1e-4
_SHARES = np.array([1.0, 0.25, 1.0, 0.25, 0.1, 0.1, 0.1, 0.02])
"""Variances that are expected, as shares of the variance of what is learned."""
_EXPECTED_REACH, _EXPECTED_LENGTH = 1.0, 2.0
"""Lengths that are expected, in standard deviations of the parameters."""
_PRIOR_DEVIATION = 3.0
"""Standard deviation of settings around their expectation, in logarithms."""
_LOWEST, _HIGHEST = -12.0, 4.0
_LEAST_NOISE = 2 * np.log(0.02)
"""Runs scatter by at least 2%: few runs that lie on a curve by chance do not say otherwise."""
_REACHES, _LENGTHS = (-0.7, 0.7), (-1.5, 3.5)
_JITTER = 1e-8


class ScalingInputs(NamedTuple):
    """Runs as the process sees them."""

    others: Floats
    """Rows x parameters but the width, standardised."""
    shape: Floats
    """Shape of the width, standardised."""
    width: Floats
    """Logarithm of the width, standardised."""

    def of(self, rows: Indices | Mask) -> "ScalingInputs":
        """Some of the runs."""
        return ScalingInputs(*(values[rows] for values in self))


class _Parts(NamedTuple):
    """Covariances of the terms, without their variances."""

    linear: Floats
    shape: Floats
    surface: Floats
    reach: Floats
    distances: Floats
    """Squared distances in lengths, by parameter."""
    width_distance: Floats


def learned(
    inputs: ScalingInputs, target: Floats, start: Floats | None = None, steps: int = 60
) -> tuple[Floats, float]:
    """Settings that explain centred logarithms of times best, with their prior, and the logarithm of that evidence."""
    from scipy.optimize import minimize

    expected, bounds = _expected(inputs, target), _bounds(inputs)
    low, high = np.array(bounds).T
    optimum = minimize(
        _loss, np.clip(expected if start is None else start, low, high), args=(inputs, target, expected), jac=True,
        method="L-BFGS-B", bounds=bounds, options={"maxiter": steps},
    )  # fmt: skip
    return np.asarray(optimum.x), -float(optimum.fun)


def predicted(settings: Floats, inputs: ScalingInputs, target: Floats, asked: ScalingInputs) -> tuple[Floats, Floats]:
    """Mean and variance (with noise) of what is asked, from centred logarithms of times."""
    variance = np.exp(settings)
    total = covariance(settings, inputs, inputs) + (variance[NOISE] + _JITTER) * np.eye(len(target))
    factor = np.linalg.cholesky(total)
    cross = np.linalg.solve(factor, covariance(settings, inputs, asked))
    mean = cross.T @ np.linalg.solve(factor, target)
    own = (
        variance[LEVEL] + variance[LINEAR] * (asked.others**2).sum(axis=1)
        + (variance[SHAPE] + variance[INTERACTION]) * asked.shape**2
        + variance[SURFACE] + variance[LOCAL] + variance[CURVE]
    )  # fmt: skip
    return np.asarray(mean), np.maximum(own - (cross**2).sum(axis=0), _JITTER) + variance[NOISE]


def covariance(settings: Floats, left: ScalingInputs, right: ScalingInputs) -> Floats:
    """Covariance of runs, without noise."""
    return _covariance(settings, _parts(settings, left, right))


def _covariance(settings: Floats, parts: _Parts) -> Floats:
    variance = np.exp(settings)
    of_settings = variance[SURFACE] + variance[INTERACTION] * parts.shape + variance[LOCAL] * parts.reach
    return np.asarray(
        variance[LEVEL] + variance[LINEAR] * parts.linear + variance[SHAPE] * parts.shape
        + of_settings * parts.surface + variance[CURVE] * parts.reach
    )  # fmt: skip


def _parts(settings: Floats, left: ScalingInputs, right: ScalingInputs) -> _Parts:
    lengths, reach = np.exp(settings[REACH + 1 :]), np.exp(settings[REACH])
    distances = (left.others[:, None, :] - right.others[None]) ** 2 / lengths**2
    width_distance = (left.width[:, None] - right.width[None]) ** 2 / reach**2
    return _Parts(
        left.others @ right.others.T,
        np.outer(left.shape, right.shape),
        np.exp(-0.5 * distances.sum(axis=2)),
        np.exp(-0.5 * width_distance),
        distances,
        width_distance,
    )


def _expected(inputs: ScalingInputs, target: Floats) -> Floats:
    variances = max(float(target.var()), _LEAST_VARIANCE) * _SHARES
    return np.asarray(np.log(np.r_[variances, _EXPECTED_REACH, np.full(inputs.others.shape[1], _EXPECTED_LENGTH)]))


def _bounds(inputs: ScalingInputs) -> list[tuple[float, float]]:
    return [(_LOWEST, _HIGHEST)] * NOISE + [(_LEAST_NOISE, _HIGHEST), _REACHES] + [_LENGTHS] * inputs.others.shape[1]


def _loss(settings: Floats, inputs: ScalingInputs, target: Floats, expected: Floats) -> tuple[float, Floats]:
    """Negative logarithm of evidence and prior, and its gradient."""
    variance, parts = np.exp(settings), _parts(settings, inputs, inputs)
    total = _covariance(settings, parts) + (variance[NOISE] + _JITTER) * np.eye(len(target))
    try:
        factor = np.linalg.cholesky(total)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros(len(settings))
    inverse = np.linalg.inv(total)
    weights = inverse @ target
    slope = 0.5 * (inverse - np.outer(weights, weights))
    of_settings = variance[SURFACE] + variance[INTERACTION] * parts.shape + variance[LOCAL] * parts.reach
    local = slope * parts.surface * of_settings
    gradient = np.r_[
        variance[:REACH] * [
            slope.sum(), (slope * parts.linear).sum(), (slope * parts.shape).sum(), (slope * parts.surface).sum(),
            (slope * parts.shape * parts.surface).sum(), (slope * parts.reach * parts.surface).sum(),
            (slope * parts.reach).sum(), np.trace(slope),
        ],
        (slope * parts.reach * parts.width_distance * (variance[LOCAL] * parts.surface + variance[CURVE])).sum(),
        np.einsum("ij,ijk->k", local, parts.distances),
    ]  # fmt: skip
    away = (settings - expected) / _PRIOR_DEVIATION
    loss = 0.5 * target @ weights + np.log(np.diag(factor)).sum() + 0.5 * away @ away
    return float(loss), np.asarray(gradient + away / _PRIOR_DEVIATION)
