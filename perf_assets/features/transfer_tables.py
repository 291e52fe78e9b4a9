"""Plain tables to what few-shot transfer needs: counters as measured, and the target to predict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from perf_assets.core.catalogue import Catalogue, plain_name
from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.paired import Floats, Indices, Mask
from perf_assets.features.scaling import Scaler, signed_log

_CONSTANT = 1e-6
"""Standard deviation of signed logarithms below which a counter does not vary."""
CLIP = 6.0
"""Standard deviations beyond which a value says no more than "far outside"."""
_IGNORED = 1e12
"""Spread of a counter that the shots say nothing about: whatever its value, it counts as the mean."""


@dataclass(frozen=True, eq=False)
class TransferTable:
    """Runs of one machine."""

    name: str
    counter_names: tuple[str, ...]
    counters: Floats
    """Rows x counters as measured; NaN is missing."""
    target: Floats
    """What is predicted: its logarithm, or itself where the caller wants it plain."""
    rows: Mask
    """Which rows of the frame are in here."""
    notes: tuple[str, ...] = ()
    """What a person should know about how the table was read."""

    def __len__(self) -> int:
        return len(self.target)

    def logs(self, rows: Indices) -> Floats:
        """Signed logarithms of the counters of rows."""
        return signed_log(self.counters[rows])


def transfer_table(
    name: str, frame: pd.DataFrame, target_column: str, *, drop: Sequence[str] = (), is_log: bool = True
) -> TransferTable:
    """Numeric columns that vary are counters, but for the target and those in whose name a `drop` is found."""
    target = _target(name, frame, target_column)
    usable = np.isfinite(target) & ((target > 0) | (not is_log))
    notes = []
    if not usable.all():
        what = "a positive" if is_log else "a"
        notes.append(f"{name}: {int((~usable).sum())} rows without {what} value of {target_column} are left out")
    if not usable.any():
        raise BadInputError(f"{name}: no row has {'a positive' if is_log else 'a'} value of {target_column}")
    kept = frame[usable]
    counters, found = _counters(kept, target_column, drop)
    notes += [f"{name}: {note}" for note in found]
    if not counters:
        raise BadInputError(f"{name}: no numeric column beside {target_column} is left that varies")
    values = kept[counters].to_numpy(float)
    seen = target[usable]
    return TransferTable(
        name, tuple(counters), values, np.log(seen) if is_log else seen, np.asarray(usable), tuple(notes)
    )


def same_counters(
    source_names: Sequence[str], target_names: Sequence[str], catalogue: Catalogue | None = None
) -> dict[str, str]:
    """Source counter by target counter, where both have the same name or stand for the same quantity."""
    by_plain = {plain_name(name): name for name in reversed(source_names)}
    same = {name: by_plain[plain_name(name)] for name in target_names if plain_name(name) in by_plain}
    # Equal as written comes before equal but for case and prefixes.
    same |= {name: name for name in target_names if name in set(source_names)}
    if catalogue is not None:
        theirs, ours = _quantities(catalogue, source_names), _quantities(catalogue, target_names)
        for quantity, name in ours.items():
            if quantity in theirs and name not in same:
                same[name] = theirs[quantity]
    return same


def shot_scaler(counters: Floats) -> Scaler:
    """Standardisation by the shots; a counter that does not vary over them is ignored."""
    logs = signed_log(counters)
    count = np.maximum(np.isfinite(logs).sum(axis=0), 1)
    mean = np.nansum(logs, axis=0) / count
    spread = np.sqrt(np.nansum((logs - mean) ** 2, axis=0) / count)
    return Scaler(mean, np.where(spread > _CONSTANT, spread, _IGNORED))


def varies(scaler: Scaler) -> Mask:
    """Which counters the shots say something about."""
    return np.asarray(scaler.spread < _IGNORED)


def standardised_logs(scaler: Scaler, logs: Floats) -> Floats:
    """Of signed logarithms of counters, those that the shots say something about; missing ones are at the mean."""
    chosen = varies(scaler)
    values = (logs[:, chosen] - scaler.mean[chosen]) / scaler.spread[chosen]
    np.clip(values, -CLIP, CLIP, out=values)
    values[np.isnan(values)] = 0.0
    return np.asarray(values)


def scaled_rows(counters: Floats) -> Floats:
    """Rows x counters standardised by themselves, without the counters that do not vary."""
    return standardised_logs(shot_scaler(counters), signed_log(counters))


def _target(name: str, frame: pd.DataFrame, column: str) -> Floats:
    if column not in frame.columns:
        raise BadInputError(f"{name}: no column {column!r}; there are {listed(list(frame.columns))}")
    if not is_numeric_dtype(frame[column]):
        raise BadInputError(f"{name}: target column {column!r} holds text")
    return frame[column].to_numpy(float)


def _counters(frame: pd.DataFrame, target: str, drop: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of the counters, and what became of the other columns."""
    others = [str(name) for name in frame.columns if name != target]
    numeric = [n for n in others if is_numeric_dtype(frame[n]) and frame[n].notna().any()]
    dropped = [n for n in others if any(re.search(pattern, n) for pattern in drop)]
    constant = [n for n in numeric if n not in dropped and frame[n].nunique() <= 1]
    texts = [n for n in others if n not in numeric and n not in dropped]
    notes = [
        f"{len(names)} columns {why}: {listed(names)}"
        for names, why in (
            (texts, "hold text or nothing and are ignored"),
            (dropped, "are dropped as asked"),
            (constant, "do not vary and are ignored"),
        )
        if names
    ]
    return [n for n in numeric if n not in dropped and n not in constant], notes


def _quantities(catalogue: Catalogue, names: Sequence[str]) -> dict[str, str]:
    """Counter by quantity, where one counter alone stands for it."""
    found: dict[str, str] = {}
    for resolved in catalogue.resolve(names, None):
        if len(resolved.counters) == 1:
            found.setdefault(resolved.quantity, resolved.counters[0])
    return found
