"""How often the landing zone is looked at."""

import os

from perf_assets.core.errors import BadInputError

VARIABLE = "PERF_ASSETS_LANDING_SECONDS"
_DEFAULT = 30


def landing_seconds() -> int:
    """Seconds between two looks of the landing sensor: `PERF_ASSETS_LANDING_SECONDS`, or 30."""
    given = os.environ.get(VARIABLE) or str(_DEFAULT)
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise BadInputError(f"{VARIABLE} is {given!r}: give a whole number of seconds, 1 or more")
    return int(given)
