"""Job logs that are tables with a header line: Slurm (`sacct -P`, or its export as CSV), CSM of Lassen, and Flux."""

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.errors import UnreadableFileError
from perf_assets.scheduling.kernels.compiled import Floats
from perf_assets.scheduling.traces.lines import log_lines
from perf_assets.scheduling.traces.log import LogRows, trace_of
from perf_assets.scheduling.traces.trace import Trace

_MOST_BAD = 0.5
_CHUNK = 50_000


@dataclass(frozen=True)
class TableKind:
    """A kind of log: the names that its columns can have, and in what its times are counted."""

    name: str
    separator: str
    columns: Mapping[str, Sequence[str]]
    """Names of a column, in lower case, the better one first, by what it is."""
    zone: str | None = None
    """Zone of its local times, where that is known."""
    starts_in_order: bool = False
    queue: str | None = None
    """Queue of users' batch jobs; None where all queues count."""

    def fits(self, header: Sequence[str]) -> bool:
        """Whether a header has what a trace needs."""
        return all(self.column(what, header) is not None for what in ("submit", "nodes", "start"))

    def column(self, what: str, header: Sequence[str]) -> int | None:
        """Place of a column in a header."""
        return next((header.index(name) for name in self.columns.get(what, ()) if name in header), None)


SACCT = TableKind(
    "Slurm (sacct -P)",
    "|",
    {
        "number": ("jobid", "jobidraw"),
        "submit": ("submit",),
        "start": ("start",),
        "end": ("end",),
        "seconds": ("elapsedraw",),
        "clock": ("elapsed",),
        "nodes": ("allocnodes", "nnodes", "reqnodes"),
        "minutes_limit": ("timelimitraw",),
        "clock_limit": ("timelimit",),
        "state": ("state",),
        "user": ("user", "uid"),
        "application": ("jobname",),
    },
)
SLURM_CSV = TableKind(
    "Slurm (CSV export)",
    ",",
    {
        "number": ("job_id", "jobid"),
        "submit": ("submit_time",),
        "start": ("start_time",),
        "end": ("end_time",),
        "seconds": ("run_time",),
        "nodes": ("nodes_alloc", "nodes_req"),
        "seconds_limit": ("wallclock_req",),
        "state": ("state",),
        "user": ("user",),
        "application": ("name",),
    },
)
CSM = TableKind(
    "CSM allocation history",
    ",",
    {
        "number": ("primary_job_id", "allocation_id"),
        "submit": ("job_submit_time",),
        "start": ("begin_time",),
        "end": ("end_time",),
        "nodes": ("num_nodes",),
        "seconds_limit": ("time_limit",),
        "user": ("hashed_user_id", "user_id", "user_name"),
        "queue": ("queue",),
        "exit_code": ("exit_status",),
    },
    zone="America/Los_Angeles",
    starts_in_order=True,
    queue="pbatch",
)
FLUX = TableKind(
    "Flux",
    ",",
    {
        "number": ("id", "id.f58", "jobid"),
        "submit": ("t_submit",),
        "start": ("t_run",),
        "end": ("t_cleanup", "t_inactive"),
        "nodes": ("nnodes",),
        "seconds_limit": ("duration",),
        "state": ("result", "state", "status"),
        "user": ("userid", "username"),
        "application": ("name",),
    },
)
KINDS = (SACCT, SLURM_CSV, CSM, FLUX)


def kind_of(header_line: str) -> TableKind | None:
    """The kind of log that a first line begins; None where it is none of these."""
    for kind in KINDS:
        header = _header(header_line, kind)
        if header is not None and kind.fits(header):
            return kind
    return None


def read_table(path: Path, kind: TableKind, zone: str | None = None) -> Trace:
    """Trace of a log with a header line."""
    lines = log_lines(path)
    header = _header(next(lines), kind)
    assert header is not None, "the kind was chosen by this line"
    places = {what: place for what in kind.columns if (place := kind.column(what, header)) is not None}
    return trace_of(log_rows(path, kind, places, _records(path, lines, kind), len(header), zone))


