"""The report files of RAJAPerf, one function each: timing, kernel details, kernel run data, checksum.

Cells are padded with blanks, so every line is split at its commas and stripped. Both generations are read:
up to v2025.03 ("2024": kernels.csv) and from v2025.12 ("2026": kernel-details.csv, kernel-run-data.csv).
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from perf_assets.readers.files import SourceFile, read_text, unreadable

Key = tuple[str, str, str]
"""Kernel, variant, tuning."""

_MAX_BYTES = 16 * 2**20
_MAX_INTEGER = 2**63 - 1
_MPI = re.compile(r"Kernels run (?:without MPI|on (\d{1,9}) MPI ranks)")
_CHECKSUM_TOLERANCE = 1e-3
"""Relative difference above which a 2024 checksum, which comes without a verdict, counts as failed. Sums in
another order differ by 1e-11 or less; single precision by 1e-5."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One timing report: seconds of all repetitions of one pass."""

    statistic: Literal["Mean", "Min", "Max"]
    generation: Literal["2024", "2026"]
    kernels: frozenset[str]
    seconds: dict[Key, float]
    """Seconds of what was run."""


@dataclass(frozen=True, slots=True)
class KernelDetails:
    """Work of one kernel; figures are per rank."""

    problem_size: int
    """Actual size, not the requested one."""
    reps: int
    bytes_per_rep: int
    flops_per_rep: int


@dataclass(frozen=True, slots=True)
class RunDatum:
    """One line of kernel-run-data.csv."""

    problem_size: int
    is_checksum_ok: bool
    seconds_per_rep: float | None
    """None where nothing was timed."""


@dataclass(frozen=True, slots=True)
class Details:
    """kernels.csv or kernel-details.csv."""

    ranks: int
    kernels: dict[str, KernelDetails]


@dataclass(frozen=True, slots=True)
class RunData:
    """kernel-run-data.csv."""

    ranks: int
    rows: dict[Key, RunDatum]


def _lines(source: SourceFile) -> list[list[str]]:
    text = read_text(source, _MAX_BYTES)
    if not text.endswith("\n"):
        raise unreadable(source, "does not end with a line break, it is cut off: copy it again")
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]


def _is_not_run(cell: str) -> bool:
    return cell.lower() == "not run"


