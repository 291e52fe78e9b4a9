"""Whether a new model of a dataset should replace the one in use, and whether new rows contradict that one."""

from functools import partial

import numpy as np
import pandas as pd

from perf_assets.features.samples import Floats
from perf_assets.models.target.promotion import (
    LARGEST_LOG_ERROR,
    SAME_LOG_TIME,
    Drift,
    HeldOutErrors,
    ModelComparison,
    decide,
    drift_of,
)
from perf_assets.models.transfer.adapted import AdaptedTransfer, relative_errors


def compare_transfer(new: AdaptedTransfer, champion: AdaptedTransfer | None, rows: pd.DataFrame) -> ModelComparison:
    """Decide whether a new model replaces the champion; `rows` are those of the dataset, by their names."""
    names = [name for name in new.held_out if name in rows.index]
    true = np.array([new.rows[name] for name in names])
    own, alone = (
        np.clip(np.array([held_out[name] for name in names]) - true, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR)
        for held_out in (new.held_out, new.held_out_alone)
    )
    theirs = np.full(len(names), np.nan)
    if champion is not None and _is_comparable(champion, new) and names:
        answers = champion.predict(rows.loc[names]).log_time
        known = [champion.held_out.get(name, answer) for name, answer in zip(names, answers.tolist(), strict=True)]
        # A row that the champion was fitted to and that was not held out is no test of it.
        fitted = np.array([name in champion.rows and name not in champion.held_out for name in names])
        theirs = np.where(fitted, np.nan, np.clip(np.array(known) - true, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR))
    relative = partial(relative_errors, true=true, is_log=new.is_log)
    was_judged = champion is not None and bool(champion.held_out)
    return decide(HeldOutErrors(own, alone, theirs), was_judged=was_judged, relative=relative)


def transfer_drift(champion: AdaptedTransfer, new: AdaptedTransfer, rows: pd.DataFrame) -> Drift:
    """Hold rows that are new, or have another target than the champion knew, against the champion's intervals."""
    if not _is_comparable(champion, new):
        return Drift(0, 0, 0)
    names = [
        name
        for name, value in new.rows.items()
        if name in rows.index
        and not abs(value - champion.rows.get(name, np.inf)) < SAME_LOG_TIME * _unit(champion, value)
    ]
    if not names:
        return Drift(0, 0, 0)
    mean, lower, upper = champion.predict(rows.loc[names]).bounds
    true = np.array([new.rows[name] for name in names])
    inside = ((lower <= true) & (true <= upper)).tolist()
    ratios = (
        np.exp(np.clip(true - mean, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR))
        if champion.is_log
        else _plain_ratios(true, mean)
    )
    return drift_of(names, inside, ratios.tolist())


def _is_comparable(champion: AdaptedTransfer, new: AdaptedTransfer) -> bool:
    """Whether both predict the same thing from columns that the rows have."""
    return (champion.target_column, champion.is_log) == (new.target_column, new.is_log) and not set(
        champion.columns
    ).isdisjoint(new.columns)


def _unit(champion: AdaptedTransfer, value: float) -> float:
    """Size of a difference that counts: logarithms differ by shares."""
    return 1.0 if champion.is_log else max(abs(value), 1e-12)


def _plain_ratios(true: Floats, mean: Floats) -> Floats:
    tiny = 1e-12
    return np.asarray((np.abs(true) + tiny) / (np.abs(mean) + tiny))
