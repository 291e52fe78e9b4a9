"""How far a source model can be trusted: rows that are farther from all it has learned from than any shot is.

The shots say how good a transfer is for rows like them. Of rows that are farther from the source's own than all shots,
and than the source's own farthest row, they say nothing, and a net answers there all the same. Such rows are left to
models of the shots alone, the more the farther they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.paired import Floats
from perf_assets.models.alignment import Alignment
from perf_assets.models.alignment_starts import SourceRows
from perf_assets.models.fitted import Rows

_NOISE = 0.05
"""Variance of a standardised counter that counts as none: directions with less are taken together."""
_MARGIN = 1.15
_FADING = 4.0
"""Power of the distance with which trust fades beyond the reach."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Where rows of one source are, and how far from there its model is trusted."""

    part: int
    """Position of the alignment that says where target rows are among the source's."""
    middle: Floats
    directions: Floats
    """Counters x principal directions of the source's rows."""
    gains: Floats
    """Of each direction: 1/variance along it, less 1/variance of the noise."""
    limit: float
    """Distance up to which it is trusted."""

    @classmethod
    def of(cls, part: int, source: SourceRows, started: Floats) -> "Reach":
        """From the source's rows and where the shots are among them."""
        own = source.scaler.transform(source.counters)
        middle = own.mean(axis=0)
        variances, directions = np.linalg.eigh(np.cov(own.T).reshape(own.shape[1], own.shape[1]))
        kept = variances > _NOISE
        gains = 1 / (variances[kept] + _NOISE) - 1 / _NOISE
        found = cls(part, middle, directions[:, kept], gains, 1.0)
        farthest = max(float(found.distance(rows).max()) for rows in (own, started))
        return cls(part, middle, directions[:, kept], gains, _MARGIN * farthest)

    def distance(self, started: Floats) -> Floats:
        """Of standardised source counters from the source's rows; 1 is usual (Mahalanobis distance per counter)."""
        apart = started - self.middle
        along = apart @ self.directions
        squares = np.einsum("ij,ij->i", apart, apart) / _NOISE + (along**2) @ self.gains
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / apart.shape[1]))

    def description(self) -> dict[str, Any]:
        """Everything that is no array."""
        return {"part": self.part, "limit": self.limit}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays."""
        return {"middle": self.middle, "directions": self.directions, "gains": self.gains}

    @classmethod
    def restore(cls, description: Mapping[str, Any], stored: Mapping[str, NDArray[Any]], prefix: str) -> "Reach":
        """From what `description` and `arrays` gave, in single precision."""
        single: list[NDArray[Any]] = [
            stored[f"{prefix}{name}"].astype(np.float32) for name in ("middle", "directions", "gains")
        ]
        return cls(description["part"], single[0], single[1], single[2], description["limit"])


def trust(reaches: Sequence[Reach], parts: Sequence[Alignment], rows: Rows) -> Floats:
    """Of each row, 1 within the reach of a source and less beyond that of all."""
    beyond = [reach.distance(rows.started(parts[reach.part])) / reach.limit for reach in reaches]
    return np.asarray(np.maximum(np.min(beyond, axis=0), 1.0) ** -_FADING)
