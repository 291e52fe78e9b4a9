"""Unit of a metric by its name, and whether it is a run time."""

import re
from collections.abc import Sequence

from perf_assets.core.measurements import MetricTotal

NO_UNIT = "count"
"""Unit of a metric whose tool names none."""

_UNIT_IN_PARENTHESES = re.compile(r"\(([A-Za-z%][A-Za-z%/ ]{0,15})\)\s*$")
_BYTES = re.compile(r"\bbytes\b", re.IGNORECASE)
_PER_SECOND = {
    "sec": 1.0,
    "s": 1.0,
    "seconds": 1.0,
    "msec": 1e3,
    "ms": 1e3,
    "usec": 1e6,
    "us": 1e6,
    "nsec": 1e9,
    "ns": 1e9,
}


class FreeNames:
    """Gives every name once: what comes again gets a suffix `.1`, `.2` …"""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """`wanted`, or with a number behind it."""
        name = wanted
        while name in self._taken:
            self._last[wanted] = self._last.get(wanted, 0) + 1
            name = f"{wanted}.{self._last[wanted]}"
        self._taken.add(name)
        return name


def unit_in(name: str) -> str:
    """Unit that a metric's name carries, as in `CPUTIME (usec)` or `IO Bytes Read`."""
    parenthesised = _UNIT_IN_PARENTHESES.search(name)
    if parenthesised:
        return parenthesised.group(1)
    return "bytes" if _BYTES.search(name) else NO_UNIT


def per_second(unit: str) -> float | None:
    """Number of a `unit` per second; None where the unit is not one of time."""
    return _PER_SECOND.get(unit)


def wall_seconds_of(metrics: dict[str, MetricTotal]) -> float | None:
    """Run time from HPCToolkit's REALTIME: the longest profile. CPUTIME is not a run time."""
    for name, total in metrics.items():
        divisor = per_second(total.unit)
        if divisor is not None and name.partition(" ")[0] == "REALTIME" and total.max > 0:
            return total.max / divisor
    return None


def single_value(value: float, unit: str, running_ratio: float | None = None) -> MetricTotal:
    """Total of a metric that has one value for the whole run."""
    return MetricTotal(value, value, value, value, unit, running_ratio)


def total_of(values: Sequence[float], ranks: int, unit: str) -> MetricTotal:
    """Total of a metric from its values, one per profile."""
    added = sum(values)
    return MetricTotal(added, added / ranks, min(values), max(values), unit)
