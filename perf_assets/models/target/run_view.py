"""Runs on a source machine as a correction sees them: their counters, and their times on other known machines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.models.target.causes import RunInputs


@dataclass(frozen=True)
class RunView:
    """Scales of the inputs of a correction, for one source and one target."""

    scaler: Scaler
    others: Indices
    """Known machines beside source and target."""
    centre: Floats
    """Mean log(time there / time on the source), one for each of `others`."""
    scale: float
    """Root mean square of what runs deviate from `centre`, over all of `others` together."""

    @classmethod
    def fit(cls, samples: PairedSamples, source: int, target: int) -> "RunView":
        """Fit to all application runs on the source; of the target nothing is looked at."""
        known = samples.hide_machine(target).training_machines
        others = known[known != source]
        runs = ~samples.is_benchmark & np.isfinite(samples.log_seconds[source])
        ratios = (samples.log_seconds[others] - samples.log_seconds[source]).T[runs]
        seen = np.isfinite(ratios)
        centre = np.where(seen, ratios, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        deviations = np.where(seen, ratios - centre, 0.0)
        scale = float(np.sqrt((deviations**2).sum(axis=1).mean())) if len(deviations) else 0.0
        return cls(Scaler.fit(samples.counters[source, runs]), others, centre, scale + 1e-6)

    def of(self, samples: PairedSamples, source: int, rows: Indices) -> RunInputs:
        """Inputs of configurations that ran on the source."""
        ratios = (samples.log_seconds[self.others][:, rows] - samples.log_seconds[source, rows]).T
        return self.inputs(signed_log(samples.counters[source, rows]), ratios, samples.apps[rows])

    def inputs(self, logs: Floats, ratios: Floats, apps: NDArray[np.str_]) -> RunInputs:
        """Inputs of signed logarithms of counters, and log times on `others` relative to the source."""
        counters = self.scaler.standardised(logs)
        # A run that is unknown on another machine is taken to behave there like the average run.
        profile = np.nan_to_num(ratios - self.centre, nan=0.0) / self.scale
        blind = np.isnan(ratios).mean(axis=1) if ratios.shape[1] else np.zeros(len(ratios))
        return RunInputs(counters / np.sqrt(counters.shape[1]), profile, apps, blind)
