"""Times of a job log to Unix seconds: local times, with the hour that comes twice in autumn and the one that never is.

Without a zone, local times are taken as they stand: a clock that nobody puts forward or back.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.kernels.compiled import Floats, Mask

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Times:
    """A column of times, in Unix seconds; NaN where there is none."""

    early: Floats
    late: Floats
    """Differs from `early` where the local time came twice."""
    never_was: Mask
    """Local times that the zone skips in spring."""
    is_local: bool = False
    """Whether they are local times of which the zone is not known."""

    @property
    def came_twice(self) -> Mask:
        """Local times that can be either of two."""
        return np.asarray(self.early != self.late) & np.isfinite(self.early)


def known_zone(name: str | None) -> str | None:
    """Name of a time zone, checked."""
    if name is None:
        return None
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInputError(f"there is no time zone {name!r}: give a name such as America/Los_Angeles") from None
    return name


def times_of(texts: "pd.Series[str]", zone: str | None) -> Times:
    """Epoch seconds, ISO times with an offset, or local times of a zone; what is none of these is missing."""
    import pandas as pd

    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.notna().any():
        seconds = numbers.where(numbers > 0).to_numpy(float)
        return Times(seconds, seconds, np.zeros(len(texts), bool))
    if texts.str.contains(r"(?:Z|[+-]\d\d:?\d\d)\s*$", regex=True).any():
        seconds = _seconds(pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce"))
        return Times(seconds, seconds, np.zeros(len(texts), bool))
    local = pd.to_datetime(texts, format="ISO8601", errors="coerce")
    if zone is None:
        seconds = _seconds(local)
        return Times(seconds, seconds, np.zeros(len(texts), bool), is_local=True)
    early, late = (
        _seconds(local.dt.tz_localize(zone, ambiguous=np.full(len(texts), is_summer), nonexistent="NaT"))
        for is_summer in (True, False)
    )
    return Times(early, late, np.asarray(local.notna().to_numpy() & np.isnan(early)))


def _seconds(times: "pd.Series[pd.Timestamp]") -> Floats:
    import pandas as pd

    plain = times.dt.tz_convert("UTC").dt.tz_localize(None) if times.dt.tz is not None else times
    return np.asarray((plain - pd.Timestamp(0)).dt.total_seconds(), np.float64)


def in_order(times: Times) -> tuple[Floats, Mask]:
    """Times that stand in their order, and which of them are a guess: where the hour is repeated, the clock goes back.

    All that follows the step back, within that hour, is the second time; where no step is seen, it is the first.
    """
    chosen, is_open = times.early.copy(), times.came_twice.copy()
    twice = np.flatnonzero(is_open)
    days = np.floor(times.early[twice] / 86_400)
    for day in np.unique(days):
        rows = twice[days == day]
        steps = np.flatnonzero(np.diff(times.early[rows]) < 0)
        if len(steps):
            chosen[rows[steps[0] + 1 :]] = times.late[rows[steps[0] + 1 :]]
            is_open[rows] = False
    return chosen, is_open


def not_before(times: Times, earliest: Floats, seconds: Floats | None = None) -> tuple[Floats, Mask]:
    """Times at or after others, and which of them are a guess: nearest to `seconds` later where that is known."""
    early, late = times.early, times.late
    must = early < earliest
    if seconds is None:
        return np.where(must, late, early), times.came_twice & ~must
    fits = np.abs(late - earliest - seconds) < np.abs(early - earliest - seconds)
    is_known = np.isfinite(seconds)
    return np.where(np.where(is_known, fits, must), late, early), times.came_twice & ~must & ~is_known


def not_after(times: Times, latest: Floats) -> tuple[Floats, Mask]:
    """Times at or before others, and which of them are a guess: the later of two that both are possible."""
    is_late = times.late <= latest
    return np.where(is_late, times.late, times.early), times.came_twice & is_late
