"""Weights of a blend, chosen on a grid by errors on what was held out."""

from collections.abc import Iterator

import numpy as np

from perf_assets.features.samples import Floats

_STEPS = 5
"""Weights are fifths: finer ones only fit the noise of a few held-out applications or machines."""
_AS_GOOD_FACTOR = 1.01
_ROUNDING = 1e-12
"""Errors that differ by less are equal: where one is 0, the others are some rounding above it."""


def weight_grid(count: int) -> Floats:
    """Blends x components: all weights in fifths with sum 1."""
    return np.array(list(_shares(count, _STEPS))) / _STEPS


def _shares(count: int, left: int) -> Iterator[tuple[int, ...]]:
    """Ways to share whole steps, in order: only those that add up, which are few among all of nine components."""
    if count == 1:
        yield (left,)
        return
    for first in range(left + 1):
        for others in _shares(count - 1, left - first):
            yield first, *others


def most_even(weights: Floats, errors: Floats) -> int:
    """Position of the most even blend among those as good as the best within a hundredth of its error."""
    is_good = errors <= _AS_GOOD_FACTOR * errors.min() + _ROUNDING
    return int(np.argmin(np.where(is_good, (weights**2).sum(axis=1), np.inf)))
