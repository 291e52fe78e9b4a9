"""Rows of a dataset to measure next: counterparts of other datasets' rows that would tell most.

What ran elsewhere is described by the features that both share. A Gaussian process in the space of the model tells how
much less uncertain all of these rows will be after one of them was measured; each pick takes those before into account.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats
from perf_assets.features.tables.unpaired import TransferTable, same_counters
from perf_assets.models.common.averaged_gp import squared_distances
from perf_assets.models.transfer.adapted import AdaptedTransfer
from perf_assets.models.transfer.task import TransferTask

_MOST_CANDIDATES = 500
"""Rows that stand for all that could be measured."""
_RELATIVE_NOISE = 0.03
"""Variance of a measurement relative to that of the process."""
_SAME_PLACE = 1e-12
_MEAN_OVER_SPREAD = float(np.sqrt(2 / np.pi))


@dataclass(frozen=True)
class PlannedRow:
    """One row to measure, in its place of the plan."""

    source: str
    """Dataset that has its counterpart."""
    row: int
    """Its number among the rows of that table."""
    error_before: float
    """Expected error over all that could be measured, with those planned before it; as the model's errors."""
    error_after: float


def plan_rows(adapted: AdaptedTransfer, task: TransferTask, budget: int) -> list[PlannedRow]:
    """Plan at most `budget` rows of the sources, best first."""
    if not adapted.scores:
        raise BadInputError("there are too few rows to tell how sure the model is")
    places, counters = _candidates(task)
    if not places:
        raise BadInputError("no source has a feature of this dataset: what ran there cannot be repeated here")
    model = adapted.model
    space = len(model.process.units) - 1
    unit = model.process.units[space]
    known = model.process.rows.spaces[space]
    asked = model.features.inputs(counters).spaces[space]
    is_new = squared_distances(asked, known).min(axis=1) > _SAME_PLACE
    places, asked = [place for place, new in zip(places, is_new, strict=True) if new], asked[is_new]
    if not places:
        raise BadInputError("everything that ran in the sources has been measured here")

    def kernel(rows: Floats, others: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * squared_distances(rows, others) / unit))

    inverse = np.linalg.inv(kernel(known, known) + _RELATIVE_NOISE * np.eye(len(known)))
    across = kernel(asked, known)
    among = kernel(asked, asked) - across @ inverse @ across.T
    # What the model's error on rows that were left out is in units of the process.
    left_out = float(np.sqrt(1 / np.diag(inverse)).mean())
    error = next(score.log_rmse for score in adapted.scores if score.name == adapted.chosen)
    scale = _MEAN_OVER_SPREAD * error / max(left_out, _SAME_PLACE)
    chosen: list[PlannedRow] = []
    is_left = np.ones(len(places), bool)
    for _ in range(min(budget, len(places))):
        variance = np.maximum(np.diag(among), 0.0)
        after = np.sqrt(np.maximum(variance[:, None] - among**2 / (variance + _RELATIVE_NOISE), 0.0)).mean(axis=0)
        best = int(np.argmin(np.where(is_left, after, np.inf)))
        source, row = places[best]
        chosen.append(PlannedRow(source, row, scale * float(np.sqrt(variance).mean()), scale * float(after[best])))
        is_left[best] = False
        among = among - np.outer(among[:, best], among[best]) / (variance[best] + _RELATIVE_NOISE)
    return chosen


def _candidates(task: TransferTask) -> tuple[list[tuple[str, int]], Floats]:
    """Rows of sources that share a feature with the target: where they stand, and the target's features of each."""
    candidates, places = [], []
    tables: Sequence[TransferTable] = [table for source in task.sources for table in source.tables]
    share = max(1, _MOST_CANDIDATES // max(len(tables), 1))
    for table in tables:
        same = same_counters(table.counter_names, task.target.counter_names)
        if not same or table.name == task.target.name:
            continue
        rows = np.sort(np.random.default_rng(0).permutation(len(table))[:share])
        counters = np.full((len(rows), len(task.target.counter_names)), np.nan)
        for position, name in enumerate(task.target.counter_names):
            if name in same:
                counters[:, position] = table.counters[rows, table.counter_names.index(same[name])]
        candidates.append(counters)
        places += [(table.name, int(row)) for row in rows]
    return places, np.vstack(candidates) if candidates else np.empty((0, len(task.target.counter_names)))
