"""How often does the drift test cry wolf in a year of nights, and how soon does it see a change?

Simulated: every night some runs of a machine land, and the champion's 90% intervals leave one in ten outside (a share
that is larger from a night on, where the machine has changed). The test looks every night at all runs since the
champion was made. `once` is the rule it replaces: the 99% quantile of the binomial, which holds for one look. A year
with one champion, and one in which a new champion takes over every month; runs of a night that share their luck
(`clumped`: each is as the one before with probability 1/2) break what both rules assume.

Last line: one JSON object.
"""

import argparse
import json
import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtrik

from perf_assets.models.target.promotion import most_outside

NIGHTS, PROMISED = 365, 0.10
CHANGES = (0.15, 0.20, 0.30, 0.50)
"""Shares outside after a change."""
CHANGED_AT = 60
"""Night of the change."""


def once(count: int) -> int:
    """Most runs outside at one look."""
    return math.ceil(bdtrik(0.99, count, PROMISED)) if count else 0


def allowed_by(rule: Callable[[int], int], most: int) -> np.ndarray:
    """What a rule allows, by number of runs."""
    return np.array([rule(count) for count in range(most + 1)])


def year(rng: np.random.Generator, a_night: float, share: float, *, is_clumped: bool) -> tuple[np.ndarray, np.ndarray]:
    """Runs, and runs outside, of each night; the share outside is another from the night of the change."""
    runs = rng.poisson(a_night, NIGHTS)
    nights = np.repeat(np.arange(NIGHTS), runs)
    outside = rng.random(len(nights)) < np.where(nights < CHANGED_AT, PROMISED, share)
    if is_clumped:
        same = (rng.random(len(nights)) < 0.5) & (np.diff(nights, prepend=-1) == 0)
        begins = np.maximum.accumulate(np.where(same, 0, np.arange(len(nights))))
        outside = outside[begins]
    return runs, np.bincount(nights[outside], minlength=NIGHTS)


def first_alarm(runs: np.ndarray, outside: np.ndarray, allowed: np.ndarray, every: int) -> int | None:
    """First night with an alarm, where a new champion takes over after so many nights; None without one."""
    for begin in range(0, NIGHTS, every):
        seen, counted = np.cumsum(runs[begin : begin + every]), np.cumsum(outside[begin : begin + every])
        alarms = np.flatnonzero(counted > allowed[seen])
        if len(alarms):
            return begin + int(alarms[0])
    return None


def main() -> None:
    """Simulate years."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=2000, help="simulated years of each kind")
    parser.add_argument("--quick", action="store_true", help="few years, for a try")
    given = parser.parse_args()
    years = 20 if given.quick else given.years
    rules = {"time-uniform": most_outside, "once": once}
    found: dict[str, dict[str, float]] = {}
    for a_night in (1.0, 5.0):
        tables = {name: allowed_by(rule, int(3 * a_night * NIGHTS)) for name, rule in rules.items()}
        for label, every, is_clumped in (
            ("one champion", NIGHTS, False),
            ("a champion a month", 30, False),
            ("one champion, clumped", NIGHTS, True),
        ):
            rng = np.random.default_rng(0)
            alarms = dict.fromkeys(rules, 0)
            for _ in range(years):
                runs, outside = year(rng, a_night, PROMISED, is_clumped=is_clumped)
                for name, allowed in tables.items():
                    alarms[name] += first_alarm(runs, outside, allowed, every) is not None
            row = {name: count / years for name, count in alarms.items()}
            found[f"{a_night:g} a night, {label}: years with a false alarm"] = row
        for share in CHANGES:
            rng = np.random.default_rng(1)
            nights: list[float] = []
            for _ in range(years // 4):
                runs, outside = year(rng, a_night, share, is_clumped=False)
                night = first_alarm(runs, outside, tables["time-uniform"], NIGHTS)
                nights.append(math.inf if night is None else max(0, night - CHANGED_AT))
            seen = [night for night in nights if math.isfinite(night)]
            row = {"seen": len(seen) / len(nights), "median nights": float(np.median(seen)) if seen else -1.0}
            found[f"{a_night:g} a night, {share:.0%} outside from night {CHANGED_AT}"] = row
    for what, row in found.items():
        print(f"{what:75s}", *(f"{name} {value:.3g}" for name, value in row.items()), sep="  ")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
