"""Wall-time limits that jobs exceed as often as promised, from how repeated runs came out before.

Each run is compared with the median of the runs of the same thing before it: so much longer a run may be than what is
known when its limit is set. A quantile of these errors keeps its promise where runs scatter as they did; a normal
distribution does not (times have long tails), nor do errors around a median that the run itself is part of.
"""

import math
import statistics
from collections.abc import Iterable, Sequence


def forward_errors(repeated: Iterable[Sequence[float]]) -> list[float]:
    """Logarithms of run times over the median of those before; `repeated` are seconds of the same thing, in order."""
    return [
        math.log(seconds[place] / statistics.median(seconds[:place]))
        for seconds in repeated
        for place in range(1, len(seconds))
    ]


def exceeded_by(errors: Sequence[float], kill_rate: float) -> float:
    """The logarithm that a share of errors is above; with too few for that share, the largest is stretched.

    Stretched as exponentially distributed errors ask for, as in `cross_conformal`.
    """
    ordered, count = sorted(errors), len(errors)
    place = math.ceil((1 - kill_rate) * (count + 1))
    if place <= count:
        return ordered[place - 1]
    return max(ordered[-1], 0.0) * math.log(kill_rate) / math.log(1 / (count + 1))
