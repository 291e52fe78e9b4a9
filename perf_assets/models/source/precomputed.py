"""Expected times of runs in a form that is quick to compute: all that does not depend on the run is done beforehand."""

from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats
from perf_assets.features.standardise import Scaler


@dataclass(frozen=True, eq=False)
class RadialSums:
    """Weighted sums of squared-exponential functions of a run's counters."""

    scaler: Scaler
    centres: Floats
    """Centres x counters, standardised and divided by the root of their number."""
    lengths: tuple[float, ...]
    weights: Floats
    """Lengths x centres x sums."""
    constants: Floats
    """Constant term of each sum."""

    def of(self, logs: Floats) -> Floats:
        """Runs x sums, from runs x signed logarithms of counters."""
        runs = self.scaler.standardised(logs)
        runs /= np.sqrt(runs.shape[1])
        squares = runs @ (-2 * self.centres.T)
        squares += np.einsum("ij,ij->i", runs, runs)[:, None]
        squares += np.einsum("ij,ij->i", self.centres, self.centres)
        np.maximum(squares, 0.0, out=squares)
        total = np.broadcast_to(self.constants, (len(runs), len(self.constants)))
        for length, weights in zip(self.lengths, self.weights, strict=True):
            total = total + np.exp(squares * (-0.5 / length**2)) @ weights
        return np.asarray(total)


@dataclass(frozen=True, eq=False)
class RunTerms:
    """Log times relative to the source, of runs of known configurations, for one pair of machines.

    constant + slope * (log seconds on the source) + along . (sums of the run's counters)
    """

    constant: Floats
    """One for each configuration, as is `slope`."""
    slope: Floats
    along: Floats
    """Configurations x sums."""
    sums: RadialSums
