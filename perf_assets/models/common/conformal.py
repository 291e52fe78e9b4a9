"""Intervals by cross-conformal prediction: as wide as held-out errors of the shots, wider where transfer is hard."""

from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats

_SEVERITY_WIDENING = 0.25
"""Share by which an interval is wider at the highest rescaled severity."""


@dataclass(frozen=True)
class Interval:
    """Half width around a prediction, in the units of the target (its logarithm, where that is predicted)."""

    half_width: float
    level: float
    """Nominal coverage."""

    def around(self, predicted: Floats) -> tuple[Floats, Floats]:
        """Lower and upper ends."""
        return predicted - self.half_width, predicted + self.half_width

    def coverage(self, predicted: Floats, true: Floats) -> float:
        """Share of true values inside."""
        return float(np.mean(np.abs(true - predicted) <= self.half_width))


def cross_conformal(held_out: Floats, target: Floats, severity: float = 0.0, level: float = 0.9) -> Interval:
    """Interval from predictions of the shots by fits that did not see them; `severity` is the rescaled one.

    With too few shots for the quantile, the largest error is stretched as exponentially distributed errors ask for.
    """
    errors = np.abs(target - held_out)
    count = len(errors)
    width = conformal_quantile(errors, level)
    if np.ceil(level * (count + 1)) > count:
        width *= float(np.log(1 - level) / np.log(1 / (count + 1)))
    return Interval(width * (1 + _SEVERITY_WIDENING * severity), level)


def conformal_quantile(errors: Floats, level: float) -> float:
    """Quantile for conformal intervals: of n errors the ceil(level (n + 1))-th; infinite where there is none."""
    position = int(np.ceil(level * (len(errors) + 1)))
    return float(np.sort(errors)[min(position, len(errors)) - 1]) if len(errors) else float("inf")