def log_rows(
    path: Path, kind: TableKind, places: Mapping[str, int], records: Iterable[list[str]], width: int, zone: str | None
) -> LogRows:
    """Rows of a log from records of words; `places` are the positions of the words by their meaning."""
    parts, bad, steps = [], 0, 0
    stream = iter(records)
    while chunk := list(itertools.islice(stream, _CHUNK)):
        good = [record for record in chunk if len(record) == width]
        bad += len(chunk) - len(good)
        frame = pd.DataFrame(
            {what: [record[place].strip() for record in good] for what, place in places.items()}, dtype=object
        )
        if kind is SACCT and "number" in frame:
            is_step = frame["number"].str.contains(".", regex=False)
            steps += int(is_step.sum())
            frame = frame[~is_step]
        parts.append(frame)
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(places), dtype=str)
    if bad > _MOST_BAD * (len(frame) + steps + bad):
        raise UnreadableFileError(
            f"{path} is no log of {kind.name}: {bad} lines have not the {width} words of its header"
        )
    skipped = [(f"lines that are no row of {kind.name}", bad)]
    if kind.queue is not None and "queue" in frame:
        is_other = frame["queue"] != kind.queue
        skipped.append((f"jobs of other queues than {kind.queue}", int(is_other.sum())))
        frame = frame[~is_other].reset_index(drop=True)
    empty = pd.Series("", index=frame.index, dtype=str)
    state = frame.get("state", empty).str.upper()
    if "exit_code" in frame:
        state = state.mask(_number(frame["exit_code"]) > 0, "FAILED")
    return LogRows(
        path=path,
        number=frame.get("number", empty),
        submit=frame["submit"],
        start=frame["start"],
        end=frame.get("end", empty),
        seconds=_first(_number(frame.get("seconds", empty)), _clock_seconds(frame.get("clock", empty))),
        nodes=_number(frame["nodes"]),
        limit=_first(
            _number(frame.get("seconds_limit", empty)),
            60.0 * _number(frame.get("minutes_limit", empty)),
            _clock_seconds(frame.get("clock_limit", empty)),
        ),
        state=state,
        user=frame.get("user", empty),
        application=frame.get("application"),
        starts_in_order=kind.starts_in_order,
        skipped=tuple((reason, count) for reason, count in skipped if count),
        zone=zone or kind.zone,
    )


def _header(line: str, kind: TableKind) -> list[str] | None:
    plain = line.removeprefix("\u00ef\u00bb\u00bf").strip()
    return (
        [word.strip().strip('"').lower() for word in plain.split(kind.separator)] if kind.separator in plain else None
    )


def _records(path: Path, lines: Iterator[str], kind: TableKind) -> Iterator[list[str]]:
    if kind.separator == "|":
        reader = csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=kind.separator)
    try:
        yield from (record for record in reader if record)
    except csv.Error as error:
        raise UnreadableFileError(f"{path} is no log of {kind.name}: {error}") from None


def _number(texts: "pd.Series[str]") -> Floats:
    """Numbers, NaN where there is none; `UNLIMITED`, `Partition_Limit`, `Unknown` are none."""
    values: Floats = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    return np.where(np.isfinite(values), values, np.nan)


def _clock_seconds(texts: "pd.Series[str]") -> Floats:
    """Seconds of `[D-]HH:MM:SS` or `MM:SS`, with or without fractions."""
    parts = texts.str.extract(r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$")
    days, hours, minutes, seconds = (pd.to_numeric(parts[place], errors="coerce") for place in range(4))
    total = 86_400 * days.fillna(0) + 3600 * hours.fillna(0) + 60 * minutes + seconds
    return total.to_numpy(float)


def _first(*columns: Floats) -> Floats:
    """The first of several columns that has a value, row by row."""
    values = columns[0]
    for column in columns[1:]:
        values = np.where(np.isfinite(values), values, column)
    return values
