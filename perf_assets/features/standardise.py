"""Counters span ten orders of magnitude: signed logarithm, then one mean and spread for all training machines."""

from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats, PairedSamples

_CLIP = 6.0
"""Standard deviations beyond which a value says no more than "far outside"."""
_LEAST_SPREAD = 1e-3


def signed_log(values: Floats) -> Floats:
    """sign(x) log(1 + |x|); NaN stays."""
    result: Floats = np.sign(values) * np.log1p(np.abs(values))
    return result


@dataclass(frozen=True)
class Scaler:
    """Standardises signed logarithms."""

    mean: Floats
    spread: Floats

    @classmethod
    def fit(cls, values: Floats) -> "Scaler":
        """Fit to rows x counters; rows that are all NaN say nothing."""
        logs = signed_log(values[np.isfinite(values).any(axis=1)])
        count = np.maximum(np.isfinite(logs).sum(axis=0), 1)
        mean = np.nansum(logs, axis=0) / count
        spread = np.sqrt(np.nansum((logs - mean) ** 2, axis=0) / count)
        return cls(mean, spread + _LEAST_SPREAD)

    def transform(self, values: Floats) -> Floats:
        """Standardised and clipped; what is missing becomes 0, the mean of the training rows."""
        return self.standardised(signed_log(values))

    def standardised(self, logs: Floats) -> Floats:
        """Standardised signed logarithms of counters."""
        return np.nan_to_num(np.clip((logs - self.mean) / self.spread, -_CLIP, _CLIP), nan=0.0)


def fit_scaler(samples: PairedSamples, *, with_benchmark: bool = False) -> Scaler:
    """One scaler for all machines: scaling each by itself would erase what makes it itself."""
    rows = with_benchmark | ~samples.is_benchmark
    seen = samples.counters[samples.training_machines][:, rows]
    return Scaler.fit(seen.reshape(-1, seen.shape[-1]))
