"""How often sensors look for news."""

import os

from perf_assets.core.errors import BadInputError

VARIABLE = "PERF_ASSETS_SENSOR_SECONDS"
_DEFAULT = 30


def sensor_seconds() -> int:
    """Seconds between two looks of a sensor: `PERF_ASSETS_SENSOR_SECONDS`, or 30."""
    given = os.environ.get(VARIABLE) or str(_DEFAULT)
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise BadInputError(f"{VARIABLE} is {given!r}: give a whole number of seconds, 1 or more")
    return int(given)
