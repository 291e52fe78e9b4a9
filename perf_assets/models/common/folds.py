"""Rows cut into folds, each held out once."""

import numpy as np

from perf_assets.features.samples import Indices


def folds_of(count: int, folds: int, seed: int) -> list[tuple[Indices, Indices]]:
    """Positions to learn from and positions held out, each position held out once."""
    order = np.random.default_rng(seed).permutation(count)
    parts = [part for part in np.array_split(order, min(folds, count)) if len(part)]
    return [(np.setdiff1d(order, part), np.sort(part)) for part in parts]
