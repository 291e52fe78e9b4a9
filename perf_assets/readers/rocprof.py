"""rocprofv3 as CSV: counters of kernels (`*_counter_collection.csv`), and traces of kernels and copies beside them.

A process writes its own files: those of one folder are the ranks of one run.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perf_assets.core.measurements import Profile
from perf_assets.readers.files import SourceFile, read_text, unreadable
from perf_assets.readers.json_text import finite_number
from perf_assets.readers.metric_names import NO_UNIT, total_of

KERNEL_TIME, KERNELS = "kernel_ns", "kernels"
_MAX_BYTES = 128 * 2**20
_MAX_COUNTERS = 10_000
_COPIES = {"HOST_TO_DEVICE": "hip_memcpy_h2d_ns", "DEVICE_TO_HOST": "hip_memcpy_d2h_ns"}
_PROCESS = re.compile(r"^(.*?)_?(?:counter_collection|kernel_trace|memory_copy_trace)\.csv$")


def read_folder(run: str, counters: Sequence[SourceFile], traces: Sequence[SourceFile]) -> Profile:
    """Read the files of one run."""
    by_process: dict[str, dict[str, float]] = {}
    dispatches: dict[str, set[str]] = {}
    for source in counters:
        totals = by_process.setdefault(_process(source), {})
        for row in _rows(source, ("Counter_Name", "Counter_Value", "Dispatch_Id")):
            name = row["Counter_Name"]
            totals[name] = totals.get(name, 0.0) + finite_number(source, row["Counter_Value"], f"counter {name[:60]!r}")
            dispatches.setdefault(_process(source), set()).add(row["Dispatch_Id"])
            if len(totals) > _MAX_COUNTERS:
                raise unreadable(source, f"has more than {_MAX_COUNTERS} counters")
    for process, numbers in dispatches.items():
        by_process[process][KERNELS] = float(len(numbers))
    for source in traces:
        for name, value in _traced(source):
            totals = by_process.setdefault(_process(source), {})
            totals[name] = totals.get(name, 0.0) + value
    names = dict.fromkeys(name for totals in by_process.values() for name in totals)
    if not names:
        raise unreadable([*counters, *traces][0], "holds no kernel: the program started none, or was stopped")
    metrics = {}
    for name in names:
        values = [totals.get(name, 0.0) for totals in by_process.values()]
        metrics[name] = total_of(values, len(by_process), "ns" if name.endswith("_ns") else NO_UNIT)
    return Profile(run=run, ranks=len(by_process), threads_per_rank=1, metrics=metrics)


def _process(source: SourceFile) -> str:
    """Common part of the names of one process's files."""
    match = _PROCESS.match(source.basename)
    return f"{source.directory}/{match[1] if match else source.basename}"


def _traced(source: SourceFile) -> Iterator[tuple[str, float]]:
    for row in _rows(source, ("Start_Timestamp", "End_Timestamp")):
        start, end = (finite_number(source, row[name], name) for name in ("Start_Timestamp", "End_Timestamp"))
        if end < start:
            raise unreadable(source, "has something that ends before it starts")
        name = KERNEL_TIME if "Kernel_Name" in row else _COPIES.get(_direction(row))
        if name is not None:
            yield name, end - start


def _direction(row: Mapping[str, str]) -> str:
    return row.get("Direction", "").removeprefix("MEMORY_COPY_").removeprefix("HIP_")


def _rows(source: SourceFile, needed: Sequence[str]) -> Iterator[dict[str, str]]:
    reader = csv.reader(io.StringIO(read_text(source, _MAX_BYTES)))
    try:
        yield from _checked_rows(source, reader, needed)
    except csv.Error as error:
        raise unreadable(source, f"is no CSV ({error}): copy it again") from None


def _checked_rows(source: SourceFile, reader: Any, needed: Sequence[str]) -> Iterator[dict[str, str]]:
    header: list[str] = next(reader, [])
    for name in needed:
        if name not in header:
            raise unreadable(source, f"has no column {name}: written by another version of rocprofv3?")
    for row in reader:
        if len(row) != len(header):
            raise unreadable(
                source, f"has {len(row)} cells instead of {len(header)} in line {reader.line_num}: cut off?"
            )
        yield dict(zip(header, row, strict=True))
