"""Reader of the Standard Workload Format: a job a line, 18 numbers, -1 for unknown, comments after a semicolon."""

import gzip
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from perf_assets.core.errors import UnreadableFileError
from perf_assets.scheduling.compiled import Floats, Mask
from perf_assets.scheduling.jobs import LEAST_SECONDS
from perf_assets.scheduling.trace import Trace

FIELDS = 18
_JOB, _SUBMIT, _RUN, _PROCESSORS, _ASKED_PROCESSORS, _ASKED_SECONDS, _USER, _APPLICATION = 0, 1, 3, 4, 7, 8, 11, 13
_MOST_BYTES = 2_000_000_000
_MOST_BAD = 0.5
"""Share of bad lines above which the file is no trace."""


def read_swf(path: Path) -> Trace:
    """The jobs of a trace, plain or compressed by gzip. What cannot be scheduled is counted and left out."""
    text = _text(path)
    rows: list[list[float]] = []
    bad: list[int] = []
    header: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith(";"):
            name, found, value = stripped.lstrip("; \t").partition(":")
            if found:
                header.setdefault(name.strip(), value.strip())
        elif stripped:
            row = _numbers(stripped)
            if row is None:
                bad.append(number)
            else:
                rows.append(row)
    if not rows or len(bad) > _MOST_BAD * (len(rows) + len(bad)):
        raise UnreadableFileError(_no_trace(path, len(rows), bad))
    return _trace(path, np.array(rows), bad, header)


def _text(path: Path) -> str:
    """Decoded as Latin-1: comments hold names in any encoding."""
    try:
        with path.open("rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_compressed else path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFileError(f"{path} is a damaged gzip file ({error})") from None
    if len(content) > _MOST_BYTES:
        raise UnreadableFileError(f"{path} is longer than {_MOST_BYTES:,} bytes: cut it into parts")
    return content.decode("latin-1")


def _numbers(line: str) -> list[float] | None:
    """The 18 numbers of a line; None where it has not just these."""
    words = line.split()
    if len(words) != FIELDS:
        return None
    try:
        row = [float(word) for word in words]
    except ValueError:
        return None
    return row if np.isfinite(row).all() else None


def _no_trace(path: Path, good: int, bad: list[int]) -> str:
    if not good and not bad:
        return f"{path} holds no job: a trace in Standard Workload Format has a line of {FIELDS} numbers for each"
    return (
        f"{path} is no trace in Standard Workload Format: {len(bad)} of {good + len(bad)} lines are not {FIELDS} "
        f"numbers, the first of them line {bad[0]}"
    )


def _trace(path: Path, rows: Floats, bad: list[int], header: dict[str, str]) -> Trace:
    skipped: Counter[str] = Counter()
    if bad:
        skipped[f"lines that are not {FIELDS} numbers (first: line {bad[0]})"] = len(bad)
    nodes = np.where(rows[:, _PROCESSORS] > 0, rows[:, _PROCESSORS], rows[:, _ASKED_PROCESSORS])
    keep = np.ones(len(rows), bool)
    for reason, wrong in (
        ("jobs with a negative submission time", rows[:, _SUBMIT] < 0),
        ("jobs with a negative or unknown run time", rows[:, _RUN] < 0),
        ("jobs without nodes", nodes < 1),
    ):
        skipped[reason] = int((wrong & keep).sum())
        keep &= ~wrong
    rows, nodes = rows[keep], nodes[keep]
    if not len(rows):
        raise UnreadableFileError(f"{path} holds no job that can be scheduled: {_listed(skipped)}")
    order = np.argsort(rows[:, _SUBMIT], kind="stable")
    rows, nodes = rows[order], nodes[order]
    asked = rows[:, _ASKED_SECONDS]
    return Trace(
        path.name,
        rows[:, _JOB].astype(np.int64),
        rows[:, _SUBMIT] - rows[0, _SUBMIT],
        np.maximum(rows[:, _RUN], LEAST_SECONDS),
        nodes.astype(np.int64),
        np.where(asked > 0, asked, np.nan),
        rows[:, _USER].astype(np.int64),
        rows[:, _APPLICATION].astype(np.int64),
        _most_nodes(header),
        {reason: count for reason, count in skipped.items() if count},
        _notes(rows[:, _RUN] < LEAST_SECONDS, order),
    )


def _notes(is_short: Mask, order: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> tuple[str, ...]:
    notes = []
    if is_short.any():
        notes.append(f"{int(is_short.sum())} jobs of less than a second are taken as one second long")
    if (np.diff(order) < 0).any():
        notes.append("jobs were not in the order of submission and have been sorted")
    return tuple(notes)


def _most_nodes(header: dict[str, str]) -> int | None:
    """Sizes of jobs are counted in processors: of these there are as many as the header says."""
    for name in ("MaxProcs", "MaxNodes"):
        words = header.get(name, "").split()
        if words and words[0].isdigit() and int(words[0]) > 0:
            return int(words[0])
    return None


def _listed(skipped: "Counter[str]") -> str:
    return ", ".join(f"{count} {reason}" for reason, count in skipped.items() if count)
