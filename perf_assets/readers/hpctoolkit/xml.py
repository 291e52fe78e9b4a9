"""HPCToolkit databases with `experiment.xml`: with `*.metric-db` files beside it, or alone.

Row 0 of a metric-db file is the whole program of one rank and thread, inclusive, over all entry points;
nothing else of the file is read.
"""

import math
import os
import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from xml.parsers import expat

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, opened, unreadable
from perf_assets.readers.hpctoolkit.formula import FormulaError, evaluate
from perf_assets.readers.metric_names import total_of, unit_in, wall_seconds_of

_FIRST_CHUNK_BYTES = 16 * 1024
_MAX_CHUNK_BYTES = 8 * 2**20
_MAX_TOKEN_BYTES = 4 * 2**20
"""Largest tag or comment: the parser keeps it in memory until it ends."""
_MAX_DEPTH = 100
"""Elements in each other: the parser remembers every one that is open."""
_MAX_METRICS = 10_000
_MAX_DEFAULTS = 100
_MAX_DEFAULT_LENGTH = 100
"""The document type gives values to attributes that an element leaves out; too many of them could make a small
file expensive."""
_END_MARK = b"</HPCToolkitExperiment>"
_AFTER_METRICS = frozenset(("LoadModuleTable", "FileTable", "ProcedureTable", "SecCallPathProfileData"))
_TREE = frozenset(("PF", "Pr", "L", "C", "S", "SecFlatProfile"))


@dataclass(slots=True)
class XmlMetric:
    """A `<Metric>`: a summary over all profiles."""

    id: int
    name: str
    is_inclusive: bool
    finalize: str | None = None
    """Formula that turns the stored accumulators into the value."""


@dataclass(slots=True)
class ExperimentFile:
    """Content of the header."""

    version: str = ""
    program: str = ""
    metrics: list[XmlMetric] = field(default_factory=list)
    db_metrics: dict[int, str] = field(default_factory=dict)
    """Column in the metric-db files -> name of each inclusive metric."""
    db_columns: int = 0
    """Number of columns that a metric-db file must have."""
    totals: dict[int, float] = field(default_factory=dict)
    """Metric id -> accumulator of the whole program, 6 significant digits."""


def read_experiment(source: SourceFile, with_totals: bool) -> ExperimentFile:
    """Read the header, and `with_totals` also the values of the whole program."""
    handler = _Handler(source, with_totals)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.EntityDeclHandler = handler.entity
    parser.AttlistDeclHandler = handler.default
    with opened(source) as stream:
        try:
            _feed(source, parser, stream)
        except _EnoughError:
            pass
        except expat.ExpatError as error:
            raise unreadable(source, f"is not well-formed XML ({error}): copy the file again") from None
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 256))
        is_complete = _END_MARK in stream.read(256)
    if not is_complete:
        raise unreadable(source, f"is cut off: it does not end with {_END_MARK.decode()}; copy the file again")
    if not handler.experiment.version:
        raise unreadable(source, "is no HPCToolkit experiment")
    return handler.experiment


class _EnoughError(Exception):
    """Everything that is wanted has been seen."""


def _feed(source: SourceFile, parser: expat.XMLParserType, stream: BinaryIO) -> None:
    """Parse in chunks of growing size: an element that is never closed is scanned again with every chunk."""
    size, fed = _FIRST_CHUNK_BYTES, 0
    while chunk := stream.read(size):
        parser.Parse(chunk, False)
        fed += len(chunk)
        if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES + len(chunk):
            raise unreadable(source, "has a tag or comment that is longer than any HPCToolkit writes: refused")
        size = min(2 * size, _MAX_CHUNK_BYTES)
    parser.Parse(b"", True)


