"""Start of the fit of M_A: the source counter that stands for each target counter, before any weight is fitted.

Every start maps signed logarithms of target counters to standardised source counters. Source counters that no target
counter stands for are completed from those that one does, by ridge regression over the source's own rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats, Mask
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.features.tables.unpaired import CLIP

_RIDGE = 30.0
"""Penalty of the completion, relative to standardised counters of about a thousand rows."""
_MOST_ROWS, _MOST_SHOTS = 300, 80
"""Source rows and shots in a coupling of rows."""
_SWEEPS = 8
_LABEL_WEIGHT = 1.0


@dataclass(frozen=True)
class SourceRows:
    """Rows of the source that a start uses."""

    counter_names: tuple[str, ...]
    scaler: Scaler
    counters: Floats
    """Rows x counters as measured."""
    target: Floats


@dataclass(frozen=True)
class Start:
    """An affine map, its result clipped."""

    kind: str
    weights: Floats
    """Source counters x target counters: standardised source units per unit of signed logarithm."""
    bias: Floats
    centre: Floats
    """Per target counter, the signed logarithm that stands for a missing value."""

    def apply(self, logs: Floats) -> Floats:
        """Standardised source counters of signed logarithms of rows x target counters."""
        missing = np.isnan(logs)
        filled = np.where(missing, self.centre, logs) if missing.any() else logs
        return np.clip(filled @ self.weights.T + self.bias, -CLIP, CLIP)


def matched(source: SourceRows, target_names: tuple[str, ...], same: Mapping[str, str]) -> Start | None:
    """Identity, in source units, on counters that are the same; `same` is source counter by target counter.

    None where no counter is.
    """
    position = {name: i for i, name in enumerate(source.counter_names)}
    pairs = [(position[same[name]], j) for j, name in enumerate(target_names) if same.get(name) in position]
    if not pairs:
        return None
    direct = np.zeros((len(position), len(target_names)))
    for i, j in pairs:
        direct[i, j] = 1.0
    return _completed("matched", source, direct)


def by_transport(source: SourceRows, counters: Floats, target: Floats, seed: int = 0) -> Start:
    """Rows and counters coupled in turn (co-optimal transport): alike rows have alike counters, and the reverse.

    Looks at values only, in signed logarithms, and at the target of the rows; names play no part.
    """
    chosen = np.random.default_rng(seed).permutation(len(source.target))[:_MOST_ROWS]
    # Shots are in the order in which they were drawn: the first are as good as any.
    counters, target = counters[:_MOST_SHOTS], target[:_MOST_SHOTS]
    ours = np.nan_to_num(signed_log(counters))
    theirs = np.nan_to_num(signed_log(source.counters[chosen]))
    label_cost = _label_cost(source.target[chosen], target)
    rows_alike = _transport(label_cost)
    coupling = np.zeros((theirs.shape[1], ours.shape[1]))
    for _ in range(_SWEEPS):
        cost = (theirs**2).T @ rows_alike.sum(axis=1)[:, None] + ((ours**2).T @ rows_alike.sum(axis=0)[:, None]).T
        cost = cost - 2 * theirs.T @ rows_alike @ ours
        plan = _transport(cost)
        if np.allclose(plan, coupling):
            break
        coupling = plan
        of_rows = (theirs**2 @ coupling.sum(axis=1))[:, None] + (ours**2 @ coupling.sum(axis=0))[None]
        of_rows = of_rows - 2 * theirs @ coupling @ ours.T
        rows_alike = _transport(of_rows / (of_rows.mean() + 1e-12) + _LABEL_WEIGHT * label_cost / label_cost.mean())
    direct = coupling / coupling.sum(axis=1, keepdims=True)
    return _completed("transport", source, direct)


def _completed(kind: str, source: SourceRows, direct: Floats) -> Start:
    """A start from raw correspondences (source counters x target counters, rows sum to 1, or to 0 where none is)."""
    is_known: Mask = direct.sum(axis=1) > 0
    weights = direct / source.scaler.spread[:, None]
    bias = np.where(is_known, -source.scaler.mean / source.scaler.spread, 0.0)
    if not is_known.all():
        scaled = source.scaler.transform(source.counters)
        known, wanted = scaled[:, is_known], scaled[:, ~is_known]
        gram = known.T @ known + _RIDGE * np.eye(known.shape[1])
        completion = np.linalg.solve(gram, known.T @ wanted).T
        weights[~is_known] = completion @ weights[is_known]
        bias[~is_known] = completion @ bias[is_known]
    centre = direct.T @ source.scaler.mean / np.maximum(direct.sum(axis=0), 1e-9)
    return Start(kind, weights, bias, centre)


def _label_cost(source: Floats, target: Floats) -> Floats:
    return np.subtract.outer(_ranks(source), _ranks(target)) ** 2


def _ranks(values: Floats) -> Floats:
    """Positions in order, from 0 to 1."""
    return np.argsort(np.argsort(values)) / max(len(values) - 1, 1)


def _transport(cost: Floats) -> Floats:
    first, second = np.full(cost.shape[0], 1 / cost.shape[0]), np.full(cost.shape[1], 1 / cost.shape[1])
    import ot  # takes a second to load, and most transfers never come here

    return np.asarray(ot.emd(first, second, np.ascontiguousarray(cost)), float)
