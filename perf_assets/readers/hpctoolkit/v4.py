"""HPCToolkit v4 databases (2022.10 and later): `meta.db` names the metrics, `profile.db` holds the values.

Context 0 of a profile is the whole program, inclusive over all entry points; the call tree is never read.
"""

import math
import mmap
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, mapped, unreadable
from perf_assets.readers.metric_names import unit_in, wall_seconds_of

MAGIC = b"HPCTOOLKIT"
MAJOR_VERSION = 4
FOOTERS = {b"meta": b"_meta.db", b"prof": b"_prof.db"}

_HEADER_BYTES = 16
_MAX_TEXT_BYTES = 4096
_POINTER = struct.Struct("<Q")
_SECTION = struct.Struct("<QQ")


class Database:
    """One file of a v4 database. Every access is checked against the file's size."""

    def __init__(self, source: SourceFile, data: bytes | mmap.mmap, kind: bytes) -> None:
        self.source = source
        self.data = data
        self.size = len(data)
        head = bytes(data[:_HEADER_BYTES])
        if len(head) < _HEADER_BYTES or not head.startswith(MAGIC + kind):
            raise self.damaged("its header is not that of HPCToolkit v4")
        self.version = (head[14], head[15])
        if head[14] != MAJOR_VERSION:
            raise unreadable(source, f"has format version {head[14]}.{head[15]}; only version 4 is understood")
        if bytes(data[-8:]) != FOOTERS[kind]:
            raise unreadable(source, f"is cut off: it does not end with {FOOTERS[kind].decode()}; copy it again")

    def damaged(self, why: str) -> Exception:
        """The error for a file whose structure is broken."""
        return unreadable(self.source, f"is damaged ({why}): copy the database again")

    def section(self, index: int, minimum: int) -> int:
        """Offset of a section, which must have at least `minimum` bytes."""
        size, offset = self.unpack(_SECTION, _HEADER_BYTES + 16 * index)
        if size < minimum or offset + size > self.size:
            raise self.damaged(f"section {index} lies outside of the file")
        return int(offset)

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        """Fields of the structure at `offset`."""
        if offset + layout.size > self.size:
            raise self.damaged(f"offset {offset} lies outside of the file")
        return layout.unpack_from(self.data, offset)

    def array(self, layout: struct.Struct, offset: int, count: int, stride: int) -> Iterator[tuple[int, ...]]:
        """Structures of an array whose elements are `stride` bytes apart."""
        if count == 0:
            return iter(())
        if stride < layout.size:
            raise self.damaged(f"elements of {stride} bytes where at least {layout.size} are needed")
        if offset + stride * (count - 1) + layout.size > self.size:
            raise self.damaged(f"an array of {count} elements lies outside of the file")
        unpack_from, data = layout.unpack_from, self.data
        return (unpack_from(data, position) for position in range(offset, offset + stride * count, stride))

    def pointers(self, offset: int, count: int) -> list[int]:
        """Array of pointers."""
        return [pointer for (pointer,) in self.array(_POINTER, offset, count, _POINTER.size)]

    def text(self, offset: int) -> str:
        """The NUL-terminated text at `offset`."""
        if offset >= self.size:
            raise self.damaged(f"text at {offset} lies outside of the file")
        end = self.data.find(b"\0", offset, offset + _MAX_TEXT_BYTES)
        if end < 0:
            raise self.damaged(f"text at {offset} has no end")
        try:
            return bytes(self.data[offset:end]).decode()
        except UnicodeDecodeError:
            raise self.damaged(f"text at {offset} is not UTF-8") from None


_INCLUSIVE = "execution"
"""Scope of a metric that counts a context with all it called."""
_MAX_METRIC_IDS = 65536
_MAX_TUPLE_IDS = 64

_GENERAL = struct.Struct("<QQ")
_ID_NAMES = struct.Struct("<QB")
_METRICS = struct.Struct("<QIBBB")
_METRIC = struct.Struct("<QQQHH")
_SCOPE_INSTANCE = struct.Struct("<QH")
_PROFILES = struct.Struct("<QIB")
_PROFILE = struct.Struct("<QQI4xQQI")
_CONTEXT = struct.Struct("<IQ")
_VALUE = struct.Struct("<Hd")
_TUPLE = struct.Struct("<H")
_TUPLE_ID = struct.Struct("<BxHIQ")

_SECTION_GENERAL, _SECTION_ID_NAMES, _SECTION_METRICS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class _Meta:
    """Needed content of `meta.db`."""

    title: str
    id_kinds: list[str]
    metrics: dict[int, str]
    """Id of each inclusive metric in the profiles -> name."""


class _Totals:
    """Program totals over profiles, added one by one so that memory does not grow with their number."""

    def __init__(self) -> None:
        self.profile_count = 0
        self.hosts: set[int] = set()
        self.cpu_threads: Counter[tuple[str, int]] = Counter()
        """Process -> its threads."""
        self._seen: dict[int, list[float]] = {}
        """Metric id -> sum, minimum, maximum, number of profiles that have it."""

    def add(self, identity: dict[str, int], values: dict[int, float]) -> None:
        """Add one profile: a thread or a GPU stream."""
        self.profile_count += 1
        kind = "RANK" if "RANK" in identity else "NODE"
        is_cpu_thread = not any(name.startswith("GPU") for name in identity)
        self.cpu_threads[(kind, identity.get(kind, 0))] += is_cpu_thread
        if "NODE" in identity:
            self.hosts.add(identity["NODE"])
        for metric, value in values.items():
            seen = self._seen.setdefault(metric, [0.0, value, value, 0])
            seen[0] += value
            seen[1] = min(seen[1], value)
            seen[2] = max(seen[2], value)
            seen[3] += 1

    def of(self, metric: int, unit: str) -> MetricTotal:
        """Total of a metric; where a profile does not have it, its value there is 0."""
        added, smallest, largest, count = self._seen.get(metric, (0.0, 0.0, 0.0, 0))
        if count < self.profile_count:
            smallest, largest = min(smallest, 0.0), max(largest, 0.0)
        return MetricTotal(added, added / len(self.cpu_threads), smallest, largest, unit)


