"""What an AMM is made of: the rows of a machine's benchmark, as the encoder takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, PairedSamples

_LEAST_SHARE = 0.5
_NANOSECONDS = 1e9
"""In seconds the logarithm of 1 + time would be the time itself, and short kernels would all look alike."""


@dataclass(frozen=True)
class SuiteLayout:
    """Results of a suite of kernels as a grid: a row for each setting, a column for each kernel."""

    configurations: tuple[str, ...]
    """Kernel runs that are in the grid."""
    settings: tuple[str, ...]
    """Of each of them its row."""
    kernels: tuple[str, ...]
    """Of each of them its column."""

    @classmethod
    def of(cls, samples: PairedSamples) -> "SuiteLayout | None":
        """The grid of a suite; None where the benchmark is none."""
        if samples.benchmark_settings is None:
            return None
        keep = samples.is_benchmark
        return cls(
            tuple(np.array(samples.configurations)[keep].tolist()),
            tuple(samples.benchmark_settings[keep].tolist()),
            tuple(samples.apps[keep].tolist()),
        )

    @classmethod
    def restore(cls, description: Mapping[str, Sequence[str]]) -> "SuiteLayout":
        """From what `dataclasses.asdict` gave, read from JSON."""
        return cls(**{name: tuple(values) for name, values in description.items()})

    def log_times(self, samples: PairedSamples) -> Floats:
        """Machines x settings x kernels, NaN where a kernel was not run in a setting."""
        position = {name: row for row, name in enumerate(samples.configurations)}
        known = [index for index, name in enumerate(self.configurations) if name in position]
        if len(known) < _LEAST_SHARE * len(self.configurations):
            raise BadInputError(
                f"{', '.join(samples.machines)}: only {len(known)} of the {len(self.configurations)} kernel runs that "
                "the AMM encoder knows are there: run RAJAPerf with the same kernels and sizes"
            )
        _, rows = np.unique(self.settings, return_inverse=True)
        _, columns = np.unique(self.kernels, return_inverse=True)
        times = np.full((len(samples.machines), rows.max() + 1, columns.max() + 1), np.nan)
        found = samples.log_seconds[:, [position[self.configurations[index]] for index in known]]
        times[:, rows[known], columns[known]] = found
        return times


def benchmark_results(samples: PairedSamples, layout: SuiteLayout | None) -> Floats:
    """Machines x benchmark rows x columns.

    Where the benchmark is a suite, a row is one setting of it and has the times of all its kernels; otherwise a row
    is one configuration with its counters and its time.
    """
    if layout is not None:
        return _NANOSECONDS * np.exp(layout.log_times(samples))
    rows = samples.benchmark_rows()
    return np.concatenate([samples.counters[:, rows], samples.log_seconds[:, rows, None]], axis=2)


def log_times(samples: PairedSamples, layout: SuiteLayout | None) -> Floats:
    """Machines x benchmark rows x log times; a kernel that was not run in a setting is as the others are there."""
    if layout is None:
        return samples.log_seconds[:, samples.benchmark_rows(), None]
    times = layout.log_times(samples)
    return np.where(np.isnan(times), np.nanmean(times, axis=2, keepdims=True), times)
