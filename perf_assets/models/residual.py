"""M_R: a model of what the alignment leaves.

It learns from OUT-OF-FOLD residuals: an alignment that was fitted on the same shots leaves almost nothing on them.
"""

from collections.abc import Callable

import numpy as np

from perf_assets.features.paired import Floats, Indices
from perf_assets.features.transfer_tables import shot_scaler
from perf_assets.models.fitted import Aligned, Corrected, Probed, Rows, probe_inputs, residual_inputs
from perf_assets.models.small_gp import SmallGp
from perf_assets.models.small_models import Linear, SmallModel, fit_shallow_trees, ridge_with_held_out

_AS_GOOD = 1.02
"""A more complex model must be better than this factor of the simpler one's squared error."""
_ENOUGH_FOR_TREES = 60
_FOLDS = 4

FitBase = Callable[[Indices], Aligned]
"""Fits the alignment on some of the shots, given by position."""


def folds_of(count: int, folds: int, seed: int) -> list[tuple[Indices, Indices]]:
    """Positions to learn from and positions held out, each position held out once."""
    order = np.random.default_rng(seed).permutation(count)
    parts = [part for part in np.array_split(order, min(folds, count)) if len(part)]
    return [(np.setdiff1d(order, part), np.sort(part)) for part in parts]


def fit_corrected(counters: Floats, target: Floats, fit_base: FitBase, seed: int, *, is_fixed: bool) -> Corrected:
    """The base on all shots plus M_R; a fixed base is not fitted on shots and needs no folds."""
    base, rows = fit_base(np.arange(len(target))), Rows(counters)
    held_out = base.predict(rows) if is_fixed else np.empty(len(target))
    for inside, outside in [] if is_fixed else folds_of(len(target), _FOLDS, seed):
        held_out[outside] = fit_base(inside).predict(Rows(counters[outside]))
    scaler = shot_scaler(counters)
    inputs = residual_inputs(base, scaler, rows)
    return Corrected(base, scaler, choose_residual_model(inputs, target - held_out, seed))


def fit_probed(counters: Floats, target: Floats, base: Aligned) -> Probed:
    """Gaussian process on target counters and the frozen source models' hidden layers."""
    rows, scaler = Rows(counters), shot_scaler(counters)
    hidden = np.hstack([rows.hidden(part) for part in base.parts])
    middle, spread = hidden.mean(axis=0), float(hidden.std()) + 1e-9
    inputs = probe_inputs(base, scaler, middle, spread, rows)
    return Probed(base, scaler, middle, spread, SmallGp.fit(inputs, target))


def choose_residual_model(inputs: Floats, residual: Floats, seed: int) -> SmallModel:
    """Nothing, ridge, Gaussian process or shallow trees: the simplest whose held-out error is about the smallest."""
    ridge, by_ridge = ridge_with_held_out(inputs, residual)
    process = SmallGp.fit(inputs, residual)
    tried: list[tuple[SmallModel, Floats]] = [
        (Linear(np.zeros(inputs.shape[1]), 0.0), np.zeros(len(residual))),
        (ridge, by_ridge),
        (process, process.held_out),
    ]
    if len(residual) >= _ENOUGH_FOR_TREES:
        by_trees = np.empty(len(residual))
        for inside, outside in folds_of(len(residual), _FOLDS, seed):
            trees = fit_shallow_trees(inputs[inside], residual[inside], seed)
            by_trees[outside] = trees.predict(inputs[outside])
        tried.append((fit_shallow_trees(inputs, residual, seed), by_trees))
    best, least = tried[0][0], float(np.mean(residual**2))
    for model, held_out in tried[1:]:
        error = float(np.mean((residual - held_out) ** 2))
        if error * _AS_GOOD < least:
            best, least = model, error
    return best
