"""Gaussian process over runs whose covariance is a sum of few known causes, fitted to a handful of residuals.

    k(x, x') = offset^2                                   the machine is faster or slower as a whole
             + app^2      [same application]
             + counters^2 exp(-|c - c'|^2 / 2 length^2)   runs with like counters depart alike
             + profile^2  p . p'                          runs that other machines treat alike depart alike
             + noise^2    [same run]

Five standard deviations with an expectation each (log-normal) are fitted by maximum a posteriori (Fisher scoring, some
milliseconds), for a few lengths; each length is one `Process`. Those are averaged by their evidence, not chosen. Some
causes can be left out: with the offset alone the correction is a constant ratio, with none of them there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Floats, Indices
from perf_assets.models.common.averaged_gp import squared_distances

LENGTHS = (0.25, 0.5, 1.0)
"""1 is the distance of two runs whose counters all differ by one spread."""
FREEDOM = 0.7
"""Standard deviation of the logarithm of a hyperparameter around its expectation: a factor of two either way."""
OFFSET, PROFILE, NOISE = 0, 3, 4
"""Positions among the causes, which are offset, application, counters, profile, noise."""
EVERY_CAUSE = (0, 1, 2, 3, 4)
CONSTANT_RATIO = (OFFSET, NOISE)
"""All runs take the same factor longer or shorter."""
UNCHANGED = (NOISE,)
"""No cause: runs take the expected time, apart from noise."""
KINDS = (UNCHANGED, CONSTANT_RATIO, EVERY_CAUSE)
"""Kinds of corrections, by their causes."""
_STEPS, _CLOSE, _LONGEST_STEP = 40, 1e-3, 1.5
"""Search for amplitudes: most steps, the step that ends it, and the longest one, in logarithms."""
_JITTER = 1e-6


@dataclass(frozen=True)
class RunInputs:
    """Runs as the covariance sees them, one per row."""

    counters: Floats
    """Runs x counters, standardised and divided by the root of their number."""
    profile: Floats
    """Runs x other machines: log time there relative to the source, centred and scaled to mean square 1 in all."""
    apps: NDArray[np.str_]
    blind: Floats | None = None
    """Per run, the share of the other machines that did not run it: its profile there is not known. None is 0."""

    def __len__(self) -> int:
        return len(self.apps)

    def at(self, rows: Indices) -> "RunInputs":
        """Inputs of the chosen runs."""
        blind = None if self.blind is None else self.blind[rows]
        return RunInputs(self.counters[rows], self.profile[rows], self.apps[rows], blind)


@dataclass(frozen=True)
class Spreads:
    """Expected standard deviations in log seconds."""

    offset: float
    """Spread of the machine as a whole."""
    run: float
    """Spread of a run around the machine's, from all other causes together."""

    def by_cause(self) -> Floats:
        """Offset, application, counters, profile, noise: the last four have a quarter of the variance of a run each."""
        return np.array([self.offset, *[0.5 * self.run] * 4])


@dataclass(frozen=True, eq=False)
class Expectation:
    """Prior of a correction, before a run of the target is seen."""

    amplitudes: Floats
    """Standard deviations by cause (offset, application, counters, profile, noise), in log seconds."""
    freedom: Floats
    """Standard deviation, by cause, of the logarithm of the true amplitude around that of the expected one."""
    length_shares: Floats
    """Probability of each of `LENGTHS`, with sum 1."""
    kind_shares: Floats
    """Probability that a correction is of each of `KINDS`, with sum 1."""

    @classmethod
    def of(cls, spreads: Spreads) -> "Expectation":
        """Expect errors of a known size: a factor of two either way, all lengths and kinds as likely."""
        lengths, kinds = (np.full(count, 1 / count) for count in (len(LENGTHS), len(KINDS)))
        return cls(spreads.by_cause(), np.full(len(EVERY_CAUSE), FREEDOM), lengths, kinds)

    def with_causes(self, kept: Sequence[int]) -> "Expectation":
        """Expectation with some causes only; the variance of all others becomes noise."""
        left_out = [cause for cause in EVERY_CAUSE if cause not in kept]
        amplitudes = self.amplitudes.copy()
        amplitudes[NOISE] = np.sqrt((self.amplitudes[[*left_out, NOISE]] ** 2).sum())
        amplitudes[left_out] = 0.0
        return replace(self, amplitudes=amplitudes)


