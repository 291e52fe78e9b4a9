"""Application runs from Caliper profiles (spot, hatchet-region-profile, runtime-report …) with Adiak metadata.

A record is a region path with its metrics, either of one process or aggregated over ranks (`min#`, `max#`, `avg#`,
`sum#`). The record without a path is what happened outside of all regions.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from perf_assets.core.measurements import MetricTotal, Profile, Region
from perf_assets.core.text import printable, without_folder
from perf_assets.readers import caliper
from perf_assets.readers.caliper import Attribute, Row, read_whole, units_per_second
from perf_assets.readers.files import SourceFile, unreadable
from perf_assets.readers.metric_names import NO_UNIT

TIME, COMMUNICATION_SHARE = "time", "mpi share"
"""Metrics: seconds in all regions, and the share of them that was spent in calls of MPI."""

_OVER_RANKS = frozenset(("min", "max", "avg", "sum"))
_ADDED = frozenset(("sum", "count"))
_SPOT_CHANNEL, _REGION_PROFILE = "spot.channel", "regionprofile"
RANKS = ("jobsize", "mpi.world.size")
THREADS = ("threads", "omp_num_threads", "omp_max_threads")
ELAPSED = ("elapsed_time", "elapsedtime", "walltime")
HOSTS = "numhosts"
"""Metadata that say of a run how large and how long it was; the first that is there counts."""
_SECONDS = re.compile(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(?:s|sec|seconds)?")
PERSONAL = re.compile(
    r"user|uid|host(?!s$)|home|path|directory|workdir|libraries|cmdline|executable|machine_build", re.I
)
"""Metadata that name users, hosts and their folders."""
_NO_PARAMETERS = frozenset((*RANKS, *THREADS, HOSTS, "launchdate", "launchday", "uid"))
_MAX_LABEL = 2000
_MAX_REGIONS = 100_000
_LATEST = 2**33
"""Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class _Metric:
    """One metric of all rows that have the same columns."""

    name: str
    unit: str
    is_added: bool
    """Whether values of regions can be added up: counts and times, not shares."""
    is_inclusive: bool
    scale: float
    positions: dict[str, int]
    """Column by what it is over ranks (min, max, avg, sum, count), or `local` where a row is of one process."""


