"""Runs that were observed since a target model was made: a Gaussian process on what they took beyond its answers.

The model itself stays as it is. Its answers are moved by the expected residual, and once there are enough observed runs
their interval is that of the residuals: each run predicted from the others (closed form), scaled to nominal coverage.
"""

from dataclasses import dataclass

import numpy as np

from perf_assets.features.paired import Floats, PairedSamples
from perf_assets.features.scaling import Scaler
from perf_assets.models.additive_gp import (
    Process,
    RunInputs,
    Spreads,
    describe,
    evidence_weights,
    fit_processes,
    restore,
)
from perf_assets.models.conformal import cross_conformal
from perf_assets.models.paired_evaluation import NINETY_PERCENT

MOST_RUNS = 200
"""Observed runs that count, the newest: further ones hardly change the correction and cost their cube."""
_ENOUGH = 10
"""Observed runs from which on the spreads are fitted to them, and the interval is theirs."""
_OFFSET = 0.5
"""Expected spread of what all runs have in common, relative to that of single runs."""


@dataclass(frozen=True)
class Observed:
    """Runs on the target beside the model's answers, oldest first."""

    counters: Floats
    """Runs x counters on the reference machine, as the model takes them."""
    apps: tuple[str, ...]
    residuals: Floats
    """Log of measured over predicted time."""

    def __len__(self) -> int:
        return len(self.apps)


@dataclass(frozen=True, eq=False)
class OnlineCorrection:
    """What observed runs say of other runs."""

    scaler: Scaler
    processes: tuple[Process, ...]
    shares: Floats
    quantile: float
    """Half width of a 90% interval in standard deviations."""
    count: int

    @classmethod
    def fit(cls, observed: Observed, scaler: Scaler, expected_spread: float) -> "OnlineCorrection":
        """`expected_spread` is the standard deviation of residuals that the model expects, in log seconds."""
        counters, apps = observed.counters[-MOST_RUNS:], observed.apps[-MOST_RUNS:]
        residuals = observed.residuals[-MOST_RUNS:]
        runs = _inputs(counters, apps, scaler)
        expected = Spreads(_OFFSET * expected_spread, expected_spread)
        processes = fit_processes(runs, residuals, expected)
        if len(runs) < _ENOUGH:
            # So few say nothing of how much runs differ: one slow run must not move all others.
            processes = [_as_expected(process, residuals, expected) for process in processes]
        shares = evidence_weights(processes)
        mean, spread = _each_from_the_others(processes, shares, residuals)
        quantile = NINETY_PERCENT
        if len(runs) >= _ENOUGH:
            quantile = cross_conformal(mean / spread, residuals / spread, 0.0).half_width
        return cls(scaler, tuple(processes), shares, quantile, len(observed))

    def correct(self, counters: Floats, apps: tuple[str, ...], half_width: Floats) -> tuple[Floats, Floats]:
        """Of other runs: what to add to the model's log seconds, and the half width of the 90% interval then.

        `half_width` is the model's own; with few observed runs the interval is not narrower than that.
        """
        runs = _inputs(counters, apps, self.scaler)
        means = np.stack([process.mean(runs) for process in self.processes])
        variances = np.stack([process.variance(runs) + process.noise**2 for process in self.processes])
        mean = self.shares @ means
        spread = np.sqrt(self.shares @ (variances + (means - mean) ** 2))
        width = self.quantile * spread
        return np.asarray(mean), np.asarray(width if self.count >= _ENOUGH else np.maximum(width, half_width))


def run_scaler(samples: PairedSamples, source: int) -> Scaler:
    """Of the counters of application runs on a reference machine."""
    runs = ~samples.is_benchmark & np.isfinite(samples.log_seconds[source])
    return Scaler.fit(samples.counters[source, runs])


def _inputs(counters: Floats, apps: tuple[str, ...], scaler: Scaler) -> RunInputs:
    scaled = scaler.transform(counters)
    return RunInputs(scaled / np.sqrt(scaled.shape[1]), np.zeros((len(apps), 0)), np.array(apps, np.str_))


def _as_expected(process: Process, residuals: Floats, expected: Spreads) -> Process:
    """The same with the spreads that are expected instead of those that were fitted."""
    described = {**describe(process), "amplitudes": expected.by_cause().tolist()}
    return restore(described, process.runs, residuals)


def _each_from_the_others(processes: list[Process], shares: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """Expectation and standard deviation of each residual, given all others (Rasmussen and Williams, 5.4.2)."""
    precisions = np.stack([np.diag(process.inverse) for process in processes])
    means = residuals - np.stack([process.coefficients for process in processes]) / precisions
    mean = shares @ means
    return mean, np.sqrt(shares @ (1 / precisions + (means - mean) ** 2))
