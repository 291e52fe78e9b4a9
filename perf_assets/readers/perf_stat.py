"""`perf stat` output with a separator (`-x,`) or as JSON lines (`-j`).

What perf could not count (`<not supported>`, `<not counted>`) is absent, not 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, read_text, unreadable
from perf_assets.readers.json_text import finite_number, parse_json_text
from perf_assets.readers.metric_names import NO_UNIT, FreeNames, per_second, single_value

_MAX_BYTES = 4 * 2**20
_SEPARATORS = (",", ";", "\t")
_WALL_TIME = "duration_time"
_USUAL_FORM = "run perf stat without -I, -A or --per-*, and with -x, or -j"


@dataclass(frozen=True, slots=True)
class _Count:
    """One line of the output."""

    value: str
    unit: str
    event: str
    running_percent: str | None


def read_csv(run: str, source: SourceFile) -> Profile:
    """Counters of `perf stat -x,`."""
    return _profile(run, source, _csv_lines(source))


def read_json(run: str, source: SourceFile) -> Profile:
    """Counters of `perf stat -j`."""
    return _profile(run, source, _json_lines(source))


def _csv_lines(source: SourceFile) -> Iterator[_Count]:
    for line in read_text(source, _MAX_BYTES).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        separator = next((mark for mark in _SEPARATORS if line.count(mark) >= 3), None)
        if separator is None:
            raise unreadable(source, f"has a line that perf stat does not write: {line[:60]!r}")
        value, unit, *rest = line.split(separator)
        # The event may hold the separator, as in `cpu/event=0x3c,umask=0x0/`; it ends at the running time and share.
        # With -r N perf inserts the spread between runs, as in `0.94%`, before them.
        end = next((at for at in range(1, len(rest) - 1) if rest[at].isdigit() and _is_share(rest[at + 1])), None)
        event = rest[:1] if end is None or not rest[0] else rest[: end - rest[end - 1].endswith("%")]
        yield _Count(value.strip(), unit.strip(), separator.join(event).strip(), rest[end + 1] if end else None)


def _is_share(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _json_lines(source: SourceFile) -> Iterator[_Count]:
    for line in read_text(source, _MAX_BYTES).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        fields = parse_json_text(source, line)
        if not isinstance(fields, dict) or "counter-value" not in fields:
            continue
        percent = fields.get("pcnt-running")
        yield _Count(
            str(fields["counter-value"]),
            str(fields.get("unit", "")),
            str(fields.get("event", "")),
            None if percent is None else str(percent),
        )


def _profile(run: str, source: SourceFile, counts: Iterator[_Count]) -> Profile:
    metrics: dict[str, MetricTotal] = {}
    names = FreeNames()
    missing = []
    wall_seconds = None
    for count in counts:
        if count.value.startswith("<not "):
            missing.append(count.event)
            continue
        value = finite_number(source, count.value, f"event {count.event[:60]!r} (or a column before it)")
        if not count.event:
            raise unreadable(source, f"has a value without an event: {_USUAL_FORM}")
        unit = count.unit or ("ns" if count.event == _WALL_TIME else NO_UNIT)
        metrics[names.give(count.event)] = single_value(value, unit, _running_ratio(source, count))
        if count.event == _WALL_TIME and value > 0:
            wall_seconds = value / (per_second(unit) or 1e9)
    if not metrics:
        raise unreadable(source, "counted nothing: no event is supported on the machine, or perf stat was interrupted")
    labels = {"not_counted": " ".join(missing)} if missing else {}
    return Profile(run=run, ranks=1, threads_per_rank=1, metrics=metrics, wall_seconds=wall_seconds, labels=labels)


def _running_ratio(source: SourceFile, count: _Count) -> float | None:
    if count.running_percent is None or not count.running_percent.strip():
        return None
    percent = finite_number(source, count.running_percent, f"running share of {count.event[:60]!r}")
    if not 0 <= percent <= 100.5:
        raise unreadable(source, f"running share of {count.event[:60]!r} is {percent}%: {_USUAL_FORM}")
    return min(percent / 100, 1.0)
