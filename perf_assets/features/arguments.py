"""Arguments of programs as numbers and words: what a workload without counters is described by.

`-n 64 64 32 --method bj --procs4,4,2 in.1` has the numbers `n.0`, `n.1`, `n.2`, `procs.0` to `procs.2` and `#0~0`, and
the words `method` and `#0` (the first argument without a flag). A number in a word is kept beside it, and the word is
without it: `LOH.1-h125.in` is `LOH.#-h#.in` with 1 and 125, so that inputs of other sizes are alike.
Flags that were run together (`-p1-dim2`, `--niter10--groups16`) are taken apart where that can be seen.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

GIVEN = "given"
"""Level of a flag without a value."""
_FLAG = re.compile(r"--?(?=[A-Za-z_])")
_TOGETHER = {"--": re.compile(r"(?=--[A-Za-z_])"), "-": re.compile(r"(?=(?<!-)-[A-Za-z_])")}
_DIGITS = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBER = re.compile(rf"([-+]?{_DIGITS})([kKMG]?)(?:i?B)?")
_IN_WORD = re.compile(r"\d+(?:\.\d+)?")
_LIST = re.compile(r"[,x:]")
_NAMED = re.compile(r"([A-Za-z_][\w.-]*)[=:](.+)", re.DOTALL)
_WITH_VALUE = re.compile(rf"([A-Za-z_][A-Za-z_.-]*?)([-+]?{_DIGITS}(?:[,x:]{_DIGITS})*)")
_UNITS = {"": 1.0, "k": 2.0**10, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30}
_MOST_CHARACTERS = 10_000
"""Characters of a command line that are looked at: as many as landed arguments have."""


@dataclass
class Arguments:
    """Content of a command line."""

    numbers: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    def add(self, name: str, value: str) -> None:
        """Keep a value: a number, a list of numbers, or a word with the numbers in it."""
        parts = [_number(part) for part in _LIST.split(value)]
        numbers = [part for part in parts if part is not None]
        if len(numbers) == len(parts):
            for position, number in enumerate(numbers):
                self.numbers[self._free(name if len(parts) == 1 else f"{name}.{position}")] = number
            return
        name = self._free(name)
        word = value.rstrip("/").rpartition("/")[2]
        self.words[name] = _IN_WORD.sub("#", word)
        for position, digits in enumerate(_IN_WORD.findall(word)):
            size = _number(digits)
            if size is not None:
                self.numbers[f"{name}~{position}"] = size

    def _free(self, name: str) -> str:
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}({self._seen[name]})"


def parse_arguments(args: str) -> Arguments:
    """Numbers by flag or position, words as levels."""
    arguments, flag, values, position = Arguments(), "", list[str](), 0
    for word in args[:_MOST_CHARACTERS].split():
        pieces = _pieces(word)
        if pieces is None:
            named = _NAMED.fullmatch(word)
            if named and _number(word) is None:
                _close(arguments, flag, values)
                flag, values = "", []
                arguments.add(named[1], named[2])
            elif flag and (not values or (_is_number(word) and all(map(_is_number, values)))):
                values.append(word)
            else:
                _close(arguments, flag, values)
                flag, values = "", []
                arguments.add(f"#{position}", word)
                position += 1
            continue
        for piece in pieces:
            _close(arguments, flag, values)
            flag, values = piece
    _close(arguments, flag, values)
    return arguments


def _close(arguments: Arguments, flag: str, values: Sequence[str]) -> None:
    if not flag:
        return
    if not values:
        arguments.words[arguments._free(flag)] = GIVEN
    elif len(values) == 1:
        arguments.add(flag, values[0])
    else:
        for position, value in enumerate(values):
            arguments.add(f"{flag}.{position}", value)


def _pieces(word: str) -> list[tuple[str, list[str]]] | None:
    """Flags in a word, each with the values that stand in it; None for a word that is not a flag."""
    start = _FLAG.match(word)
    if start is None:
        return None
    named = _NAMED.fullmatch(word[start.end() :])
    if named:
        return [(named[1], [named[2]])]
    return [_flag(part[len(start[0]) :]) for part in _TOGETHER[start[0]].split(word) if part]


def _flag(text: str) -> tuple[str, list[str]]:
    """Name of a flag, and the numbers that follow it without a blank."""
    named, numbered = _NAMED.fullmatch(text), _WITH_VALUE.fullmatch(text)
    if named:
        return named[1], [named[2]]
    return (numbered[1], [numbered[2]]) if numbered else (text, [])


def _is_number(word: str) -> bool:
    return all(_number(part) is not None for part in _LIST.split(word))


def _number(word: str) -> float | None:
    match = _NUMBER.fullmatch(word)
    value = float(match[1]) * _UNITS[match[2]] if match else math.inf
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class ArgumentColumns:
    """Columns that the arguments of some workloads make: numbers of an application, and whether a word is there."""

    keys: tuple[tuple[str, str, str | None], ...]
    """Application, name and word of each column; without a word it is a number."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns: `APP NAME` for a number, `APP NAME=WORD` for a word."""
        return tuple(_column(*key) for key in self.keys)

    @classmethod
    def of(cls, apps: Sequence[str], args: Sequence[str]) -> "ArgumentColumns":
        """Columns in which these workloads differ."""
        counts, workloads = Counter[tuple[str, str, str | None]](), Counter(apps)
        values: dict[tuple[str, str, str | None], set[float]] = {}
        for cells in map(_cells, apps, args):
            counts.update(cells.keys())
            for key, value in cells.items():
                values.setdefault(key, set()).add(value)
        differ = [key for key, seen in values.items() if len(seen) > 1 or counts[key] < workloads[key[0]]]
        return cls(tuple(sorted(differ, key=lambda key: (key[0], key[1], key[2] or ""))))

    def table(self, apps: Sequence[str], args: Sequence[str]) -> NDArray[np.float64]:
        """One row per workload: signed log of numbers, 1 for a word; NaN for numbers that it does not have."""
        return described_by(self.names, apps, args)


def described_by(names: Sequence[str], apps: Sequence[str], args: Sequence[str]) -> NDArray[np.float64]:
    """One row per workload: its arguments in columns that `ArgumentColumns` has named, as its table has it."""
    place = {name: position for position, name in enumerate(names)}
    absent = np.array([0.0 if "=" in name else np.nan for name in names])
    table = np.repeat(absent[None], len(apps), axis=0)
    for row, cells in enumerate(map(_cells, apps, args)):
        for key, value in cells.items():
            position = place.get(_column(*key))
            if position is not None:
                table[row, position] = value
    return table


def _column(app: str, name: str, word: str | None) -> str:
    return f"{app} {name}" if word is None else f"{app} {name}={word}"


def _cells(app: str, args: str) -> dict[tuple[str, str, str | None], float]:
    arguments = parse_arguments(args)
    cells: dict[tuple[str, str, str | None], float] = {(app, name, word): 1.0 for name, word in arguments.words.items()}
    for name, number in arguments.numbers.items():
        cells[app, name, None] = math.copysign(math.log1p(abs(number)), number)
    return cells
