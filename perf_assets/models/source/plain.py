"""Plain answers that a source model steps aside for where it knows no better: candidates of every blend."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common.archive import Stored

PLAIN = {
    "unchanged": "the time on the source unchanged",
    "benchmark_mean": "the mean benchmark ratio",
    "pair_median": "the median ratio of the pair",
    "typical": "the mean over the machines where the run was made, corrected by how fast machines typically are",
}
"""Plain answers by name, in words."""


class _NothingFitted(Stored):
    """A plain answer for which nothing is fitted."""

    @classmethod
    def fit(cls, samples: PairedSamples, settings: None = None, seed: int = 0) -> Self:
        """Return the method; it has nothing to learn."""
        return cls()


@dataclass(frozen=True)
class Unchanged(_NothingFitted):
    """Every run takes as long as on its source."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times: 0."""
        return np.zeros(len(examples))


@dataclass(frozen=True)
class BenchmarkMean(_NothingFitted):
    """Every run changes by the mean benchmark ratio of its pair of machines."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        means = samples.benchmark_log_ratios(samples.benchmark_rows()).mean(axis=2)
        return np.asarray(means[examples.source, examples.target])


@dataclass(frozen=True, eq=False)
class PairMedian(Stored):
    """Every run changes by the median ratio of the runs that its pair of machines has in common.

    A pair without common runs changes by its mean benchmark ratio, or not at all where there is no benchmark.
    """

    machines: tuple[str, ...]
    medians: Floats
    """Source x target."""

    @classmethod
    def fit(cls, samples: PairedSamples, settings: None = None, seed: int = 0) -> "PairMedian":
        """Fit to all runs that can be seen."""
        times = samples.log_seconds[:, ~samples.is_benchmark]
        medians = np.full((len(times), len(times)), np.nan)
        for source in samples.training_machines:
            for target in samples.training_machines:
                ratios = times[target] - times[source]
                if np.isfinite(ratios).any():
                    medians[source, target] = np.nanmedian(ratios)
        return cls(samples.machines, medians)

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        place = {name: position for position, name in enumerate(self.machines)}
        here = np.array([place.get(name, -1) for name in samples.machines])
        padded = np.pad(self.medians, (0, 1), constant_values=np.nan)
        medians = padded[here[examples.source], here[examples.target]]
        plain = BenchmarkMean() if samples.is_benchmark.any() else Unchanged()
        return np.where(np.isnan(medians), plain.predict(samples, examples), medians)
