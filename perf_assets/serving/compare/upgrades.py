"""Costs or gains of an upgrade of a machine's software: times of the same configurations before and after.

Applications that ran with both are compared by their own runs. Those that did not are taken to be one more of the
applications that did. Intervals hold 90%, and are as wide as few runs make them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perf_assets.core.comparison import Estimate
from perf_assets.core.environment import is_meant
from perf_assets.core.errors import BadInputError, UnknownError, listed
from perf_assets.core.tables.runs import ENVIRONMENTS, TIMED_RUNS
from perf_assets.features.samples import Floats
from perf_assets.serving.compare.workloads import shares
from perf_assets.storage.lake import Lake
from perf_assets.workflows.fleet import open_warehouse

_DRAWS = 20_000
_LARGEST_LOG_RATIO = 100.0
"""Logarithm of a ratio that nobody will see."""
_INTERVAL = (0.05, 0.95)
_TIMES = f"""
    SELECT app, environment, configuration, median(ln(seconds)) AS log_seconds FROM {TIMED_RUNS}
    WHERE machine = ? AND seconds > 0 GROUP BY ALL ORDER BY ALL
"""
_ENVIRONMENTS = f"SELECT * FROM {ENVIRONMENTS.name} WHERE machine = ? ORDER BY app, newest_at DESC, environment"


@dataclass(frozen=True)
class ComparedSoftware:
    """An application before and after."""

    app: str
    weight_ratio: float
    """Its share of the portfolio."""
    before: str
    after: str
    """Environment after; empty where it did not run with it."""
    relative_time: Estimate
    """Time after / time before: above 1 is slower."""
    configurations: int
    """Configurations that ran with both; 0 where the other applications speak for it."""


@dataclass(frozen=True)
class Upgrade:
    """A portfolio before and after."""

    machine: str
    relative_time: Estimate
    """Mean of those of the applications by their weights."""
    applications: tuple[ComparedSoftware, ...]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as a dictionary, for JSON."""
        return asdict(self)


def compare_environments(
    lake: Lake, weights: Mapping[str, float], machine: str, before: str | None = None, after: str | None = None
) -> Upgrade:
    """Compare two environments of a machine for a portfolio.

    `before` and `after` are parts of an environment's line, or its digest; by default the one that counts and the
    newest other one, of each application.
    """
    warehouse = open_warehouse(lake)
    known, times = warehouse.frame(_ENVIRONMENTS, [machine]), warehouse.frame(_TIMES, [machine])
    portfolio = shares(weights)
    for app in portfolio:
        if app not in set(known["app"]):
            apps = listed(sorted(known["app"].unique())) or "nothing yet"
            raise UnknownError(f"no run of {app} on {machine} is in the warehouse: there is {apps}")
    chosen = {str(app): _choose(rows, before, after) for app, rows in known.groupby("app")}
    if not any(pair[1] for pair in chosen.values()):
        there = listed([f"{text!r}" for text in dict.fromkeys(known["environment"])])
        raise BadInputError(f"{machine} has no two environments to compare: there is {there}")
    of_app = {app: _log_ratios(times[times["app"] == app], *pair) for app, pair in chosen.items()}
    draws = estimated({app: ratios for app, ratios in of_app.items() if len(ratios)}, list(portfolio))
    applications = tuple(
        ComparedSoftware(app, weight, chosen[app][0], chosen[app][1], _estimate(draws[app]), len(of_app[app]))
        for app, weight in portfolio.items()
    )
    mean = np.asarray(sum(weight * np.exp(draws[app]) for app, weight in portfolio.items()))
    return Upgrade(machine, _estimate(np.log(mean)), applications)


def estimated(measured: Mapping[str, Floats], apps: Sequence[str]) -> dict[str, Floats]:
    """Draws of the mean log ratio of applications, from log ratios of configurations of those that were measured.

    Configurations of an application differ by as much as those of the others (pooled); an application that was not
    measured differs from the mean of the others as they differ among themselves.
    """
    freedom = sum(len(ratios) - 1 for ratios in measured.values())
    if freedom < 1:
        raise BadInputError(
            "not one application has two configurations that ran with both environments: measure some of them again"
        )
    spread = math.sqrt(sum(float(((ratios - ratios.mean()) ** 2).sum()) for ratios in measured.values()) / freedom)
    means = np.array([ratios.mean() for ratios in measured.values()])
    generator = np.random.default_rng(0)
    draws = {}
    for app in apps:
        if app in measured:
            width, degrees = spread / math.sqrt(len(measured[app])), freedom
            centre = float(measured[app].mean())
        elif len(means) > 1:
            width, degrees = float(means.std(ddof=1)) * math.sqrt(1 + 1 / len(means)), len(means) - 1
            centre = float(means.mean())
        else:
            only = next(iter(measured))
            raise BadInputError(f"{app} did not run with both environments, and only {only} did: measure it, too")
        # Few runs have tails beyond what a number can hold.
        draws[app] = np.clip(
            centre + width * generator.standard_t(degrees, _DRAWS), -_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO
        )
    return draws


def _choose(rows: pd.DataFrame, before: str | None, after: str | None) -> tuple[str, str]:
    """Environments of an application that are meant; empty where it has none.

    `rows` are of the application, the newest first; of several, the default comes before others.
    """
    ordered = rows.sort_values("is_default", ascending=False, kind="stable")
    if before is not None:
        ordered = ordered[_is_meant(ordered, before)]
    elif after is not None:
        ordered = ordered[~_is_meant(ordered, after)]
    old = "" if ordered.empty else str(ordered["environment"].iloc[0])
    others = rows[rows["environment"] != old]
    second = others if after is None else others[_is_meant(others, after)]
    return old, "" if second.empty else str(second["environment"].iloc[0])


def _is_meant(rows: pd.DataFrame, text: str) -> "pd.Series[bool]":
    return rows["environment"].map(partial(is_meant, text)).astype(bool)


def _log_ratios(rows: pd.DataFrame, before: str, after: str) -> Floats:
    """Log(time after / time before) of the configurations that have both."""
    times = {name: of.set_index("configuration")["log_seconds"] for name, of in rows.groupby("environment")}
    if before not in times or after not in times:
        return np.empty(0)
    return (times[after] - times[before]).dropna().to_numpy(float)


def _estimate(draws: Floats) -> Estimate:
    lower, upper = np.exp(np.quantile(draws, _INTERVAL))
    return Estimate(float(np.exp(np.median(draws))), float(lower), float(upper))