@dataclass(slots=True)
class _Sum:
    """A metric over some rows."""

    metric: _Metric
    ranks: int
    over_ranks: list[MetricTotal] = field(default_factory=list)
    by_rank: dict[str, float] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add the values of a row; one that is not a number counts as absent."""
        values = {kind: _number(row.values[position]) for kind, position in self.metric.positions.items()}
        local = values.pop("local", None)
        if local is not None:
            rank = row.facts.get("mpi.rank", "0")
            self.by_rank[rank] = self.by_rank.get(rank, 0.0) + local * self.metric.scale
        elif total := _over_ranks(values, self.metric, self.ranks):
            self.over_ranks.append(total)

    def total(self) -> MetricTotal | None:
        """Total of all rows; None where no row has a value.

        Extremes over ranks are added too: exact for one row, and bounds of those of a rank for several.
        """
        unit = self.metric.unit
        if self.by_rank:
            values = list(self.by_rank.values())
            if self.metric.is_added:
                values += [0.0] * (len(values) < self.ranks)
                return MetricTotal(sum(values), sum(values) / self.ranks, min(values), max(values), unit)
            # A share that is of no rank holds for all of them.
            mean = sum(values) / len(values)
            return MetricTotal(mean * self.ranks, mean, min(values), max(values), unit)
        if not self.over_ranks:
            return None
        added = sum(part.sum for part in self.over_ranks)
        return MetricTotal(
            added,
            added / self.ranks,
            sum(part.min for part in self.over_ranks),
            sum(part.max for part in self.over_ranks),
            unit,
        )


def is_rajaperf(stream: bytes) -> bool:
    """Whether a .cali file is of RAJAPerf, which has a reader of its own."""
    return b"data=RAJAPerf\n" in stream or b"data=RAJAPerf," in stream


def read_application(run: str, source: SourceFile) -> Profile:
    """Read the profile of one run of an application."""
    profile = read_whole(source)
    rows = [row for row in profile.rows if row.facts.get(_SPOT_CHANNEL, _REGION_PROFILE) == _REGION_PROFILE]
    if len(rows) > _MAX_REGIONS:
        raise unreadable(source, f"has more than {_MAX_REGIONS} regions")
    columns: dict[int, list[_Metric]] = {}
    for row in rows:
        # Rows with the same columns share one tuple of them, so its identity is a cheap key.
        if id(row.attributes) not in columns:
            columns[id(row.attributes)] = _metrics(row.attributes)
    ranks = _ranks(source, profile, rows)
    metrics = _totals(rows, columns, ranks)
    regions = _regions(rows, columns, ranks)
    if not metrics:
        raise unreadable(
            source, "holds no time and no counter of any region: measure with Caliper's spot or runtime-report"
        )
    share = _communication_share(rows, columns, ranks, metrics.get(TIME))
    if share is not None:
        metrics[COMMUNICATION_SHARE] = MetricTotal(share * ranks, share, share, share, "ratio")
    return Profile(
        run=run,
        ranks=ranks,
        threads_per_rank=_whole(profile.metadata, THREADS) or 1,
        metrics=metrics,
        wall_seconds=_wall_seconds(profile.metadata, regions),
        hosts=_whole(profile.metadata, (HOSTS,)),
        labels=_labels(profile),
        regions=regions,
    )


def _metrics(attributes: Sequence[Attribute]) -> list[_Metric]:
    """Metrics of some columns; of one that is there inclusive and exclusive only the inclusive."""
    metrics: dict[tuple[str, bool], _Metric] = {}
    for position, attribute in enumerate(attributes):
        *operations, quantity = attribute.name.split("#")
        if attribute.is_nested or not operations:
            continue
        kind, inner = _split_kind(operations)
        if kind is None:
            continue
        is_time = quantity.removesuffix(".ns").endswith("time.duration")
        is_inclusive = "inclusive" in inner
        metric = _Metric(
            name=TIME if is_time else quantity.removeprefix("papi."),
            unit="sec" if is_time else attribute.unit or NO_UNIT,
            is_added=not _ADDED.isdisjoint(inner) or quantity.endswith("count"),
            is_inclusive=is_inclusive,
            scale=1 / units_per_second(attribute) if is_time else 1.0,
            positions={},
        )
        metrics.setdefault((metric.name, is_inclusive), metric).positions.setdefault(kind, position)
    return [
        metric
        for (name, is_inclusive), metric in metrics.items()
        if metric.positions.keys() != {"count"} and (is_inclusive or (name, True) not in metrics)
    ]


def _split_kind(operations: list[str]) -> tuple[str | None, list[str]]:
    """Statistic of a column over ranks, and earlier aggregations; None for a column that only helps to aggregate."""
    first, *others = operations
    if first == "avg.count":
        return "count", others
    if "." in first:
        return None, others
    if first in _OVER_RANKS and any(operation not in ("inclusive", "scale") for operation in others):
        return first, others
    return "local", operations


def _over_ranks(values: Mapping[str, float | None], metric: _Metric, ranks: int) -> MetricTotal | None:
    """One row that was aggregated over the ranks that came to its region."""
    count = values.get("count") or ranks
    average, added = values.get("avg"), values.get("sum")
    if average is None:
        average = None if added is None else added / count
    if average is None:
        return None
    added = average * count if added is None else added
    smallest, largest = values.get("min"), values.get("max")
    if metric.is_added and count < ranks:
        smallest = 0.0
    return MetricTotal(
        sum=added * metric.scale,
        mean_over_ranks=average * metric.scale,
        min=(average if smallest is None else smallest) * metric.scale,
        max=(average if largest is None else largest) * metric.scale,
        unit=metric.unit,
    )


def _totals(rows: Sequence[Row], columns: Mapping[int, list[_Metric]], ranks: int) -> dict[str, MetricTotal]:
    """Totals of the program: what is inclusive over its top regions, what is not over all; shares of its one top."""
    tops = {row.path for row in rows if len(row.path) == 1 and not _is_communication(row)}
    sums: dict[str, _Sum] = {}
    for row in rows:
        for metric in columns[id(row.attributes)]:
            if metric.is_added:
                is_wanted = len(row.path) <= 1 or not metric.is_inclusive
            else:
                is_wanted = len(tops) == 1 and row.path in tops
            if is_wanted:
                sums.setdefault(metric.name, _Sum(metric, ranks)).add(row)
    totals = {name: total for name, added in sums.items() if (total := added.total()) is not None}
    return {printable(name)[:200]: total for name, total in totals.items()}


def _regions(rows: Sequence[Row], columns: Mapping[int, list[_Metric]], ranks: int) -> list[Region]:
    """Times of all regions that are inclusive, in the order of the file."""
    sums: dict[tuple[str, ...], _Sum] = {}
    communication: set[tuple[str, ...]] = set()
    for row in rows:
        for metric in columns[id(row.attributes)]:
            if row.path and metric.name == TIME and metric.is_inclusive:
                sums.setdefault(row.path, _Sum(metric, ranks)).add(row)
                if _is_communication(row):
                    communication.add(row.path)
    return [
        Region(tuple(map(printable, path)), total, path in communication)
        for path, added in sums.items()
        if (total := added.total()) is not None
    ]


def _is_communication(row: Row) -> bool:
    return bool(row.path) and _is_mpi(row.kinds[-1], row.path[-1])


def _is_mpi(kind: str, region: str) -> bool:
    return kind == "mpi.function" or region.startswith("MPI_")


def _communication_share(
    rows: Sequence[Row], columns: Mapping[int, list[_Metric]], ranks: int, time: MetricTotal | None
) -> float | None:
    """Share of the time in calls of MPI, a call within a call once; None where no call was recorded."""
    spent = None
    for row in rows:
        calls = [_is_mpi(kind, region) for kind, region in zip(row.kinds, row.path, strict=True)]
        for metric in columns[id(row.attributes)]:
            is_wanted = any(calls) and (not metric.is_inclusive or not any(calls[:-1]))
            if is_wanted and metric.name == TIME:
                spent = spent or _Sum(metric, ranks)
                spent.add(row)
    total = spent.total() if spent else None
    if total is None or time is None or time.sum <= 0:
        return None
    return min(max(total.sum / time.sum, 0.0), 1.0)


def _ranks(source: SourceFile, profile: caliper.CaliperRecords, rows: Iterable[Row]) -> int:
    """MPI ranks that the metadata says, or of which there are records."""
    rank_counts = {name: count for name in RANKS if (count := _whole(profile.metadata, (name,)))}
    if len(set(rank_counts.values())) > 1:
        counts_text = " and ".join(f"{count} ({name})" for name, count in rank_counts.items())
        raise unreadable(source, f"contradicts itself: it is of {counts_text} ranks; land a file of one run")
    if rank_counts:
        return next(iter(rank_counts.values()))
    return max(len({row.facts["mpi.rank"] for row in rows if "mpi.rank" in row.facts}), 1)


def _whole(metadata: Mapping[str, str], names: Iterable[str]) -> int | None:
    """The first positive whole number under one of some names."""
    for name in names:
        text = metadata.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0:
            return int(text)
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _wall_seconds(metadata: Mapping[str, str], regions: Iterable[Region]) -> float | None:
    """Run time that the application gave to Adiak, or the longest top region of the slowest rank."""
    for name in ELAPSED:
        match = _SECONDS.fullmatch(metadata.get(name, "").strip())
        if match and 0 < float(match[1]) < math.inf:
            return float(match[1])
    tops = [region.time.max for region in regions if len(region.path) == 1 and not region.is_communication]
    return max(tops, default=None) or None


def _labels(profile: caliper.CaliperRecords) -> dict[str, str]:
    """Labels that a person would otherwise type, and all others without users, hosts and paths."""
    metadata = profile.metadata
    labels = {
        printable(name)[:200]: printable(value)
        for name, value in metadata.items()
        if len(value) <= _MAX_LABEL and not PERSONAL.search(name) and "/" not in value and value.strip()
    }
    words = _words(metadata.get("cmdline", ""))
    program = metadata.get("executable") or (words[0] if words else "") or metadata.get("executablepath", "")
    if program := program.strip().rpartition("/")[2]:
        labels["program"] = printable(program)
    if len(words) > 1:
        labels["args"] = printable(" ".join(map(without_folder, words[1:])))
    elif parameters := sorted((name, text) for name, text in profile.parameters.items() if name not in _NO_PARAMETERS):
        labels["args"] = printable(" ".join(f"{name}={text}" for name, text in parameters))
        labels["args_from"] = "Adiak parameters"
    if launched := launched_at(metadata):
        labels["launched_at"] = launched
    return labels


def launched_at(metadata: Mapping[str, str]) -> str | None:
    """Start of a run, as Adiak gives it in seconds since 1970."""
    seconds = metadata.get("launchdate", "")
    if not (seconds.isascii() and seconds.isdigit() and 0 < int(seconds[:12]) < _LATEST):
        return None
    return datetime.fromtimestamp(int(seconds[:12]), UTC).isoformat()


def _words(command: str) -> list[str]:
    """Words of a command line as Adiak writes it: `[program,argument]`, or a JSON list."""
    try:
        listed = json.loads(command)
        if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
            return listed
    except (ValueError, RecursionError):
        pass
    bare = command.strip().strip("[]{}")
    return [word.strip().strip('"') for word in bare.split(",")] if bare else []
