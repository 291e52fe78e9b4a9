"""Output of likwid-perfctr and likwid-mpirun: the tables that people see, and `-o file.csv`.

Counts of all hardware threads are added up, those of several memory channels too. Derived metrics are left out, but for
the run time: rates hold it. Where several groups were measured in turn, each saw a part of the run: its counts are
scaled to the whole, as perf does, and say for which share of the run they were live.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, read_text, unreadable
from perf_assets.readers.json_text import finite_number
from perf_assets.readers.metric_names import NO_UNIT

_MAX_BYTES = 16 * 2**20
_TITLE = re.compile(r"(?:Region:?\s+(?P<region>.+?),\s*)?Group:?\s+(?P<number>\d+)(?::.*)?")
_CSV_TITLE = re.compile(r"TABLE,(?:Region (?P<region>[^,]*),)?Group (?P<number>\d+) (?:Raw|Metric)")
_PROCESSOR = re.compile(r"CPU name:[\s,]")
_TYPE = re.compile(r"^CPU type:[\s,]+([^,\n]{1,200})", re.MULTILINE)
_RANK = re.compile(r"(?P<host>[^:]+):(?P<rank>\d+)(?::\d+)?")
_RUN_TIMES = ("Runtime (RDTSC) [s]", "RDTSC Runtime [s]")
_ABSENT = frozenset(("", "-", "nan", "-nan", "nil", "NaN"))
_ENERGY = re.compile(r"PWR_\w*ENERGY")
_NOT_COUNTED = frozenset(("TSC", *_RUN_TIMES))
"""Events that are times: LIKWID lists the run time among the events of a group without metrics."""


@dataclass(slots=True)
class _Table:
    """One table: counts of events (`Event`), or seconds among derived metrics (`Metric`, `Region Info`)."""

    group: str
    region: str
    kind: str
    columns: list[str]
    """Hardware threads, or ranks with theirs."""
    rows: list[tuple[str, list[str]]] = field(default_factory=list)


def read_output(run: str, source: SourceFile) -> Iterator[Profile]:
    """Read a file of one run, or of several whose outputs follow one another."""
    runs = [(part, tables) for part in _runs(read_text(source, _MAX_BYTES)) if (tables := _tables(source, part))]
    if not any(table.kind == "Event" for _, tables in runs for table in tables):
        raise unreadable(source, "holds no table of events: LIKWID was stopped before it printed them; run it again")
    for number, (part, tables) in enumerate(runs):
        yield _profile(run if len(runs) == 1 else f"{source.name}#{number}", source, part, tables)


def _runs(text: str) -> list[str]:
    """Text of each run: it begins where LIKWID prints the processor."""
    parts: list[list[str]] = [[]]
    is_begun = False
    for line in text.splitlines():
        if _PROCESSOR.match(line):
            if is_begun:
                parts.append([])
            is_begun = True
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def _tables(source: SourceFile, text: str) -> list[_Table]:
    """Tables of a run without those that only sum up others."""
    tables: list[_Table] = []
    group, region = "1", ""
    is_open = False
    for line in text.splitlines():
        title = _CSV_TITLE.match(line) or _TITLE.fullmatch(line.strip())
        if title:
            group, region = title["number"], title["region"] or ""
        if title or line.startswith(("TABLE,", "STRUCT,")):
            is_open = False
            continue
        cells = _cells(line)
        if cells and cells[0] in ("Event", "Metric", "Region Info"):
            columns = [cell for cell in cells[2 if cells[0] == "Event" else 1 :] if cell]
            is_open = bool(columns) and columns[0] != "Sum"
            if is_open:
                tables.append(_Table(group, region, cells[0], columns))
        elif cells and is_open:
            _take_row(source, tables[-1], cells)
    return tables


def _cells(line: str) -> list[str]:
    """Cells of a line between bars or commas; none of a line that is not part of a table."""
    if line.startswith("|"):
        return [cell.strip() for cell in line.strip().strip("|").split("|")]
    return [cell.strip() for cell in line.split(",")] if "," in line else []


def _take_row(source: SourceFile, table: _Table, cells: Sequence[str]) -> None:
    if table.kind != "Event" and cells[0] not in _RUN_TIMES:
        return
    first = 2 if table.kind == "Event" else 1
    values = list(cells[first : first + len(table.columns)])
    if len(values) != len(table.columns):
        raise unreadable(
            source, f"has {len(values)} values for {cells[0][:60]!r} instead of {len(table.columns)}: cut off?"
        )
    table.rows.append((cells[0], values))


def _profile(run: str, source: SourceFile, text: str, tables: Sequence[_Table]) -> Profile:
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    ranks = {(match["host"], match["rank"]) for column in columns if (match := _RANK.fullmatch(column))}
    hosts = {host for host, _ in ranks}
    regions = list(dict.fromkeys(table.region for table in tables if table.region))
    seconds = _seconds(source, tables)
    processes = max(len(ranks), 1)
    metrics = _metrics(source, tables, seconds, processes)
    if not metrics:
        raise unreadable(source, "counted nothing: no event of its groups could be measured on the machine")
    whole = sum(seconds.values())
    labels = {"groups": str(len(seconds) or 1)}
    if regions:
        labels["regions"] = ", ".join(regions)[:2000]
    if (kind := _TYPE.search(text)) is not None:
        labels["cpu_type"] = kind[1].strip()
    return Profile(
        run=run,
        ranks=processes,
        threads_per_rank=max(len(columns) // processes, 1),
        metrics=metrics,
        # The time of marked regions is not that of the program.
        wall_seconds=None if regions or whole <= 0 else whole,
        hosts=len(hosts) or None,
        labels=labels,
    )


def _seconds(source: SourceFile, tables: Sequence[_Table]) -> dict[str, float]:
    """Seconds that each group was measured: of the slowest thread, over all regions."""
    by_region: dict[tuple[str, str], float] = {}
    for table in tables:
        for name, cells in table.rows:
            if name in _RUN_TIMES:
                values = [_number(source, cell, name) for cell in cells]
                key = (table.group, table.region)
                by_region[key] = max(by_region.get(key, 0.0), *values)
    seconds: dict[str, float] = {}
    for (group, _), value in by_region.items():
        seconds[group] = seconds.get(group, 0.0) + value
    return seconds


def _metrics(
    source: SourceFile, tables: Sequence[_Table], seconds: dict[str, float], ranks: int
) -> dict[str, MetricTotal]:
    counts: dict[str, dict[str, float]] = {}
    groups: dict[str, set[str]] = {}
    for table in tables:
        for event, cells in table.rows if table.kind == "Event" else ():
            if event in _NOT_COUNTED or all(cell in _ABSENT for cell in cells):
                continue
            by_column = counts.setdefault(event, {})
            groups.setdefault(event, set()).add(table.group)
            for column, cell in zip(table.columns, cells, strict=True):
                by_column[column] = by_column.get(column, 0.0) + _number(source, cell, event)
    whole = sum(seconds.values())
    metrics = {}
    for event, by_column in counts.items():
        live = sum(seconds.get(group, 0.0) for group in groups[event])
        share = live / whole if live > 0 and len(seconds) > 1 else 1.0
        values = [value / share for value in by_column.values()]
        unit = "J" if _ENERGY.match(event) else NO_UNIT
        ratio = share if len(seconds) > 1 else None
        metrics[event] = MetricTotal(
            sum=sum(values),
            mean_over_ranks=sum(values) / ranks,
            min=min(values),
            max=max(values),
            unit=unit,
            running_ratio=ratio,
        )
    return metrics


def _number(source: SourceFile, cell: str, what: str) -> float:
    return 0.0 if cell in _ABSENT else finite_number(source, cell, f"{what[:60]!r}")