@dataclass(frozen=True, eq=False)
class Process:
    """A fitted process of one length."""

    length: float
    amplitudes: Floats
    """Standard deviations by cause, in log seconds; the last is the noise."""
    runs: RunInputs
    residual: Floats
    """Residuals that were observed, in log seconds."""
    evidence: float
    """Log marginal likelihood of the residuals, integrated over the amplitudes (Laplace), plus the logarithm of the
    probability of its kind and length before."""

    @cached_property
    def inverse(self) -> Floats:
        """Inverse covariance of the observed runs with noise."""
        causes = np.concatenate([_causes(self.runs, self.runs, self.length), np.eye(len(self.runs))[None]])
        inverse: Floats = np.asarray(np.linalg.inv(_covariance(causes, self.amplitudes)), np.float64)
        return inverse

    @cached_property
    def coefficients(self) -> Floats:
        """Weight of each observed run in what is expected of others."""
        return np.asarray(self.inverse @ self.residual)

    def mean(self, runs: RunInputs) -> Floats:
        """Expected residual of other runs, in log seconds."""
        return np.asarray(self._prior_covariance(runs, self.runs) @ self.coefficients)

    def offset(self) -> float:
        """Part of `mean` that concerns the machine as a whole; the next three methods give its other parts."""
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
        return np.asarray(self.amplitudes[PROFILE] ** 2 * (self.coefficients @ self.runs.profile))

    def variance(self, runs: RunInputs) -> Floats:
        """Variance of the residual of other runs, each for itself, without noise."""
        across = self._prior_covariance(runs, self.runs)
        known = ((across @ self.inverse) * across).sum(axis=1)
        return np.asarray(np.maximum(self._prior_variance(runs) - known, 0.0))

    def covariance(self, runs: RunInputs, others: RunInputs) -> Floats:
        """Covariance of residuals at `runs` with those at `others`, given what was observed; without noise."""
        across, back = self._prior_covariance(runs, self.runs), self._prior_covariance(self.runs, others)
        return np.asarray(self._prior_covariance(runs, others) - across @ self.inverse @ back)

    def without_each(self, runs: RunInputs) -> tuple[Floats, Floats]:
        """Mean and standard deviation (noise included) at as many runs as were observed, each without its own one.

        Run i is asked about given all observed runs but the i-th, with the amplitudes that all of them gave
        (Rasmussen and Williams, 5.4.2).
        """
        precision = np.diag(self.inverse)
        # Row i: coefficients of the observed runs when the i-th is left out; its own is 0.
        coefficients = self.coefficients[None] - self.inverse * (self.coefficients / precision)[:, None]
        across = self._prior_covariance(runs, self.runs)
        mean = (across * coefficients).sum(axis=1)
        lost = (across * self.inverse).sum(axis=1) ** 2 / precision
        known = ((across @ self.inverse) * across).sum(axis=1) - lost
        variance = np.maximum(self._prior_variance(runs) - known, 0.0) + self.noise**2
        return np.asarray(mean), np.asarray(np.sqrt(variance))

    @property
    def noise(self) -> float:
        """Standard deviation of one measured run around its expectation, in log seconds."""
        return float(self.amplitudes[-1])

    def _prior_variance(self, runs: RunInputs) -> Floats:
        squares = self.amplitudes[:-1] ** 2
        # The profile of a run that is not known elsewhere has mean square 1 in all.
        sizes = (runs.profile**2).sum(axis=1) + (0.0 if runs.blind is None else runs.blind)
        return np.asarray(squares[:PROFILE].sum() + squares[PROFILE] * sizes)

    def _prior_covariance(self, runs: RunInputs, others: RunInputs) -> Floats:
        return np.asarray(np.tensordot(self.amplitudes[:-1] ** 2, _causes(runs, others, self.length), 1))


def fit_processes(
    runs: RunInputs, residual: Floats, expected: Spreads | Expectation, causes: tuple[int, ...] = EVERY_CAUSE
) -> list[Process]:
    """One process per length, fitted to residuals (log seconds) observed at `runs`; without any, the expectation.

    `causes` are one of `KINDS`. Where counters are not among them the length does not matter: there is one process.
    """
    given = (Expectation.of(expected) if isinstance(expected, Spreads) else expected).with_causes(causes)
    share = float(given.kind_shares[KINDS.index(causes)])
    if causes != EVERY_CAUSE:
        return [_fit(runs, residual, given, LENGTHS[0], share)]
    lengths = zip(LENGTHS, given.length_shares.tolist(), strict=True)
    return [_fit(runs, residual, given, length, share * of_length) for length, of_length in lengths]


