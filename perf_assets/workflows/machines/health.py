"""Performance of machines against their own past, from RAJAPerf runs: stored, and in words."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from perf_assets.core.site import load_site
from perf_assets.core.tables.health import CACHE, COMPUTE, CORE, DEVICE, HEALTH, LAUNCH, MEMORY, NODE, OTHER
from perf_assets.storage.results import drop_part, rows_of, store
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd

FALSE_ALARMS = 0.01
"""Chance of an alarm, at any time, for a machine on which nothing changes."""
_GROUPS = 12
"""Most groups of kernels of a setting: four kinds in three places."""
_RECENT = 3
LEAST = 0.02
"""Smallest change of the time that is reported."""
_QUANTITIES = {
    MEMORY: "memory bandwidth",
    CACHE: "cache bandwidth",
    COMPUTE: "compute speed",
    LAUNCH: "rate of kernel launches",
    OTHER: "speed of other kernels",
}
_PLACES = {CORE: " of one core", NODE: "", DEVICE: " of the GPU"}


@dataclass(frozen=True)
class SpeedChange:
    """A group of kernels that takes another time than it should."""

    setting: str
    place: str
    kind: str
    since: date
    time_ratio: float
    """Seconds now over seconds before."""
    is_of_software: bool
    """Whether the software of the runs changed with it."""

    @property
    def text(self) -> str:
        """`memory bandwidth fell by 8% since 2026-11-03`."""
        word = "fell" if self.time_ratio > 1 else "rose"
        text = f"{_QUANTITIES[self.kind]}{_PLACES[self.place]} {word} by {abs(1 - 1 / self.time_ratio):.0%}"
        return f"{text} since {self.since}{', with other software' if self.is_of_software else ''}"


@dataclass(frozen=True)
class MachineHealth:
    """Changes on a machine, greatest first."""

    changes: tuple[SpeedChange, ...] = ()

    @classmethod
    def of(cls, fleet: Fleet, machine: str) -> "MachineHealth":
        """Stored health of a machine."""
        rows = rows_of(fleet.lake, HEALTH, machine)
        accepted = load_site(fleet.lake.root).health.accepted.get(machine)
        return cls() if rows is None else cls.of_periods(rows, accepted)

    @classmethod
    def of_periods(cls, rows: "pd.DataFrame", accepted: date | None = None) -> "MachineHealth":
        """Health of a machine from its periods; changes up to the accepted day count as normal."""
        return cls(tuple(_changes(rows, accepted)))

    @property
    def text(self) -> str:
        """All of it in one sentence; empty where nothing changed."""
        if not self.changes:
            return ""
        # One sentence per group of kernels: that of the setting in which it changed most.
        greatest = {(change.place, change.kind): change.text for change in self.changes[::-1]}
        shown, more = list(greatest.values())[:-4:-1], len(greatest) - 3
        return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def follow_health(fleet: Fleet, machine: str) -> "pd.DataFrame | None":
    """Cut a machine's RAJAPerf runs where they changed, and store the periods; None where there are too few runs."""
    from perf_assets.features.fleet.benchmark_history import HISTORY_QUERY, levels, with_kinds

    history = fleet.warehouse.frame(HISTORY_QUERY, {"machine": machine})
    rows = periods_of(levels(with_kinds(history))) if len(history) else history
    if rows.empty:
        if drop_part(fleet.lake, HEALTH, machine):
            fleet.warehouse.load_results(HEALTH)
        return None
    rows = rows.assign(machine=machine, is_simulated=bool(history["is_simulated"].any()))
    store(fleet.lake, fleet.warehouse, HEALTH, rows, machine)
    return rows


def periods_of(levels: "pd.DataFrame") -> "pd.DataFrame":
    """Periods of every group, from its levels in every run."""
    import numpy as np
    import pandas as pd

    from perf_assets.models.common.change_points import periods

    rows: list[dict[str, Any]] = []
    # The settings that began first have the largest shares of the false alarms, 1 / (n (n + 1)), and all together one.
    settings = levels.groupby("setting")["collected_at"].min().sort_values(kind="stable").index.tolist()
    for (setting, place, kind), group in levels.groupby(["setting", "place", "kind"]):
        number = settings.index(setting) + 1
        allowed = FALSE_ALARMS / (_GROUPS * number * (number + 1))
        ordered = group.sort_values(["collected_at", "run"])
        for period in periods(ordered["level"].to_numpy(), allowed):
            part = ordered.iloc[period.begin : period.end]
            rows.append(
                {
                    "setting": setting,
                    "place": place,
                    "kind": kind,
                    "began_at": part["collected_at"].iloc[0],
                    "newest_at": part["collected_at"].iloc[-1],
                    "runs_count": len(part),
                    "kernels_count": int(part["kernels_count"].max()),
                    "time_ratio": float(np.exp(part["level"].median())),
                    "recent_time_ratio": float(np.exp(part["level"].iloc[-_RECENT:].median())),
                    "log10_evidence": period.log_evidence / math.log(10),
                    "environment": part["environment"].iloc[0],
                }
            )
    return pd.DataFrame(rows)


def _changes(rows: "pd.DataFrame", accepted: date | None) -> Iterator[SpeedChange]:
    """Groups whose last period differs from the one that is as it should be: the first, or that of the accepted day."""
    changes = []
    for (setting, place, kind), group in rows.sort_values("began_at").groupby(["setting", "place", "kind"]):
        begun = [day <= accepted for day in group["began_at"].dt.date] if accepted else []
        usual = max(sum(begun) - 1, 0)
        now, before = group.iloc[-1], group.iloc[usual]
        change = math.log(now["time_ratio"] / before["time_ratio"])
        recent = math.log(now["recent_time_ratio"] / before["time_ratio"])
        # A machine that was mended is well again before there are enough runs to say so for sure.
        if abs(change) < math.log1p(LEAST) or abs(recent) < abs(change) / 2 or recent * change < 0:
            continue
        logs = [math.log(ratio / before["time_ratio"]) for ratio in group["time_ratio"]]
        first = len(group) - 1
        while first - 1 > usual and logs[first - 1] * change > 0 and abs(logs[first - 1]) >= abs(change) / 2:
            first -= 1
        changes.append(
            SpeedChange(
                setting=str(setting),
                place=str(place),
                kind=str(kind),
                since=group["began_at"].iloc[first].date(),
                time_ratio=math.exp(change),
                is_of_software=group["environment"].iloc[first] != group["environment"].iloc[first - 1],
            )
        )
    yield from sorted(changes, key=lambda change: -abs(math.log(change.time_ratio)))
