"""The range of runs that a model was made of."""

from dataclasses import dataclass

import numpy as np

from perf_assets.features.fleet.samples import RUN_COLUMNS
from perf_assets.features.samples import Floats, PairedSamples

_SLACK = 1e-6
"""Relative: a number that was written and read again is still inside."""


@dataclass(frozen=True)
class Ranges:
    """Least and largest value of each column of runs on a machine."""

    names: tuple[str, ...]
    least: Floats
    most: Floats

    @classmethod
    def of(cls, samples: PairedSamples, source: int) -> "Ranges":
        """Of application runs on a reference machine; columns that it never measured have no range."""
        runs = samples.counters[source, np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark]
        seen = np.isfinite(runs)
        least = np.where(seen, runs, np.inf).min(axis=0)
        most = np.where(seen, runs, -np.inf).max(axis=0)
        never = ~seen.any(axis=0) | ~np.isin(samples.counter_names, RUN_COLUMNS)
        return cls(samples.counter_names, np.where(never, -np.inf, least), np.where(never, np.inf, most))

    def outside(self, counters: Floats) -> list[str]:
        """One warning that names the columns of a run that no known run was like, or none."""
        slack = _SLACK * np.abs(counters)
        wrong = np.flatnonzero((counters < self.least - slack) | (counters > self.most + slack))
        if not len(wrong):
            return []
        named = [
            f"{self.names[i]} {counters[i]:.4g} (known: {self.least[i]:.4g} to {self.most[i]:.4g})"
            for i in wrong.tolist()
        ]
        return [f"outside the training range: {', '.join(named)}"]