def evidence_weights(processes: Sequence[Process]) -> Floats:
    """Shares with sum 1, proportional to the evidence."""
    evidence = np.array([process.evidence for process in processes])
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def without_profile(process: Process) -> Process:
    """Process without its profile, for questions about uncertainty alone: nothing it says of means holds."""
    amplitudes = process.amplitudes.copy()
    amplitudes[PROFILE] = 0.0
    return replace(process, amplitudes=amplitudes, residual=np.zeros(len(process.runs)))


def _causes(runs: RunInputs, others: RunInputs, length: float) -> Floats:
    """Cause x run x other run: covariance at amplitude 1."""
    squares = squared_distances(runs.counters, others.counters)
    return np.stack(
        [
            np.ones(squares.shape),
            (runs.apps[:, None] == others.apps[None]).astype(float),
            np.exp(-squares / (2 * length**2)),
            runs.profile @ others.profile.T,
        ]
    )


def _fit(runs: RunInputs, residual: Floats, expected: Expectation, length: float, share: float) -> Process:
    """Fisher scoring on the logarithms of the amplitudes; a step that does not improve is halved."""
    kept = np.flatnonzero(expected.amplitudes)
    causes = np.concatenate([_causes(runs, runs, length), np.eye(len(runs))[None]])[kept]
    centre, freedom = np.log(expected.amplitudes[kept]), expected.freedom[kept]
    logs, step = centre, np.zeros_like(centre)
    value = _log_posterior(causes, residual, logs, centre, freedom)
    for _ in range(_STEPS if len(runs) else 0):
        gradient, curvature = _slope(causes, residual, logs, centre, freedom)
        step = np.clip(np.linalg.solve(curvature, gradient), -_LONGEST_STEP, _LONGEST_STEP)
        while np.abs(step).max() > _CLOSE:
            tried = _log_posterior(causes, residual, logs + step, centre, freedom)
            if tried > value:
                logs, value = logs + step, tried
                break
            step = step / 2
        if np.abs(step).max() <= _CLOSE:
            break
    _, curvature = _slope(causes, residual, logs, centre, freedom)
    # Of the density of the amplitudes, the part that the runs leave over (Laplace): no more causes than needed win.
    volume = -0.5 * np.linalg.slogdet(curvature * np.outer(freedom, freedom))[1]
    amplitudes = np.zeros(len(EVERY_CAUSE))
    amplitudes[kept] = np.exp(logs)
    evidence = float(value + volume + np.log(share))
    return Process(length=length, amplitudes=amplitudes, runs=runs, residual=residual, evidence=evidence)


def _covariance(causes: Floats, amplitudes: Floats) -> Floats:
    total = np.tensordot(amplitudes**2, causes, 1)
    return np.asarray(total + _JITTER * np.eye(causes.shape[1]))


def _log_posterior(causes: Floats, residual: Floats, logs: Floats, centre: Floats, freedom: Floats) -> float:
    lower = np.linalg.cholesky(_covariance(causes, np.exp(logs)))
    whitened = np.linalg.solve(lower, residual)
    fit = -0.5 * whitened @ whitened - np.log(np.diag(lower)).sum() - 0.5 * len(residual) * np.log(2 * np.pi)
    return float(fit - 0.5 * (((logs - centre) / freedom) ** 2).sum())


def _slope(causes: Floats, residual: Floats, logs: Floats, centre: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Gradient of the log posterior and its expected curvature, by the logarithms of the amplitudes."""
    inverse = np.linalg.inv(_covariance(causes, np.exp(logs)))
    slopes = 2 * np.exp(2 * logs)[:, None, None] * causes
    coefficients = inverse @ residual
    spread = inverse @ slopes
    gradient = 0.5 * (np.einsum("i,pij,j->p", coefficients, slopes, coefficients) - np.trace(spread, axis1=1, axis2=2))
    gradient -= (logs - centre) / freedom**2
    curvature = 0.5 * np.einsum("pij,qji->pq", spread, spread) + np.diag(1 / freedom**2)
    return gradient, np.asarray(curvature)