def _seconds(source: SourceFile, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise unreadable(source, f"has {cell[:40]!r} where a time should be") from None
    if value < 0:
        raise unreadable(source, f"has the negative time {cell}")
    return value


def _count(source: SourceFile, cell: str) -> int:
    if not cell.isascii() or not cell.isdigit() or len(cell) > 19 or int(cell) > _MAX_INTEGER:
        raise unreadable(source, f"has {cell[:40]!r} where a whole number should be")
    return int(cell)


def read_timing(source: SourceFile) -> Timing:
    """Read `*-timing-{Average,Minimum,Maximum}.csv`; a column is a variant with a tuning, in two header lines."""
    lines = _lines(source)
    if len(lines) < 3 or len(lines[1]) != len(lines[2]):
        raise unreadable(source, "is cut off in its header: the run did not finish, or copy it again")
    word = lines[0][0].partition(" ")[0]
    statistic: Literal["Mean", "Min", "Max"] = "Min" if word == "Min" else "Max" if word == "Max" else "Mean"
    generation: Literal["2024", "2026"] = "2026" if lines[1][0] == "Variant" else "2024"
    columns = list(zip(lines[1][1:], lines[2][1:], strict=True))
    if len(set(columns)) != len(columns):
        raise unreadable(source, "names a variant and tuning twice")
    seconds: dict[Key, float] = {}
    for kernel, *cells in lines[3:]:
        if len(cells) != len(columns):
            raise unreadable(source, f"has {len(cells)} times for {kernel[:60]!r} instead of {len(columns)}: cut off?")
        for (variant, tuning), cell in zip(columns, cells, strict=True):
            if not _is_not_run(cell):
                seconds[(kernel, variant, tuning)] = _seconds(source, cell)
    if not all(map(math.isfinite, seconds.values())):
        raise unreadable(source, "has a time that is not finite")
    return Timing(statistic, generation, frozenset(line[0] for line in lines[3:]), seconds)


def _table(source: SourceFile, needed: tuple[tuple[str, ...], ...]) -> tuple[int, list[list[str]]]:
    """Ranks and rows of a report with a header line, reduced to the `needed` columns.

    Each column is given by its possible names.
    """
    lines = _lines(source)
    title = _MPI.match(lines[0][0]) if lines else None
    if title is None or len(lines) < 2:
        raise unreadable(source, "is cut off in its header: the run did not finish, or copy it again")
    header = lines[1]
    positions = []
    for names in needed:
        position = next((header.index(name) for name in names if name in header), None)
        if position is None:
            raise unreadable(source, f"has no column {names[0]!r}")
        positions.append(position)
    for line in lines[2:]:
        if len(line) != len(header):
            raise unreadable(source, f"has {len(line)} cells for {line[0][:60]!r} instead of {len(header)}: cut off?")
    return int(title[1] or 0), [[line[position] for position in positions] for line in lines[2:]]


_DETAIL_COLUMNS = (
    ("Kernel", "Kernels"),
    ("Problem size",),
    ("Reps",),
    ("BytesMoved/rep", "Bytes/rep"),
    ("FLOPS/rep",),
)


def read_details(source: SourceFile) -> Details:
    """Read `*-kernels.csv` or `*-kernel-details.csv`."""
    ranks, rows = _table(source, _DETAIL_COLUMNS)
    kernels: dict[str, KernelDetails] = {}
    for kernel, *cells in rows:
        if kernel in kernels:
            raise unreadable(source, f"lists {kernel[:60]!r} twice")
        kernels[kernel] = KernelDetails(*(_count(source, cell) for cell in cells))
    return Details(ranks, kernels)


_RUN_COLUMNS = (("Kernel",), ("Variant",), ("Tuning",), ("Problem size",), ("Checksum",), ("Mean time per rep (sec.)",))


def read_run_data(source: SourceFile) -> RunData:
    """Read the report `*-kernel-run-data.csv`."""
    ranks, rows = _table(source, _RUN_COLUMNS)
    by_key: dict[Key, RunDatum] = {}
    for kernel, variant, tuning, size, checksum, time in rows:
        if (kernel, variant, tuning) in by_key:
            raise unreadable(source, f"lists {kernel[:60]!r} {variant[:40]} {tuning[:40]} twice")
        if _is_not_run(time) or _is_not_run(checksum):
            continue
        seconds = _seconds(source, time)
        by_key[(kernel, variant, tuning)] = RunDatum(
            _count(source, size), checksum == "PASSED", seconds if math.isfinite(seconds) and seconds > 0 else None
        )
    return RunData(ranks, by_key)


def read_checksums(source: SourceFile) -> dict[Key, bool]:
    """Read `*-checksum.txt`: whether the result of each variant is right. What was not run is absent."""
    verdicts: dict[Key, bool] = {}
    kernel = previous = ""
    for line in read_text(source, _MAX_BYTES).splitlines():
        words = line.split()
        if len(words) == 1 and not words[0].strip("."):
            kernel = previous
        elif len(words) >= 3 and kernel and "-" in words[0] and words[0].strip("-"):
            verdict = _verdict(words[1:])
            if verdict is not None:
                variant, _, tuning = words[0].partition("-")
                verdicts[(kernel, variant, tuning)] = verdict
        elif words:
            previous = words[0]
    return verdicts


def _verdict(words: list[str]) -> bool | None:
    """Verdict of one checksum line; None for `Not Run`."""
    if words[0] in ("PASSED", "FAILED"):
        return words[0] == "PASSED"
    try:
        checksum, difference = float(words[0]), float(words[1])
    except ValueError:
        return None
    return abs(difference) <= _CHECKSUM_TOLERANCE * abs(checksum)
