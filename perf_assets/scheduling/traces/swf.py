"""Reader of the Standard Workload Format: a job a line, 18 numbers, -1 for unknown, comments after a semicolon."""

from array import array
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.scheduling.kernels.compiled import Floats
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS
from perf_assets.scheduling.traces.clock import known_zone
from perf_assets.scheduling.traces.lines import log_lines
from perf_assets.scheduling.traces.trace import Trace

FIELDS = 18
_JOB, _SUBMIT, _RUN, _PROCESSORS, _ASKED_PROCESSORS, _ASKED_SECONDS, _STATUS = 0, 1, 3, 4, 7, 8, 10
_USER, _APPLICATION = 11, 13
_FAILED, _CANCELLED = 0, 5
_MOST_BAD = 0.5
"""Share of bad lines above which the file is not a trace."""


@dataclass
class _BadLines:
    """Lines that are not jobs."""

    count: int = 0
    first: int = 0
    """Its number, from 1 on."""


def read_swf(path: Path, zone: str | None = None) -> Trace:
    """The jobs of a trace, plain or compressed by gzip. What cannot be scheduled is counted and left out.

    The header names the time zone; `zone` is taken where it does not.
    """
    values = array("d")
    bad = _BadLines()
    header: dict[str, str] = {}
    for number, line in enumerate(log_lines(path), 1):
        stripped = line.strip()
        if stripped.startswith(";"):
            name, separator, value = stripped.lstrip("; \t").partition(":")
            if separator:
                header.setdefault(name.strip(), value.strip())
        elif stripped:
            row = _numbers(stripped)
            if row is None:
                bad.count, bad.first = bad.count + 1, bad.first or number
            else:
                values.extend(row)
    count = len(values) // FIELDS
    if not count or bad.count > _MOST_BAD * (count + bad.count):
        raise UnreadableFileError(_no_trace(path, count, bad))
    return _trace(path, np.array(values).reshape(count, FIELDS), bad, header, zone)


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


def _no_trace(path: Path, good: int, bad: _BadLines) -> str:
    if not good and not bad.count:
        return f"{path} holds no job: a trace in Standard Workload Format has a line of {FIELDS} numbers for each"
    return (
        f"{path} is no trace in Standard Workload Format: {bad.count} of {good + bad.count} lines are not {FIELDS} "
        f"numbers, the first of them line {bad.first}"
    )


def _trace(path: Path, rows: Floats, bad: _BadLines, header: dict[str, str], zone: str | None) -> Trace:
    skipped: Counter[str] = Counter()
    if bad.count:
        skipped[f"lines that are not {FIELDS} numbers (first: line {bad.first})"] = bad.count
    nodes = np.where(rows[:, _PROCESSORS] > 0, rows[:, _PROCESSORS], rows[:, _ASKED_PROCESSORS])
    keep = np.ones(len(rows), bool)
    for reason, wrong in (
        ("jobs with a negative submission time", rows[:, _SUBMIT] < 0),
        ("jobs that were cancelled before they ran", (rows[:, _STATUS] == _CANCELLED) & (rows[:, _RUN] <= 0)),
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
        name=path.name,
        number=rows[:, _JOB].astype(np.int64),
        submit=rows[:, _SUBMIT] - rows[0, _SUBMIT],
        run=np.maximum(rows[:, _RUN], LEAST_SECONDS),
        nodes=nodes.astype(np.int64),
        request=np.where(asked > 0, asked, np.nan),
        user=rows[:, _USER].astype(np.int64),
        application=rows[:, _APPLICATION].astype(np.int64),
        most_nodes=_most_nodes(header),
        skipped={reason: count for reason, count in skipped.items() if count},
        notes=_notes(rows, order),
        epoch=_epoch(header, float(rows[0, _SUBMIT])),
        zone=_zone(header) or zone,
    )


def _notes(rows: Floats, order: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> tuple[str, ...]:
    counts = [
        (rows[:, _RUN] < LEAST_SECONDS, "jobs of less than a second are taken as one second long"),
        (rows[:, _STATUS] == _FAILED, "jobs failed: kept, as long as they ran"),
        (rows[:, _STATUS] == _CANCELLED, "jobs were cancelled while they ran: kept, as long as they ran"),
    ]
    notes = [f"{int(chosen.sum())} {what}" for chosen, what in counts if chosen.any()]
    if (np.diff(order) < 0).any():
        notes.append("jobs were not in the order of submission and have been sorted")
    return tuple(notes)


def _epoch(header: dict[str, str], first: float) -> float | None:
    """Unix time of the first submission, where the header says when the log begins."""
    words = header.get("UnixStartTime", "").split()
    return float(words[0]) + first if words and words[0].isdigit() else None


def _zone(header: dict[str, str]) -> str | None:
    """Time zone that the header names, where there is such."""
    name = header.get("TimeZoneString", "").strip()
    try:
        return known_zone(name) if name else None
    except BadInputError:
        return None


def _most_nodes(header: dict[str, str]) -> int | None:
    """Largest size of a job: the number of processors in the header, as sizes are counted in processors."""
    for name in ("MaxProcs", "MaxNodes"):
        words = header.get(name, "").split()
        if words and words[0].isdigit() and int(words[0]) > 0:
            return int(words[0])
    return None


def _listed(skipped: "Counter[str]") -> str:
    return ", ".join(f"{count} {reason}" for reason, count in skipped.items() if count)