class _Handler:
    """Takes the elements as they come, until the part that is wanted has ended."""

    def __init__(self, source: SourceFile, with_totals: bool) -> None:
        self.experiment = ExperimentFile()
        self._source = source
        self._with_totals = with_totals
        self._in_data = False
        self._default_count = 0
        self._depth = 0

    def entity(self, name: str, *_: Any) -> None:
        raise unreadable(self._source, f"declares the XML entity {name[:40]!r}, which no HPCToolkit writes: refused")

    def default(self, element: str, name: str, kind: str, value: str | None, required: int) -> None:
        self._default_count += value is not None
        if self._default_count > _MAX_DEFAULTS or len(value or "") > _MAX_DEFAULT_LENGTH:
            raise unreadable(self._source, "declares more default values than any HPCToolkit writes: refused")

    def end(self, tag: str) -> None:
        self._depth -= 1

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise unreadable(self._source, f"nests elements more than {_MAX_DEPTH} deep before its call tree: refused")
        if tag in _TREE or (tag in _AFTER_METRICS and not self._with_totals):
            raise _EnoughError
        try:
            self._take(tag, attributes)
        except (KeyError, ValueError) as error:
            raise unreadable(self._source, f"has a bad <{tag}> element ({error})") from None

    def _take(self, tag: str, attributes: dict[str, str]) -> None:
        experiment = self.experiment
        if tag == "M":
            if self._in_data:
                experiment.totals[int(attributes["n"])] = float(attributes["v"])
        elif tag == "Metric":
            self._limit(len(experiment.metrics))
            is_inclusive = attributes.get("t") == "inclusive"
            experiment.metrics.append(XmlMetric(int(attributes["i"]), attributes["n"], is_inclusive))
        elif tag == "MetricFormula":
            if attributes.get("t") == "finalize" and experiment.metrics:
                experiment.metrics[-1].finalize = attributes["frm"]
        elif tag == "MetricDB":
            self._take_db_metric(attributes)
        else:
            self._take_frame(tag, attributes)

    def _take_db_metric(self, attributes: dict[str, str]) -> None:
        self._limit(self.experiment.db_columns)
        column = int(attributes["db-id"])
        self.experiment.db_columns = int(attributes["db-num-metrics"])
        if attributes.get("t") == "inclusive":
            self.experiment.db_metrics[column] = attributes["n"]

    def _take_frame(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "HPCToolkitExperiment":
            self.experiment.version = attributes["version"]
        elif tag == "Header":
            self.experiment.program = attributes.get("n", "")
        elif tag == "SecCallPathProfileData":
            self._in_data = True

    def _limit(self, count: int) -> None:
        if count > _MAX_METRICS:
            raise unreadable(self._source, f"has more than {_MAX_METRICS} metrics")


METRIC_DB_MAGIC = b"HPCPROF-metricdb__"
FIRST_GPU_STREAM = 500
"""Thread ids from here on are GPU streams."""

_HEADER_BYTES = 32
_MIN_PRESENT = 2.2251e-308
"""DBL_MIN with 6 digits stands for a minimum over profiles of which one had no value."""
_FILE_NAME = re.compile(r"-(\d{1,9})-(\d{1,9})-([0-9a-fA-F]{1,16})-(\d{1,19})-\d{1,19}\.metric-db$")
_SUMMARY = re.compile(r"(?P<base>.*?)(?::(?P<statistic>Sum|Mean|StdDev|CfVar|Min|Max))?(?P<helper>:[\w-]+)? \(I\)$")


def read_database(run: str, experiment: SourceFile, metric_dbs: Sequence[SourceFile]) -> Profile:
    """Totals of one database; `metric_dbs` may be empty."""
    header = read_experiment(experiment, with_totals=not metric_dbs)
    labels = {"program": header.program, "xml_version": header.version}
    if not metric_dbs:
        return _from_summaries(run, experiment, header, labels)
    if not header.db_metrics:
        raise unreadable(experiment, "names no metrics for the metric-db files beside it: copy the database again")
    return _from_metric_dbs(run, header, metric_dbs, labels)


def _from_metric_dbs(
    run: str, header: ExperimentFile, metric_dbs: Sequence[SourceFile], labels: dict[str, str]
) -> Profile:
    rows = [_first_row(source, header.db_columns) for source in metric_dbs]
    processes: Counter[tuple[str, str, str]] = Counter()
    hosts = set()
    for source in metric_dbs:
        match = _FILE_NAME.search(source.name)
        if match is None:
            raise unreadable(source, "does not say rank and thread in its name: keep the name that HPCToolkit gave it")
        rank, thread, host, process = match.groups()
        hosts.add(host)
        processes[(rank, host, process)] += int(thread) < FIRST_GPU_STREAM
    metrics = {
        (plain := name.removesuffix(" (I)")): total_of([row[column] for row in rows], len(processes), unit_in(plain))
        for column, name in header.db_metrics.items()
        if column < header.db_columns
    }
    return Profile(
        run=run,
        ranks=len(processes),
        threads_per_rank=max(1, *processes.values()),
        metrics=metrics,
        wall_seconds=wall_seconds_of(metrics),
        hosts=len(hosts),
        labels=labels,
    )


def _first_row(source: SourceFile, columns: int) -> tuple[float, ...]:
    if len(source.head) < _HEADER_BYTES or not source.head.startswith(METRIC_DB_MAGIC):
        raise unreadable(source, "is no metric-db file, or is cut off: copy it again")
    if source.head[23:24] != b"b":
        raise unreadable(source, "is not big endian, as metric-db files are")
    node_count, metric_count = struct.unpack_from(">ii", source.head, 24)
    if metric_count != columns:
        raise unreadable(source, f"has {metric_count} metrics, but experiment.xml names {columns}: copy both again")
    wanted = _HEADER_BYTES + 8 * node_count * metric_count
    if node_count < 1 or metric_count < 1 or source.size != wanted:
        raise unreadable(source, f"has {source.size} bytes instead of {wanted}: it is damaged, copy it again")
    data = source.head
    if len(data) < _HEADER_BYTES + 8 * metric_count:
        with opened(source) as stream:
            data = stream.read(_HEADER_BYTES + 8 * metric_count)
    row = struct.unpack_from(f">{metric_count}d", data, _HEADER_BYTES)
    if not all(map(math.isfinite, row)):
        raise unreadable(source, "holds a value that is not finite: the file is damaged")
    return row


def _from_summaries(run: str, source: SourceFile, header: ExperimentFile, labels: dict[str, str]) -> Profile:
    """Totals from the values in the XML itself: accumulators, to which the `finalize` formula has to be applied."""
    by_metric: dict[str, dict[str, float]] = {}
    for metric in header.metrics:
        name = _SUMMARY.match(metric.name) if metric.is_inclusive else None
        if name is not None and (name["helper"] is None or name["helper"] == ":num-src"):
            statistic = "num-src" if name["helper"] else name["statistic"] or "Sum"
            if statistic not in ("StdDev", "CfVar"):
                by_metric.setdefault(name["base"], {})[statistic] = _value(source, metric, header.totals)
    if not by_metric or not header.totals:
        raise unreadable(source, "has no inclusive metric of the whole program, and no metric-db is beside it")
    profiles = max(1, *(round(values.get("num-src", 1)) for values in by_metric.values()))
    metrics = {name: _summary_total(values, profiles, unit_in(name)) for name, values in by_metric.items()}
    seconds = wall_seconds_of(metrics)
    return Profile(run=run, ranks=profiles, threads_per_rank=1, metrics=metrics, wall_seconds=seconds, labels=labels)


def _value(source: SourceFile, metric: XmlMetric, totals: dict[int, float]) -> float:
    try:
        value = evaluate(metric.finalize or f"${metric.id}", totals)
    except FormulaError as error:
        raise unreadable(source, f"metric {metric.name[:80]!r}: {error}") from None
    if not -(2.0**63) < value < 2.0**63 and metric.name.endswith(":num-src (I)"):
        raise unreadable(source, f"metric {metric.name[:80]!r} counts {value} profiles")
    if not math.isfinite(value):
        raise unreadable(source, f"metric {metric.name[:80]!r} is not finite")
    return value


def _summary_total(values: dict[str, float], profiles: int, unit: str) -> MetricTotal:
    added = values["Sum"] if "Sum" in values else values.get("Mean", 0.0) * values.get("num-src", profiles)
    mean = added / profiles
    smallest = values.get("Min", mean)
    if 0 < smallest < _MIN_PRESENT:
        smallest = 0.0
    return MetricTotal(added, mean, smallest, values.get("Max", mean), unit)
