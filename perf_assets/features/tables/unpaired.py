"""Plain tables to what few-shot transfer needs: numbers and levels of words as features, and the target to predict.

A column of words with few levels (placement, solver, nesting) becomes one indicator feature per level, called
`column=level`, with the value 1 where the row has that level and 0 elsewhere. Levels of two tables are matched by
these names, like counters; a row with a level that a model has never seen has 0 in all of its indicators.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from perf_assets.core.catalogue import Catalogue, plain_name
from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.standardise import Scaler, signed_log

_CONSTANT = 1e-6
"""Standard deviation of signed logarithms below which a counter does not vary."""
CLIP = 6.0
"""Standard deviations beyond which a value says no more than "far outside"."""
_IGNORED = 1e12
"""Spread of a counter that does not vary among the shots: any value counts as the mean."""
_LEVEL_SPREAD = float(np.log(2) / np.sqrt(2))
"""Spread of every indicator, in signed logarithms: two rows with different levels of a word are as far apart as two
rows of which one is a standard deviation above and the other one below the mean of a number."""
_MOST_LEVELS = 32
_ROWS_PER_LEVEL = 3
"""A column of words with more levels, or with fewer rows per level on average, is an id, a name or free text."""
_MOSTLY_NUMBERS = 0.9
"""Share of the filled cells of a text column that must be numbers for the rest to count as missing."""


@dataclass(frozen=True, eq=False)
class TransferTable:
    """Runs of one machine."""

    name: str
    counter_names: tuple[str, ...]
    counters: Floats
    """Rows x counters as measured; NaN is missing."""
    target: Floats
    """Predicted values: logarithms, or plain values where the caller wants these."""
    rows: Mask
    """Rows of the frame that are used."""
    notes: tuple[str, ...] = ()
    """Notes on how the table was read."""
    level_columns: Mapping[str, str] = field(default_factory=dict)
    """Column of words by the name of its indicator; features that are not in here are numbers."""

    def __len__(self) -> int:
        return len(self.target)

    @cached_property
    def is_level(self) -> Mask:
        """Marks the features that are indicators of words."""
        return np.array([name in self.level_columns for name in self.counter_names])


def transfer_table(
    name: str, frame: pd.DataFrame, target_column: str, *, drop: Sequence[str] = (), is_log: bool = True
) -> TransferTable:
    """Features are the columns that vary, but for the target and those in whose name a `drop` is found.

    Numbers are taken as they are, words with few levels as indicators; ids, file names and free text are left out.
    """
    target = _target(name, frame, target_column)
    usable = np.isfinite(target) & ((target > 0) | (not is_log))
    notes = []
    if not usable.all():
        what = "a positive" if is_log else "a"
        notes.append(f"{name}: {int((~usable).sum())} rows without {what} value of {target_column} are left out")
    if not usable.any():
        raise BadInputError(f"{name}: no row has {'a positive' if is_log else 'a'} value of {target_column}")
    kept = frame[usable]
    if kept[target_column].nunique() == 1:
        raise BadInputError(f"{name}: all rows have the same value of {target_column}: there is nothing to predict")
    features, level_columns, by_column = _features(kept, target_column, drop)
    notes += [f"{name}: {note}" for note in by_column]
    if not features:
        raise BadInputError(
            f"{name}: no column beside {target_column} is left that varies and holds numbers or words with few levels"
        )
    seen = target[usable]
    return TransferTable(
        name=name,
        counter_names=tuple(features),
        counters=np.column_stack(list(features.values())),
        target=np.log(seen) if is_log else seen,
        rows=np.asarray(usable),
        notes=tuple(notes),
        level_columns=level_columns,
    )


def encoded_rows(frame: pd.DataFrame, names: Sequence[str], level_columns: Mapping[str, str]) -> Floats:
    """Rows x features of a frame, for a model of these feature names; a column that is absent is missing (NaN)."""
    columns = []
    for name in names:
        source = level_columns.get(name, name)
        if source not in frame.columns:
            columns.append(np.full(len(frame), np.nan))
        elif name in level_columns:
            columns.append(_indicator(frame[source], name.removeprefix(f"{source}=")))
        else:
            values = pd.to_numeric(frame[source], errors="coerce").to_numpy(float)
            columns.append(np.where(np.isfinite(values), values, np.nan))
    return np.column_stack(columns)


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


def kind_notes(source: TransferTable, target: TransferTable) -> list[str]:
    """Notes about columns that hold words in one table and numbers in the other."""
    notes = []
    for first, second in ((source, target), (target, source)):
        numbers = set(second.counter_names) - set(second.level_columns)
        columns = sorted(set(first.level_columns.values()) & numbers)
        if columns:
            notes.append(
                f"{len(columns)} columns hold words in {first.name} and numbers in {second.name} and are not matched: "
                f"{listed(columns)}"
            )
    return notes


def shot_scaler(counters: Floats, is_level: Mask | None = None) -> Scaler:
    """Standardisation by the shots; a counter that does not vary over them is ignored.

    Indicators (`is_level`) have one spread in common, however often their level is among the shots.
    """
    logs = signed_log(counters)
    count = np.maximum(np.isfinite(logs).sum(axis=0), 1)
    mean = np.nansum(logs, axis=0) / count
    spread = np.sqrt(np.nansum((logs - mean) ** 2, axis=0) / count)
    known = spread > _CONSTANT
    if is_level is not None:
        spread = np.where(is_level, _LEVEL_SPREAD, spread)
    return Scaler(mean, np.where(known, spread, _IGNORED))


def varies(scaler: Scaler) -> Mask:
    """Marks the counters that vary among the shots."""
    return np.asarray(scaler.spread < _IGNORED)


def standardised_logs(scaler: Scaler, logs: Floats) -> Floats:
    """Standardise signed logarithms of counters that the shots say something about; missing ones are at the mean."""
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
        # Readers leave out columns in which every cell is empty.
        raise BadInputError(
            f"{name}: no column {column!r}, or nothing in it; there are {listed(list(frame.columns))}: name another"
        )
    if not is_numeric_dtype(frame[column]):
        raise BadInputError(f"{name}: target column {column!r} holds text")
    return frame[column].to_numpy(float)


def _features(
    frame: pd.DataFrame, target: str, drop: Sequence[str]
) -> tuple[dict[str, Floats], dict[str, str], list[str]]:
    """Values by feature, the column of words by indicator, and notes on what became of the other columns."""
    features: dict[str, Floats] = {}
    level_columns: dict[str, str] = {}
    left_out: dict[str, list[str]] = {why: [] for why in ("text", "dropped", "constant", "partly")}
    for column in map(str, frame.columns):
        if column == target:
            continue
        if any(re.search(pattern, column) for pattern in drop):
            left_out["dropped"].append(column)
            continue
        values = _numbers(frame[column])
        if values is None:
            levels = _levels(frame[column])
            if not levels:
                left_out["text"].append(column)
            for level in levels:
                features[f"{column}={level}"] = _indicator(frame[column], level)
                level_columns[f"{column}={level}"] = column
        elif np.isfinite(values).any() and np.nanmin(values) < np.nanmax(values):
            features[column] = values
            if not is_numeric_dtype(frame[column]):
                left_out["partly"].append(column)
        else:
            left_out["constant"].append(column)
    whys = {
        "text": "hold ids, free text or nothing and are ignored",
        "dropped": "are dropped as asked",
        "constant": "do not vary and are ignored",
        "partly": "hold numbers with some cells of text, which count as missing",
    }
    notes = [f"{len(names)} columns {whys[why]}: {listed(names)}" for why, names in left_out.items() if names]
    return features, level_columns, notes


def _numbers(column: "pd.Series[Any]") -> Floats | None:
    """Values of a column of numbers, infinite ones missing; None for a column of words."""
    if is_numeric_dtype(column):
        values = column.to_numpy(float)
    else:
        numbers = pd.to_numeric(column, errors="coerce")
        if not column.notna().any() or numbers.notna().sum() < _MOSTLY_NUMBERS * column.notna().sum():
            return None
        values = numbers.to_numpy(float)
    return np.where(np.isfinite(values), values, np.nan)


def _levels(column: "pd.Series[Any]") -> list[str]:
    """Levels of a column of words; none where they are too many, or only one."""
    words = column.dropna().astype(str)
    count = words.nunique()
    is_few = 2 <= count <= _MOST_LEVELS and len(words) >= _ROWS_PER_LEVEL * count
    return sorted(words.unique()) if is_few else []


def _indicator(column: "pd.Series[Any]", level: str) -> Floats:
    return np.where(column.isna(), np.nan, (column.astype(str) == level).astype(float))


def _quantities(catalogue: Catalogue, names: Sequence[str]) -> dict[str, str]:
    """Counter by quantity, where one counter alone stands for it."""
    quantities: dict[str, str] = {}
    for resolved in catalogue.resolve(names, None):
        if len(resolved.counters) == 1:
            quantities.setdefault(resolved.quantity, resolved.counters[0])
    return quantities
