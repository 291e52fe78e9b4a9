"""Baselines of a model of scaling: nearest measured width, power law, Amdahl's law, Extra-P's form.

All but the first are of the form log t = level + sum_i a_i log(x_i) + log(1 - r + r h(w)): other parameters enter as a
power law, the width w by a shape h, which is 1 at the smallest width, with a share r. Amdahl's h is 1/w; Extra-P's
normal form tries powers and logarithms and takes what fits the runs best.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from perf_assets.features.samples import Floats
from perf_assets.models.scaling.model import Parameters

Predict = Callable[[Floats], Floats]
Fit = Callable[[Parameters, Floats, Floats, int], Predict]
"""Parameters, values (rows x parameters), seconds, which column is the width; the result predicts seconds of rows."""

_SHARES = np.linspace(0.0, 1.0, 41)
_POWERS = (-2.0, -1.5, -1.0, -2 / 3, -0.5, -1 / 3, 0.0, 1 / 3, 0.5, 2 / 3, 1.0, 1.5, 2.0)
_LOGARITHMS = (0, 1, 2)
_RIDGE = 1e-6
_OTHER_PARAMETER_WEIGHT = 100.0
"""Weight of another parameter relative to the width in the search for the nearest run."""


def nearest_width(parameters: Parameters, values: Floats, seconds: Floats, width: int) -> Predict:
    """Geometric mean of runs that differ in the width only, at the nearest measured width."""
    weights = np.where(np.arange(values.shape[1]) == width, 1.0, _OTHER_PARAMETER_WEIGHT)
    known, logs = parameters.standardised(values) * weights, np.log(seconds)

    def predict(asked: Floats) -> Floats:
        distance = ((parameters.standardised(asked) * weights)[:, None, :] - known[None]) ** 2
        total = distance.sum(axis=2)
        is_nearest = total <= total.min(axis=1, keepdims=True) + _RIDGE
        return np.asarray(np.exp((is_nearest * logs).sum(axis=1) / is_nearest.sum(axis=1)))

    return predict


def power_law(parameters: Parameters, values: Floats, seconds: Floats, width: int) -> Predict:
    """A power of every parameter."""
    del width  # a parameter like the others
    return _regressed(parameters.standardised, parameters.standardised(values), np.log(seconds))[0]


def amdahl(parameters: Parameters, values: Floats, seconds: Floats, width: int) -> Predict:
    """A part that is divided by the width, and a part that is not."""
    return _best_shape(parameters, values, seconds, width, [(-1.0, 0)])


def extra_p(parameters: Parameters, values: Floats, seconds: Floats, width: int) -> Predict:
    """A constant, and a power of the width times a power of its logarithm."""
    return _best_shape(parameters, values, seconds, width, list(product(_POWERS, _LOGARITHMS)))


FORMS: dict[str, Fit] = {
    "nearest width": nearest_width,
    "power law": power_law,
    "Amdahl": amdahl,
    "Extra-P": extra_p,
}


def _best_shape(
    parameters: Parameters, values: Floats, seconds: Floats, width: int, shapes: Sequence[tuple[float, int]]
) -> Predict:
    smallest = float(values[:, width].min())

    def others(asked: Floats) -> Floats:
        return np.delete(parameters.standardised(asked), width, axis=1)

    def shape(asked: Floats, power: float, logarithms: int, share: float) -> Floats:
        ratio = np.maximum(asked[:, width] / smallest, 1e-6)
        logarithm = np.maximum(1 + np.log2(ratio), 1e-3)  # 1 at the smallest width
        return np.asarray(np.log(np.maximum(1 - share + share * ratio**power * logarithm**logarithms, 1e-9)))

    known, logs = others(values), np.log(seconds)
    best: tuple[float, Predict, tuple[float, int, float]] | None = None
    for power, logarithms in shapes:
        for share in _SHARES:
            how = power, logarithms, float(share)
            base, error = _regressed(others, known, logs - shape(values, *how))
            if best is None or error < best[0]:
                best = error, base, how
    assert best is not None, "there is a shape"
    _, base_law, chosen = best
    return lambda asked: base_law(asked) * np.exp(shape(asked, *chosen))


def _regressed(inputs: Callable[[Floats], Floats], known: Floats, logs: Floats) -> tuple[Predict, float]:
    """Linear regression of logarithms, and its mean squared error."""
    design = np.column_stack([np.ones(len(known)), known])
    gram = design.T @ design + _RIDGE * len(known) * np.eye(design.shape[1])
    weights = np.linalg.solve(gram, design.T @ logs)

    def predict(asked: Floats) -> Floats:
        return np.asarray(np.exp(np.column_stack([np.ones(len(asked)), inputs(asked)]) @ weights))

    return predict, float(np.mean((design @ weights - logs) ** 2))
