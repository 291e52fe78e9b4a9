"""Runs that were observed since a target model was made: a Gaussian process on what they took beyond its answers.

The model itself stays as it is. Its answers are moved by the expected residual, and once there are enough observed runs
their interval is that of the residuals: each run predicted from the others (closed form), scaled to nominal coverage.
"""

from dataclasses import dataclass, replace

import numpy as np

from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.models.common.conformal import cross_conformal
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.common.questions import Questions
from perf_assets.models.target.causes import Process, RunInputs, Spreads, evidence_weights, fit_processes
from perf_assets.models.target.correction import PairedModel

MOST_RUNS = 200
"""Observed runs that count, the newest: further ones hardly change the correction and cost their cube."""
_LEAST_FITTED_RUNS = 10
"""Observed runs from which on the spreads are fitted to them, and the interval is theirs."""
_OFFSET_SHARE = 0.5
"""Expected spread of what all runs have in common, relative to that of single runs."""


@dataclass(frozen=True, eq=False)
class OnlineCorrection:
    """Correction of predictions by runs that were observed since the training."""

    processes: tuple[Process, ...]
    shares: Floats
    quantile: float
    """Half width of a 90% interval in standard deviations."""
    count: int
    """Observed runs."""

    @classmethod
    def fit(cls, observed: RunInputs, residuals: Floats, expected_spread: float) -> "OnlineCorrection":
        """Fit to the log of measured over predicted time of observed runs, oldest first.

        `expected_spread` is the standard deviation of these that the model expects.
        """
        newest = np.arange(len(observed))[-MOST_RUNS:]
        runs, residual = observed.at(newest), residuals[newest]
        expected = Spreads(_OFFSET_SHARE * expected_spread, expected_spread)
        processes = fit_processes(runs, residual, expected)
        if len(runs) < _LEAST_FITTED_RUNS:
            # So few say nothing of how much runs differ: one slow run must not move all others.
            processes = [replace(process, amplitudes=expected.by_cause()) for process in processes]
        shares = evidence_weights(processes)
        quantile = NINETY_PERCENT
        if len(runs) >= _LEAST_FITTED_RUNS:
            mean, spread = _each_from_the_others(processes, shares, residual)
            quantile = cross_conformal(mean / spread, residual / spread, 0.0).half_width
        return cls(tuple(processes), shares, quantile, len(observed))

    def correct(self, runs: RunInputs, half_width: Floats) -> tuple[Floats, Floats]:
        """Correct other runs: what to add to the model's log seconds, and the half width of the 90% interval then.

        `half_width` is the model's own; with few observed runs the interval is not narrower than that.
        """
        means = np.stack([process.mean(runs) for process in self.processes])
        variances = np.stack([process.variance(runs) + process.noise**2 for process in self.processes])
        mean = self.shares @ means
        spread = np.sqrt(self.shares @ (variances + (means - mean) ** 2))
        width = self.quantile * spread
        return np.asarray(mean), np.asarray(
            width if self.count >= _LEAST_FITTED_RUNS else np.maximum(width, half_width)
        )


class RunsAsSeen:
    """Runs of one view as a process sees them: their counters, and their times on other machines."""

    def __init__(self, model: PairedModel, samples: PairedSamples) -> None:
        self._view = model.view
        others = samples.log_seconds[self._view.others]
        unknown = np.full((len(others), 1), np.nan)
        self._elsewhere = np.hstack([others, unknown]).T
        self._row_of = {name: row for row, name in enumerate(samples.configurations)}

    def of(self, questions: Questions) -> RunInputs:
        """Inputs of runs; one that no other machine has done is taken to behave there like the average run."""
        counters = self._view.scaler.transform(questions.counters)
        rows = [self._row_of.get(name, -1) for name in questions.configurations]
        ratios = self._elsewhere[rows] - questions.log_seconds[:, None]
        profile = np.nan_to_num(ratios - self._view.centre, nan=0.0) / self._view.scale
        return RunInputs(counters / np.sqrt(counters.shape[1]), profile, np.array(questions.apps, np.str_))


def _each_from_the_others(processes: list[Process], shares: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """Expectation and standard deviation of each residual, given all others (Rasmussen and Williams, 5.4.2)."""
    precisions = np.stack([np.diag(process.inverse) for process in processes])
    means = residuals - np.stack([process.coefficients for process in processes]) / precisions
    mean = shares @ means
    return mean, np.sqrt(shares @ (1 / precisions + (means - mean) ** 2))
