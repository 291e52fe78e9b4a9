"""Expected error of answers, from held-out runs: it grows with the distance between two machines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats

_SLOPES = np.concatenate([[0.0], np.geomspace(0.1, 1000.0, 41)])


@dataclass(frozen=True)
class ErrorSize:
    """Root mean square log error: sqrt(near^2 (1 + slope distance)), the distance being that of `blend.distance`."""

    near: float
    slope: float

    @classmethod
    def fit(cls, errors: Sequence[Floats], distances: Sequence[Floats]) -> "ErrorSize":
        """Fit to the log errors of held-out folds, each of which counts the same: largest normal likelihood."""
        share = np.concatenate([np.full(len(own), 1 / (len(own) * len(errors))) for own in errors])
        squares, far = np.concatenate(errors) ** 2, np.concatenate(distances)
        growth = 1 + _SLOPES[:, None] * far
        near = np.maximum((squares / growth) @ share, np.finfo(float).tiny)
        best = int(np.argmin(np.log(near) + np.log(growth) @ share))
        return cls(float(np.sqrt(near[best])), float(_SLOPES[best]))

    def at(self, distance: float) -> float:
        """Log error at a distance."""
        return float(self.near * np.sqrt(1 + self.slope * distance))
