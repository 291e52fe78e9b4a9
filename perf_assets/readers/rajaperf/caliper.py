"""Kernel times of RAJAPerf from its Caliper profiles (`<Variant>-<tuning>.cali`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

from perf_assets.core.environment import environment_of
from perf_assets.core.measurements import KernelTiming
from perf_assets.readers.caliper import Attribute, Row, read_stream, units_per_second
from perf_assets.readers.files import SourceFile, unreadable
from perf_assets.readers.rajaperf.csv import NO_MEAN, NO_REPETITION, TOO_SHORT
from perf_assets.readers.rajaperf.threads import threads_of

_KERNEL_DEPTH = 3
"""Paths are RAJAPerf / group / kernel."""
_TIME_ALIASES = ("time", "time (inc)", "avg time/rank", "avg time/rank (inc)")
_TIME_NAMES = ("avg#inclusive#sum#time.duration", "inclusive#sum#time.duration")
_CALLS = "Calls/rank (avg)"
_FACTS = ("ProblemSize", "Reps", "Bytes/Rep", "Flops/Rep")
_NOT_COUNTERS = ("time", "calls", "node order", "blocksize", "feature", "count", "slot")

Facts = tuple[float | None, ...]
"""Problem size, repetitions, bytes and flops per repetition."""


@dataclass(frozen=True, slots=True)
class CaliperRun:
    """One `.cali` file of RAJAPerf."""

    timings: list[KernelTiming]
    metadata: dict[str, str]
    omp_threads: int | None
    """Threads OpenMP had, also where the variant did not use them."""


@dataclass(slots=True)
class _Record:
    """One row of a kernel."""

    seconds: float | None
    fastest: float | None
    """Seconds of the fastest rank, where the profile is over ranks."""
    slowest: float | None
    calls: float | None
    facts: Facts
    counters: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Shared:
    """Facts that all kernels of a file share."""

    run: str
    variant: str
    tuning: str
    ranks: int | None
    threads: int | None
    passes: int
    requested_size: int | None
    """Problem size that was asked for, with all its digits."""
    foreign: Counter[Facts]
    environment: str | None


def read_caliper(run: str, source: SourceFile) -> CaliperRun:
    """Read one file: one variant and one tuning, or all tunings of a variant together."""
    profile = read_stream(source, _KERNEL_DEPTH)
    by_kernel: dict[str, list[_Record]] = {}
    columns: dict[int, _Columns] = {}
    for row in profile.rows:
        if row.path[0] == "RAJAPerf":
            # Rows with the same columns share one tuple of them, so its identity is a cheap key.
            column = columns.get(id(row.attributes))
            if column is None:
                column = columns[id(row.attributes)] = _Columns(row.attributes)
            by_kernel.setdefault(row.path[-1], []).append(column.record(source, row))
    if not by_kernel:
        raise unreadable(source, "holds no kernel of RAJAPerf (no region path RAJAPerf/group/kernel)")
    metadata = profile.metadata
    omp_threads = _number_in(metadata.get("omp_max_threads", "")) or None
    variant = metadata.get("variant", "unknown")
    shared = _Shared(
        run=run,
        variant=variant,
        tuning=_tuning(metadata),
        ranks=_ranks(metadata),
        threads=threads_of(variant, omp_threads),
        passes=_passes_in_command(metadata.get("cmdline", "")),
        requested_size=_requested_size(metadata),
        foreign=_shared_facts(by_kernel),
        environment=environment_of(metadata),
    )
    timings = [_timing(kernel, records, shared) for kernel, records in by_kernel.items()]
    return CaliperRun(timings, metadata, omp_threads)


class _Columns:
    """Meaning of each column, for all rows that have the same columns."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        positions = {attribute.alias: position for position, attribute in enumerate(attributes)}
        self._time = _time_column(attributes)
        self._divisor = 1.0 if self._time is None else units_per_second(attributes[self._time])
        self._extremes = [_extreme_column(attributes, self._time, extreme) for extreme in ("min", "max")]
        self._calls = positions.get(_CALLS)
        self._facts = [positions.get(name) for name in _FACTS]
        self._counters = {
            attribute.alias: position
            for position, attribute in enumerate(attributes)
            if position != self._time and _is_counter(attribute)
        }

    def record(self, source: SourceFile, row: Row) -> _Record:
        """The numbers of a row."""
        values = row.values
        try:
            fastest, slowest = [
                None if position is None else float(values[position]) / self._divisor for position in self._extremes
            ]
            return _Record(
                seconds=None if self._time is None else float(values[self._time]) / self._divisor,
                fastest=fastest,
                slowest=slowest,
                calls=None if self._calls is None else float(values[self._calls]),
                facts=tuple([None if position is None else float(values[position]) for position in self._facts]),
                counters=dict(
                    zip(self._counters, map(float, map(values.__getitem__, self._counters.values())), strict=True)
                ),
            )
        except ValueError as error:
            raise unreadable(source, f"has a bad number for {row.path[-1][:60]!r} ({error})") from None


def _time_column(attributes: Sequence[Attribute]) -> int | None:
    by_alias = {attribute.alias.lower(): position for position, attribute in enumerate(attributes)}
    by_name = {attribute.name.removesuffix(".ns"): position for position, attribute in enumerate(attributes)}
    columns = [by_alias[alias] for alias in _TIME_ALIASES if alias in by_alias]
    columns += [by_name[name] for name in _TIME_NAMES if name in by_name]
    return columns[0] if columns else None


