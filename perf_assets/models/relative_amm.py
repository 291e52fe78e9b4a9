"""A relative AMM: principal components of the vector of benchmark log ratios of two machines."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.paired import Floats, Indices, PairedSamples


@dataclass(frozen=True)
class RelativeAmm:
    """Components fitted on the ordered pairs of the training machines, applied to any pair with a benchmark.

    Ordered pairs come with both signs, so their mean is 0 and the vector of S->T is minus that of T->S.
    """

    rows: Indices
    components: Floats
    """Components x benchmark rows."""
    scale: float
    """Root mean square of the benchmark vectors' lengths: vectors of training pairs have about unit length."""

    @classmethod
    def fit(cls, samples: PairedSamples, rows: Indices, width: int = 5) -> "RelativeAmm":
        """From what can be seen of the training machines."""
        machines = samples.training_machines
        ratios = samples.benchmark_log_ratios(rows)[np.ix_(machines, machines)]
        pairs = ratios[~np.eye(len(machines), dtype=bool)]
        _, _, directions = np.linalg.svd(pairs, full_matrices=False)
        # Log ratios of m machines span m - 1 dimensions; further directions are rounding noise.
        kept = directions[: min(width, len(machines) - 1)]
        return cls(rows, kept, float(np.sqrt(np.mean(np.sum(pairs**2, axis=1))) + 1e-9))

    @property
    def width(self) -> int:
        """Numbers a pair is described with."""
        return len(self.components)

    def vectors(self, samples: PairedSamples) -> Floats:
        """Source x target x component, in log units of the benchmark (not divided by `scale`)."""
        vectors: Floats = samples.benchmark_log_ratios(self.rows) @ self.components.T
        return vectors

    def arrays(self) -> dict[str, NDArray[Any]]:
        """To be saved."""
        return {"amm_rows": self.rows, "amm_components": self.components, "amm_scale": np.array(self.scale)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "RelativeAmm":
        """From what was saved."""
        return cls(arrays["amm_rows"], arrays["amm_components"], float(arrays["amm_scale"]))
