"""HPCToolkit databases with `experiment.xml`: with `*.metric-db` files beside it, or alone.

Row 0 of a metric-db file is the whole program of one rank and thread, inclusive, over all entry points;
nothing else of the file is read.
"""

import math
import re
import struct
from collections import Counter
from collections.abc import Sequence

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, opened, unreadable
from perf_assets.readers.hpctoolkit.experiment import ExperimentFile, XmlMetric, read_experiment
from perf_assets.readers.hpctoolkit.formula import FormulaError, evaluate
from perf_assets.readers.metric_names import total_of, unit_in, wall_seconds_of

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
        name.removesuffix(" (I)"): total_of([row[column] for row in rows], len(processes), unit_in(_plain(name)))
        for column, name in header.db_metrics.items()
        if column < header.db_columns
    }
    threads = max(1, *processes.values())
    return Profile(run, len(processes), threads, metrics, wall_seconds_of(metrics), len(hosts), labels)


def _plain(name: str) -> str:
    return name.removesuffix(" (I)")


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
    """From the values in the XML itself: accumulators, to which the `finalize` formula has to be applied."""
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
    return Profile(run, profiles, 1, metrics, wall_seconds_of(metrics), None, labels)


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