def _extreme_column(attributes: Sequence[Attribute], time: int | None, extreme: str) -> int | None:
    """Column of the fastest or slowest rank's time beside the mean one."""
    if time is None or not attributes[time].name.startswith("avg#"):
        return None
    wanted = f"{extreme}#{attributes[time].name.removeprefix('avg#')}"
    return next((position for position, attribute in enumerate(attributes) if attribute.name == wanted), None)


def _is_counter(attribute: Attribute) -> bool:
    """Whether a column was measured (top-down shares, PAPI counters) rather than is a fact of the kernel."""
    alias = attribute.alias
    if attribute.is_nested or attribute.name == alias or alias in _FACTS or alias.endswith("/Rep"):
        return False
    lowered = alias.lower()
    return not any(word in lowered for word in _NOT_COUNTERS)


def _shared_facts(by_kernel: Mapping[str, list[_Record]]) -> Counter[Facts]:
    """Number of kernels that carry the same facts.

    With more than one pass the later passes of every kernel carry the facts of the last kernel: what stands at
    many kernels is foreign.
    """
    if all(len(records) == 1 for records in by_kernel.values()):
        return Counter()
    return Counter(facts for records in by_kernel.values() for facts in {record.facts for record in records})


def _timing(kernel: str, records: list[_Record], shared: _Shared) -> KernelTiming:
    own = records[0] if len(records) == 1 else min(records, key=lambda record: shared.foreign[record.facts])
    size, reps_given, bytes_per_rep, flops_per_rep = own.facts
    reps = _whole(reps_given)
    seconds, fastest, slowest = (
        (total / reps if total is not None and reps else None) for total in _pass_seconds(records, shared.passes)
    )
    reason = _why_invalid(reps, seconds)
    counters = own.counters
    if not all(map(isfinite, counters.values())):
        counters = {name: value for name, value in counters.items() if isfinite(value)}
    return KernelTiming(
        run=shared.run,
        kernel=kernel,
        variant=shared.variant,
        tuning=shared.tuning,
        problem_size=_exact(size, shared.requested_size) or None,
        reps=reps,
        ranks=shared.ranks,
        threads=shared.threads,
        seconds_per_rep=seconds if reason is None else None,
        seconds_per_rep_min=fastest if reason is None else None,
        seconds_per_rep_max=slowest if reason is None else None,
        bytes_per_rep=_figure(bytes_per_rep),
        flops_per_rep=_figure(flops_per_rep),
        is_valid=reason is None,
        invalid_reason=reason,
        counters=counters,
        environment=shared.environment,
    )


def _pass_seconds(records: list[_Record], passes: int) -> tuple[float | None, float | None, float | None]:
    """Mean time of a pass, and that of the fastest and slowest rank: all records divided by how often it was called."""
    calls = sum(record.calls or 0.0 for record in records)
    divisor = round(calls) if 1 <= calls < 1e9 else passes
    return (
        _added([record.seconds for record in records], divisor),
        _added([record.fastest for record in records], divisor),
        _added([record.slowest for record in records], divisor),
    )


def _added(seconds: list[float | None], divisor: int) -> float | None:
    known = [value for value in seconds if value is not None]
    return sum(known) / divisor if len(known) == len(seconds) else None


def _why_invalid(reps: int | None, seconds: float | None) -> str | None:
    if reps == 0:
        return NO_REPETITION
    if seconds is None or not isfinite(seconds) or seconds < 0:
        return NO_MEAN
    return None if seconds > 0 else TOO_SHORT


def _figure(value: float | None) -> float | None:
    return value if value is not None and 0 <= value < inf else None


def _exact(size: float | None, requested: int | None) -> int | None:
    """Problem size with all its digits: profiles of Caliper 2.15 have six, the run's metadata all of the request."""
    if requested is not None and size == float(f"{requested:.6g}"):
        return requested
    return _whole(size)


def _requested_size(metadata: Mapping[str, str]) -> int | None:
    """Problem size that was asked for directly; a factor is none."""
    text = metadata.get("ProblemSizeRunParam", "").partition(".")[0]
    return _number_in(text) or None if metadata.get("SizeMeaning", "Direct") == "Direct" else None


def _whole(value: float | None) -> int | None:
    return round(value) if value is not None and 0 <= value < 2**63 else None


def _number_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _tuning(metadata: Mapping[str, str]) -> str:
    """Tuning of the file. Only files of the spot channel are of one tuning; others name the last that ran."""
    is_one_tuning = metadata.get("cali.channel", "spot") == "spot"
    return metadata.get("tuning", "default") if is_one_tuning else "default"


def _ranks(metadata: Mapping[str, str]) -> int | None:
    """MPI ranks, where there are several: Caliper does not tell one rank from none."""
    ranks = _number_in(metadata.get("jobsize", ""))
    return ranks if ranks is not None and ranks > 1 else None


def _passes_in_command(command: str) -> int:
    words = command.strip("[]{}").split(",")
    return _number_in(dict(pairwise(words)).get("--npasses", "1")) or 1
