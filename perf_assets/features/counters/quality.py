"""Questions about configurations whose answer is a warning, never an error: as queries over a machine's rows."""

from dataclasses import dataclass

from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.core.tables.runs import CONFIGURATION, FEATURES, MERGED_COUNTERS

_CONFIGURATION = ", ".join(CONFIGURATION)
_ROBUST_SIGMA = 1.4826
"""Median absolute deviation to standard deviation, for normal data."""


@dataclass(frozen=True)
class Doubt:
    """A question whose answer is rows that a person should look at."""

    name: str
    table: str
    description: str
    threshold: float
    query: str
    """Rows beyond the threshold, worst first, with the parameters $machine and $threshold; `value` is the number."""


def _outliers() -> str:
    shares = [feature.name for feature in XAMM_FEATURES if feature.is_share]
    return f"""
        WITH long AS (
            UNPIVOT (SELECT {_CONFIGURATION}, {", ".join(shares)} FROM {FEATURES.name} WHERE machine = $machine)
            ON {", ".join(shares)} INTO NAME feature VALUE amount
        ), centre AS (
            SELECT app, feature, median(amount) AS middle, mad(amount) * {_ROBUST_SIGMA} AS spread, count(*) AS n
            FROM long GROUP BY app, feature
        )
        SELECT {_CONFIGURATION}, feature, abs(amount - middle) / spread AS value
        FROM long JOIN centre USING (app, feature)
        WHERE n >= 8 AND spread > 0 AND abs(amount - middle) / spread > $threshold ORDER BY value DESC
    """


DOUBTS = (
    Doubt(
        "no_outliers",
        FEATURES.name,
        "No intensity is far from the others of its application (robust z-score: distance from the median in units of "
        "1.4826 times the median absolute deviation)",
        10.0,
        _outliers(),
    ),
    Doubt(
        "small_spread",
        FEATURES.name,
        "Runs of one configuration take about the same time (slowest / fastest)",
        1.25,
        f"""
        SELECT {_CONFIGURATION}, wall_seconds_max / wall_seconds_min AS value FROM {FEATURES.name}
        WHERE machine = $machine AND wall_seconds_max / wall_seconds_min > $threshold ORDER BY value DESC
        """,
    ),
    Doubt(
        "little_multiplexing",
        MERGED_COUNTERS.name,
        "Counters were live most of the time (share of the run; below the threshold they are extrapolations)",
        0.8,
        f"""
        SELECT {_CONFIGURATION}, counter, running_ratio AS value FROM {MERGED_COUNTERS.name}
        WHERE machine = $machine AND running_ratio < $threshold ORDER BY value
        """,
    ),
)
