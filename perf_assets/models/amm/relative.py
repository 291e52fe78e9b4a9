"""A relative AMM: principal components of the vector of benchmark log ratios of two machines."""

from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, PairedSamples

ROWS_PER_BENCHMARK = 24
"""Rows of each benchmark application that describe a machine: more rows add little."""


@dataclass(frozen=True)
class RelativeAmm:
    """Components fitted on the ordered pairs of known machines, applied to any pair with the same benchmark rows.

    Ordered pairs come with both signs, so their mean is 0 and the vector of S->T is minus that of T->S.
    """

    components: Floats
    """Components x benchmark rows."""
    scale: float
    """Root mean square of the benchmark vectors' lengths: vectors of known pairs have about unit length."""

    @classmethod
    def fit(cls, samples: PairedSamples, width: int = 5) -> "RelativeAmm":
        """Fit to what can be seen of the known machines."""
        machines = samples.encoder_machines
        ratios = samples.benchmark_log_ratios(samples.benchmark_rows(ROWS_PER_BENCHMARK))[np.ix_(machines, machines)]
        pairs = ratios[~np.eye(len(machines), dtype=bool)]
        _, _, directions = np.linalg.svd(pairs, full_matrices=False)
        # Log ratios of m machines span m - 1 dimensions; further directions are rounding noise.
        kept = directions[: min(width, len(machines) - 1)]
        return cls(kept, float(np.sqrt(np.mean(np.sum(pairs**2, axis=1))) + 1e-9))

    @property
    def width(self) -> int:
        """Numbers a pair is described with."""
        return len(self.components)

    def ratios(self, samples: PairedSamples) -> Floats:
        """Source x target x benchmark row: log ratios of the rows that describe machines."""
        rows = samples.benchmark_rows(ROWS_PER_BENCHMARK)
        if len(rows) != self.components.shape[1]:
            raise BadInputError(
                f"the model knows {self.components.shape[1]} benchmark rows, here are {len(rows)}: train it again"
            )
        return samples.benchmark_log_ratios(rows)

    def vectors(self, samples: PairedSamples) -> Floats:
        """Source x target x component, in log units of the benchmark (not divided by `scale`)."""
        vectors: Floats = self.ratios(samples) @ self.components.T
        return vectors

    def anchor(self, samples: PairedSamples) -> Floats:
        """Source x target: mean benchmark log ratio."""
        return np.asarray(self.ratios(samples).mean(axis=2))

    def anchor_of(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Mean benchmark log ratio of each example's pair."""
        return np.asarray(self.anchor(samples)[examples.source, examples.target])
