"""Ready samples: a table whose rows are runs and whose columns are whatever somebody measured."""

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import overload

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.core.text import as_word
from perf_assets.readers.files import SourceFile, unreadable
from perf_assets.readers.metric_names import NO_UNIT, FreeNames, unit_in

IDENTITY_TEXTS = ("app", "args")
IDENTITY_COUNTS = ("ranks", "threads", "nodes", "gpus")
WALL_SECONDS = "wall_seconds"
IDENTITY = frozenset((*IDENTITY_TEXTS, *IDENTITY_COUNTS, WALL_SECONDS))
"""Columns that identify the run of a row; they are not metrics."""
MAX_COLUMNS = 10_000
"""Columns of a table, and counters of a bundle: each becomes a column of the machine's table."""

_MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))
_LEVEL = re.compile(r"[A-Za-z]+ \((\d{1,3})\)")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf(?:inity)?", re.IGNORECASE)
_UNIT_ENDINGS = {"_seconds": "seconds", "_bytes": "bytes"}


def number_in(cell: str) -> float | None:
    """Number that a cell holds; NaN where its value is missing, None for text. `Low (3)` is the level 3."""
    if cell.lower() in _MISSING:
        return math.nan
    if _NUMBER.fullmatch(cell):
        return float(cell)
    level = _LEVEL.fullmatch(cell)
    return float(level[1]) if level else None


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names without blanks around, repeated ones with a suffix `.1`, empty ones named by position."""
    free = FreeNames()
    return [free.give(given.strip() or f"unnamed_{position}") for position, given in enumerate(names)]


def unit_of_column(name: str) -> str:
    """Unit from the end of a column's name: `_seconds`, `_bytes` or in parentheses."""
    for ending, unit in _UNIT_ENDINGS.items():
        if name.endswith(ending):
            return unit
    named_unit = unit_in(name)
    return named_unit if name.rstrip().endswith(")") else NO_UNIT


@dataclass(slots=True)
class Columns:
    """The cells of a table by column."""

    numbers: dict[str, "array[float]"] = field(default_factory=dict)
    """NaN where a value is missing."""
    texts: dict[str, list[str | None]] = field(default_factory=dict)
    row_count: int = 0


class SampleTable(Sequence[Profile]):
    """The runs of a table. Each is made when it is asked for, so that a large table stays small in memory."""

    def __init__(self, source: SourceFile, columns: Columns) -> None:
        self._name = source.name
        self._row_count = columns.row_count
        self._identity = {name: cells for name, cells in columns.numbers.items() if name in IDENTITY}
        self._metrics = [
            (name, unit_of_column(name), cells) for name, cells in columns.numbers.items() if name not in IDENTITY
        ]
        self._texts = columns.texts
        _check(source, columns)

    def __len__(self) -> int:
        return self._row_count

    @overload
    def __getitem__(self, index: int) -> Profile: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Profile]: ...
    def __getitem__(self, index: int | slice) -> Profile | Sequence[Profile]:
        if isinstance(index, slice):
            return [self._profile(row) for row in range(self._row_count)[index]]
        return self._profile(range(self._row_count)[index])

    def __iter__(self) -> Iterator[Profile]:
        return (self._profile(row) for row in range(self._row_count))

    def texts(self, name: str) -> set[str]:
        """Different texts in a column; none where it is not there or holds numbers."""
        return {text for text in self._texts.get(name, ()) if text is not None}

    def _profile(self, row: int) -> Profile:
        metrics = {}
        for name, unit, cells in self._metrics:
            value = cells[row]
            if value == value:  # not NaN: the cell is there
                metrics[name] = MetricTotal(value, value, value, value, unit)
        labels = {name: text for name, cells in self._texts.items() if (text := cells[row]) is not None}
        identity = {name: cells[row] for name, cells in self._identity.items() if cells[row] == cells[row]}
        labels |= {name: as_word(value) for name, value in identity.items()}
        return Profile(
            run=f"{self._name}#{row}",
            ranks=int(identity.get("ranks", 1)),
            threads_per_rank=int(identity.get("threads", 1)),
            metrics=metrics,
            wall_seconds=identity.get(WALL_SECONDS),
            hosts=int(identity["nodes"]) if "nodes" in identity else None,
            labels=labels,
        )


class SampleTables(Sequence[Profile]):
    """The runs of several tables, one table after the other."""

    def __init__(self, tables: Sequence[SampleTable]) -> None:
        self._tables = tables

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    @overload
    def __getitem__(self, index: int) -> Profile: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Profile]: ...
    def __getitem__(self, index: int | slice) -> Profile | Sequence[Profile]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        row = range(len(self))[index]
        for table in self._tables:
            if row < len(table):
                return table[row]
            row -= len(table)
        raise IndexError(index)

    def __iter__(self) -> Iterator[Profile]:
        return chain.from_iterable(self._tables)

    def texts(self, name: str) -> set[str]:
        """Different texts in a column of all tables."""
        return set().union(*(table.texts(name) for table in self._tables))


def texts_of(profiles: Sequence[Profile], name: str) -> set[str]:
    """Different texts that runs have under a label, found without making the runs of a table."""
    if isinstance(profiles, SampleTables):
        return profiles.texts(name)
    return {profile.labels[name] for profile in profiles if name in profile.labels}


def _check(source: SourceFile, columns: Columns) -> None:
    """Refuse values that cannot be."""
    if not any(value == value for cells in columns.numbers.values() for value in cells):
        raise unreadable(source, "holds no number at all")
    for name, cells in columns.numbers.items():
        if any(map(math.isinf, cells)):
            raise unreadable(source, f"column {name[:60]!r} holds an infinite value: leave the cell empty")
    for name in (*IDENTITY_COUNTS, WALL_SECONDS):
        if name in columns.texts:
            raise unreadable(source, f"column {name!r} must hold numbers")
        least = 0 if name == "gpus" else 1
        for row, value in enumerate(columns.numbers.get(name, ())):
            if name == WALL_SECONDS:
                is_wrong = value <= 0
            else:
                is_wrong = value == value and (value < least or value >= 2**31 or not value.is_integer())
            if is_wrong:
                raise unreadable(source, f"column {name!r} holds {value!r} in row {row}")