def read_database(run: str, meta_file: SourceFile, profile_file: SourceFile) -> Profile:
    """Totals of one database."""
    with mapped(meta_file) as data:
        meta = _read_meta(Database(meta_file, data, b"meta"))
    with mapped(profile_file) as data:
        database = Database(profile_file, data, b"prof")
        totals = _read_profiles(database, meta.id_kinds)
    if totals.profile_count == 0:
        raise database.damaged("it holds no profile of any thread")
    metrics = {name: totals.of(identity, unit_in(name)) for identity, name in meta.metrics.items()}
    labels = {"program": meta.title, "database_version": "{}.{}".format(*database.version)}
    return Profile(
        run,
        ranks=len(totals.cpu_threads),
        threads_per_rank=max(1, *totals.cpu_threads.values()),
        metrics=metrics,
        wall_seconds=wall_seconds_of(metrics),
        hosts=len(totals.hosts) or None,
        labels=labels,
    )


def _read_meta(database: Database) -> _Meta:
    title, _ = database.unpack(_GENERAL, database.section(_SECTION_GENERAL, _GENERAL.size))
    names, count = database.unpack(_ID_NAMES, database.section(_SECTION_ID_NAMES, _ID_NAMES.size))
    kinds = [database.text(pointer) for pointer in database.pointers(names, count)]
    return _Meta(database.text(title), kinds, _inclusive_metrics(database))


def _inclusive_metrics(database: Database) -> dict[int, str]:
    section = database.section(_SECTION_METRICS, _METRICS.size)
    offset, count, metric_size, instance_size, _ = database.unpack(_METRICS, section)
    if count > _MAX_METRIC_IDS:
        raise database.damaged(f"{count} metrics")
    scope_names: dict[int, str] = {}
    metrics: dict[int, str] = {}
    seen = 0
    for name, instances, _, instance_count, _ in database.array(_METRIC, offset, count, metric_size):
        seen += instance_count
        if seen > _MAX_METRIC_IDS:
            raise database.damaged("more metrics than there can be ids for")
        for scope, identity in database.array(_SCOPE_INSTANCE, instances, instance_count, instance_size):
            if scope not in scope_names:
                scope_names[scope] = database.text(database.unpack(_POINTER, scope)[0])
            if scope_names[scope] == _INCLUSIVE:
                metrics[identity] = database.text(name)
    if not metrics:
        raise database.damaged("it names no inclusive metric")
    if len(set(metrics.values())) != len(metrics):
        raise database.damaged("two metrics have one name")
    return metrics


def _read_profiles(database: Database, id_kinds: Sequence[str]) -> _Totals:
    offset, count, stride = database.unpack(_PROFILES, database.section(0, _PROFILES.size))
    totals = _Totals()
    unread_values = database.size // _VALUE.size
    for value_count, values, context_count, contexts, id_tuple, flags in database.array(
        _PROFILE, offset, count, stride
    ):
        if flags & 1:
            continue
        by_profile = _program_totals(database, (value_count, values), (context_count, contexts))
        unread_values -= len(by_profile)
        if unread_values < 0:
            raise database.damaged("profiles share their values")
        totals.add(_identity(database, id_tuple, id_kinds), by_profile)
    return totals


def _program_totals(database: Database, values: tuple[int, int], contexts: tuple[int, int]) -> dict[int, float]:
    """Values of context 0, which comes first; each argument is the count and the offset of an array."""
    if values[0] == 0 or contexts[0] == 0:
        return {}
    first_two = list(database.array(_CONTEXT, contexts[1], min(contexts[0], 2), _CONTEXT.size))
    context, start = first_two[0]
    end = first_two[1][1] if len(first_two) == 2 else values[0]
    if context != 0:
        raise database.damaged("a profile has values but no program total")
    if not start <= end <= values[0] or end - start > _MAX_METRIC_IDS:
        raise database.damaged("the values of a profile lie outside of it")
    totals = {
        metric: float(value)
        for metric, value in database.array(_VALUE, values[1] + start * _VALUE.size, end - start, _VALUE.size)
    }
    if len(totals) != end - start or not all(map(math.isfinite, totals.values())):
        raise database.damaged("a value is given twice or is not finite")
    return totals


def _identity(database: Database, offset: int, id_kinds: Sequence[str]) -> dict[str, int]:
    if offset == 0:
        return {}
    (count,) = database.unpack(_TUPLE, offset)
    if count > _MAX_TUPLE_IDS:
        raise database.damaged(f"a profile with {count} ids")
    identity = {}
    for kind, flags, logical, physical in database.array(_TUPLE_ID, offset + 8, count, _TUPLE_ID.size):
        if kind >= len(id_kinds):
            raise database.damaged(f"an id of unknown kind {kind}")
        identity[id_kinds[kind]] = physical if flags & 1 else logical
    return identity
