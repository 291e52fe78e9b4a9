"""Nsight Compute as CSV: `ncu --csv`, one line per kernel and metric, or with `--page raw` one line per kernel.

Metrics of all kernels are added up, so only those that can be are kept: names that end in `.sum`, and sizes of grids.
What the program or ncu itself printed before is passed over.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence

from perf_assets.core.measurements import Profile
from perf_assets.readers.files import SourceFile, read_text, unreadable
from perf_assets.readers.metric_names import NO_UNIT, total_of

_MAX_BYTES = 128 * 2**20
_MAX_METRICS = 10_000
HEADER = re.compile(r'^"ID","Process ID"[^\n]*"Kernel Name"', re.MULTILINE)
_LONG_FORM_COLUMNS = ("Process ID", "Metric Name", "Metric Unit", "Metric Value")
_ADDED_FACTS = {"launch__grid_size": "launch__grid_size.sum", "launch__thread_count": "launch__thread_count.sum"}
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
_BYTES = re.compile(r"([KMGT]?)bytes?", re.IGNORECASE)

_Cell = tuple[str, str, str, str]
"""Process, metric, unit, value."""


def read_report(run: str, source: SourceFile) -> Profile:
    """Read the kernels of a run."""
    text = read_text(source, _MAX_BYTES)
    start = HEADER.search(text)
    if start is None:
        raise unreadable(source, "has no header of ncu --csv")
    try:
        header, *rows = csv.reader(io.StringIO(text[start.start() :]))
    except csv.Error as error:
        raise unreadable(source, f"is no CSV ({error}): copy it again") from None
    table = [row for row in rows if row and not row[0].startswith("==")]
    needed = _LONG_FORM_COLUMNS if "Metric Name" in header else ("Process ID",)
    missing = [name for name in needed if name not in header]
    if missing:
        raise unreadable(source, f"has no column {missing[0]!r}: copy it again")
    if any(len(row) < len(header) for row in table):
        raise unreadable(source, "is cut off in its last line: copy it again")
    cells = _long(header, table) if "Metric Name" in header else _wide(header, table)
    totals: dict[str, dict[str, float]] = {}
    units: dict[str, str] = {}
    for process, name, unit, text_value in cells:
        value = _value(source, name, text_value)
        if value is None:
            continue
        factor, units[name] = _scaled(unit)
        by_process = totals.setdefault(name, {})
        by_process[process] = by_process.get(process, 0.0) + value * factor
    if not totals or len(totals) > _MAX_METRICS:
        raise unreadable(
            source, "has no metric that can be added up over kernels (names end in .sum): run ncu --csv --page raw"
        )
    ranks = max(len(by_process) for by_process in totals.values())
    metrics = {name: total_of([*by_process.values()], ranks, units[name]) for name, by_process in totals.items()}
    return Profile(run=run, ranks=ranks, threads_per_rank=1, metrics=metrics, labels=_labels(header, table))


def _is_added(name: str) -> bool:
    return name.endswith(".sum") or name in _ADDED_FACTS


def _long(header: Sequence[str], table: Sequence[Sequence[str]]) -> Iterator[_Cell]:
    process, name, unit, value = (header.index(column) for column in _LONG_FORM_COLUMNS)
    for row in table:
        if _is_added(row[name]):
            yield row[process], _ADDED_FACTS.get(row[name], row[name]), row[unit], row[value]


def _wide(header: Sequence[str], table: Sequence[Sequence[str]]) -> Iterator[_Cell]:
    """The line below the header has the units."""
    wanted = [position for position, name in enumerate(header) if _is_added(name)]
    process = header.index("Process ID")
    units = table[0] if table and not table[0][0].strip() else [""] * len(header)
    for row in table:
        if row[0].strip():
            for position in wanted:
                name = header[position]
                yield row[process], _ADDED_FACTS.get(name, name), units[position], row[position]


def _value(source: SourceFile, name: str, text: str) -> float | None:
    bare = text.strip()
    if _THOUSANDS.fullmatch(bare):
        bare = bare.replace(",", "")
    if _NUMBER.fullmatch(bare) and math.isfinite(float(bare)):
        return float(bare)
    if bare in ("", "n/a", "nan"):
        return None
    raise unreadable(source, f"has {bare[:40]!r} as {name[:60]!r}: write it with LC_ALL=C ncu --csv --print-units base")


def _scaled(unit: str) -> tuple[float, str]:
    """Factor and base unit."""
    if unit in _TIMES:
        return _TIMES[unit], "ns"
    if match := _BYTES.fullmatch(unit):
        return _PREFIXES[match[1].upper()], "bytes"
    return 1.0, NO_UNIT


def _labels(header: Sequence[str], table: Sequence[Sequence[str]]) -> dict[str, str]:
    """The program and how many kernels there are; not the host."""
    programs = {row[header.index("Process Name")] for row in table} - {""} if "Process Name" in header else set()
    labels = {"kernels": str(len({row[0] for row in table if row[0].strip()}))}
    if len(programs) == 1:
        labels["program"] = programs.pop().rpartition("/")[2]
    return labels
