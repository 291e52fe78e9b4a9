"""Plain answers that a source model steps aside for where it knows no better: candidates of every blend."""

from pathlib import Path
from typing import Self

import numpy as np

from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common import archive

_FILE = "plain.npz"
PLAIN = {
    "unchanged": "the time on the source unchanged",
    "benchmark_mean": "the mean benchmark ratio",
    "pair_median": "the median ratio of the pair",
    "typical": "the mean over the machines where the run was made, corrected by how fast machines typically are",
}
"""Plain answers by name, in words."""


class _NothingFitted:
    """A plain answer for which nothing is fitted."""

    def save(self, folder: Path) -> None:
        """Leave a mark: there is nothing to store."""
        archive.save(folder / _FILE, {}, {})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Make it again."""
        return cls()


class Unchanged(_NothingFitted):
    """Every run takes as long as on its source."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times: 0."""
        return np.zeros(len(examples))


class BenchmarkMean(_NothingFitted):
    """Every run changes by the mean benchmark ratio of its pair of machines."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        means = samples.benchmark_log_ratios(samples.benchmark_rows()).mean(axis=2)
        return np.asarray(means[examples.source, examples.target])


class PairMedian:
    """Every run changes by the median ratio of the runs that its pair of machines has in common.

    A pair without common runs changes by its mean benchmark ratio, or not at all where there is no benchmark.
    """

    def __init__(self, machines: tuple[str, ...], medians: Floats) -> None:
        self._machines = machines
        self._medians = medians

    @classmethod
    def fit(cls, samples: PairedSamples) -> "PairMedian":
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
        place = {name: position for position, name in enumerate(self._machines)}
        here = np.array([place.get(name, -1) for name in samples.machines])
        padded = np.pad(self._medians, (0, 1), constant_values=np.nan)
        medians = padded[here[examples.source], here[examples.target]]
        plain = BenchmarkMean() if samples.is_benchmark.any() else Unchanged()
        return np.where(np.isnan(medians), plain.predict(samples, examples), medians)

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        archive.save(folder / _FILE, {"machines": self._machines}, {"medians": self._medians})

    @classmethod
    def load(cls, folder: Path) -> "PairMedian":
        """Read what `save` wrote."""
        description, arrays = archive.load(folder / _FILE)
        return cls(tuple(description["machines"]), arrays["medians"])
