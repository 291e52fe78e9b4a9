"""Gaussian process over runs whose covariance is a sum of few known causes, fitted to a handful of residuals.

    k(x, x') = offset^2                                   the machine is faster or slower as a whole
             + app^2      [same application]
             + counters^2 exp(-|c - c'|^2 / 2 length^2)   runs with like counters depart alike
             + profile^2  p . p'                          runs that other machines treat alike depart alike
             + noise^2    [same run]

Five standard deviations with an expectation each (log-normal) are fitted by maximum a posteriori (Fisher scoring, some
milliseconds), for a few lengths; each length is one `Process`. Those are averaged by their evidence, not chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.paired import Floats, Indices

LENGTHS = (0.25, 0.5, 1.0)
"""1 is the distance of two runs whose counters all differ by one spread."""
_LENGTH_EXPECTED, _LENGTH_FREEDOM = 0.5, 0.7
_FREEDOM = 0.7
"""Standard deviation of the logarithm of a hyperparameter around its expectation: a factor of two either way."""
_PROFILE = 3
"""Position of the profile among the causes."""
_STEPS, _CLOSE = 40, 1e-3
_JITTER = 1e-6


@dataclass(frozen=True)
class RunInputs:
    """What the covariance sees of runs, one a row."""

    counters: Floats
    """Runs x counters, standardised and divided by the root of their number."""
    profile: Floats
    """Runs x other machines: log time there relative to the source, centred and scaled to mean square 1 in all."""
    apps: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.apps)

    def at(self, rows: Indices) -> "RunInputs":
        """Some of them."""
        return RunInputs(self.counters[rows], self.profile[rows], self.apps[rows])


@dataclass(frozen=True)
class Spreads:
    """Expected standard deviations in log seconds."""

    offset: float
    """Of the machine as a whole."""
    run: float
    """Of a run around that, from all other causes together."""

    def by_cause(self) -> Floats:
        """Offset, application, counters, profile, noise: squares of the last four add up to `run` squared."""
        return np.array([self.offset, 0.3 * self.run, 0.6 * self.run, 0.68 * self.run, 0.3 * self.run])


@dataclass(frozen=True)
class Process:
    """A fitted process of one length."""

    length: float
    amplitudes: Floats
    """Standard deviations by cause, in log seconds; the last is the noise."""
    runs: RunInputs
    inverse: Floats
    """Of the covariance of the observed runs with noise."""
    coefficients: Floats
    evidence: float
    """Log marginal likelihood of the residuals, plus log density of the hyperparameters."""

    def mean(self, runs: RunInputs) -> Floats:
        """Expected residual of other runs, in log seconds."""
        return np.asarray(self._prior_covariance(runs, self.runs) @ self.coefficients)

    def offset(self) -> float:
        """What `mean` says of the machine as a whole; the next three are its other parts."""
        return float(self.amplitudes[0] ** 2 * self.coefficients.sum())

    def app_weights(self) -> dict[str, float]:
        """Part of runs of each application that was observed."""
        square = float(self.amplitudes[1] ** 2)
        return {str(app): square * float(self.coefficients[self.runs.apps == app].sum()) for app in set(self.runs.apps)}

    def counter_weights(self) -> Floats:
        """Weight of the likeness of counters with each observed run."""
        return np.asarray(self.amplitudes[2] ** 2 * self.coefficients)

    def profile_weights(self) -> Floats:
        """Weight of each entry of the profile."""
        return np.asarray(self.amplitudes[_PROFILE] ** 2 * (self.coefficients @ self.runs.profile))

    def variance(self, runs: RunInputs) -> Floats:
        """Of the residual of other runs, each for itself, without noise."""
        across = self._prior_covariance(runs, self.runs)
        squares = self.amplitudes[:-1] ** 2
        alone = squares[:_PROFILE].sum() + squares[_PROFILE] * (runs.profile**2).sum(axis=1)
        known = ((across @ self.inverse) * across).sum(axis=1)
        return np.asarray(np.maximum(alone - known, 0.0))

    def covariance(self, runs: RunInputs, others: RunInputs) -> Floats:
        """Of residuals at `runs` with those at `others`, given what was observed; without noise."""
        across, back = self._prior_covariance(runs, self.runs), self._prior_covariance(self.runs, others)
        return np.asarray(self._prior_covariance(runs, others) - across @ self.inverse @ back)

    @property
    def noise(self) -> float:
        """Standard deviation of one measured run around its expectation, in log seconds."""
        return float(self.amplitudes[-1])

    def _prior_covariance(self, runs: RunInputs, others: RunInputs) -> Floats:
        return np.asarray(np.tensordot(self.amplitudes[:-1] ** 2, _causes(runs, others, self.length), 1))


def fit_processes(runs: RunInputs, residual: Floats, expected: Spreads) -> list[Process]:
    """One process a length, fitted to residuals (log seconds) observed at `runs`; without any, the expectation."""
    return [_fit(runs, residual, np.log(expected.by_cause()), length) for length in LENGTHS]


def evidence_weights(processes: Sequence[Process]) -> Floats:
    """Shares with sum 1, proportional to the evidence."""
    evidence = np.array([process.evidence for process in processes])
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def without_profile(process: Process) -> Process:
    """The same but for the profile, for questions about uncertainty alone: nothing it says of means holds."""
    amplitudes = process.amplitudes.copy()
    amplitudes[_PROFILE] = 0.0
    return _condition(process.runs, np.zeros(len(process.runs)), amplitudes, process.length, process.evidence)


def restore(description: dict[str, Any], runs: RunInputs, residual: Floats) -> Process:
    """A process from what `describe` gave and the runs and residuals it was fitted to."""
    amplitudes = np.array(description["amplitudes"])
    return _condition(runs, residual, amplitudes, description["length"], description["evidence"])


def describe(process: Process) -> dict[str, Any]:
    """Hyperparameters, as JSON can hold them."""
    return {
        "length": process.length,
        "amplitudes": process.amplitudes.tolist(),
        "evidence": process.evidence,
    }


def _causes(runs: RunInputs, others: RunInputs, length: float) -> Floats:
    """Cause x run x other run: covariance at amplitude 1."""
    squares = (runs.counters**2).sum(axis=1)[:, None] + (others.counters**2).sum(axis=1)[None]
    squares = np.maximum(squares - 2 * runs.counters @ others.counters.T, 0.0)
    return np.stack(
        [
            np.ones(squares.shape),
            (runs.apps[:, None] == others.apps[None]).astype(float),
            np.exp(-squares / (2 * length**2)),
            runs.profile @ others.profile.T,
        ]
    )


def _fit(runs: RunInputs, residual: Floats, expected: Floats, length: float) -> Process:
    """Fisher scoring on the logarithms of the amplitudes; a step that does not improve is halved."""
    causes = np.concatenate([_causes(runs, runs, length), np.eye(len(runs))[None]])
    found, step = expected, np.zeros_like(expected)
    value = _log_posterior(causes, residual, found, expected)
    for _ in range(_STEPS if len(runs) else 0):
        step = _scoring_step(causes, residual, found, expected)
        while np.abs(step).max() > _CLOSE:
            tried = _log_posterior(causes, residual, found + step, expected)
            if tried > value:
                found, value = found + step, tried
                break
            step = step / 2
        if np.abs(step).max() <= _CLOSE:
            break
    evidence = value - 0.5 * (np.log(length / _LENGTH_EXPECTED) / _LENGTH_FREEDOM) ** 2
    return _condition(runs, residual, np.exp(found), length, evidence)


def _condition(runs: RunInputs, residual: Floats, amplitudes: Floats, length: float, evidence: float) -> Process:
    causes = np.concatenate([_causes(runs, runs, length), np.eye(len(runs))[None]])
    inverse: Floats = np.asarray(np.linalg.inv(_covariance(causes, amplitudes)), np.float64)
    return Process(length, amplitudes, runs, inverse, inverse @ residual, evidence)


def _covariance(causes: Floats, amplitudes: Floats) -> Floats:
    total = np.tensordot(amplitudes**2, causes, 1)
    return np.asarray(total + _JITTER * np.eye(causes.shape[1]))


def _log_posterior(causes: Floats, residual: Floats, found: Floats, expected: Floats) -> float:
    lower = np.linalg.cholesky(_covariance(causes, np.exp(found)))
    whitened = np.linalg.solve(lower, residual)
    fit = -0.5 * whitened @ whitened - np.log(np.diag(lower)).sum() - 0.5 * len(residual) * np.log(2 * np.pi)
    return float(fit - 0.5 * (((found - expected) / _FREEDOM) ** 2).sum())


def _scoring_step(causes: Floats, residual: Floats, found: Floats, expected: Floats) -> Floats:
    """Gradient of the log posterior over its expected curvature."""
    inverse = np.linalg.inv(_covariance(causes, np.exp(found)))
    slopes = 2 * np.exp(2 * found)[:, None, None] * causes
    coefficients = inverse @ residual
    spread = inverse @ slopes
    gradient = 0.5 * (np.einsum("i,pij,j->p", coefficients, slopes, coefficients) - np.trace(spread, axis1=1, axis2=2))
    gradient -= (found - expected) / _FREEDOM**2
    curvature = 0.5 * np.einsum("pij,qji->pq", spread, spread) + np.eye(len(found)) / _FREEDOM**2
    step: Floats = np.linalg.solve(curvature, gradient)
    return np.clip(step, -1.5, 1.5)
