"""A blend of methods whose weights come from cross-validation inside the training data.

What is held out inside is what will be new outside: applications where an application is predicted that was never run,
machines where a machine is predicted that ran its benchmark only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import BY_UNSEEN, Unseen
from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common.contract import PairPredictor

_STEPS = 5
"""Weights are fifths: finer ones only fit the noise of a few held-out applications or machines."""
_CAUTIONS = (0.0, 0.1, 0.2, 0.3)
_AS_GOOD = 1.01
"""Among blends as good as the best within a hundredth of its error, the most even one is taken."""
_ROUNDING = 1e-12
"""Errors that differ by less are equal: where one is 0, the others are some rounding above it."""


FitComponent = Callable[[str, PairedSamples], PairPredictor]


@dataclass(frozen=True)
class Blend:
    """Weighted mean of the components' log relative times, less a caution."""

    components: dict[str, PairPredictor]
    weights: dict[str, float]
    caution: float
    """Times the mean squared benchmark log ratio of the pair: the more machines differ, the less is known, and of an
    uncertain ratio the value with the smallest expected relative error lies below its median, by about its variance."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        found = [w * self.components[name].predict(samples, examples) for name, w in self.weights.items() if w > 0]
        return np.asarray(np.sum(found, axis=0) - self.caution * distance(samples, examples))


@dataclass(frozen=True)
class HeldOutFold:
    """Predictions of the components for one inner fold."""

    found: Floats
    """Components x examples."""
    true: Floats
    distance: Floats


def fit_blend(samples: PairedSamples, unseen: Unseen, names: Sequence[str], fit: FitComponent) -> Blend:
    """Fit all components on `samples`, and their weights on folds within it."""
    weights, caution = choose_weights(held_out_predictions(samples, unseen, names, fit), len(names))
    fitted = {name: fit(name, samples) for name in names}
    return Blend(fitted, dict(zip(names, map(float, weights), strict=True)), caution)


def held_out_predictions(
    samples: PairedSamples, unseen: Unseen, names: Sequence[str], fit: FitComponent
) -> list[HeldOutFold]:
    """One for each application or machine that can be held out; none where there are too few."""
    try:
        folds = list(BY_UNSEEN[unseen](samples))
    except BadInputError:
        return []
    return [
        HeldOutFold(
            np.stack([fit(name, train).predict(samples, test) for name in names]),
            samples.log_relative_time(test),
            distance(samples, test),
        )
        for train, test in ((fold.train, fold.some_of_test()) for fold in folds)
    ]


def distance(samples: PairedSamples, examples: Examples) -> Floats:
    """Mean squared benchmark log ratio of each example's pair, at most 1; 0 without a benchmark.

    Without the bound a caution on machines of different kinds would buy a small relative error by answering 0.
    """
    rows = samples.benchmark_rows()
    if not len(rows):
        return np.zeros(len(examples))
    squares = (samples.benchmark_log_ratios(rows) ** 2).mean(axis=2)
    return np.asarray(np.minimum(squares, 1.0)[examples.source, examples.target])


def choose_weights(held_out: Sequence[HeldOutFold], count: int) -> tuple[Floats, float]:
    """Non-negative weights with sum 1, and the caution, with the smallest mean error |predicted / true - 1|.

    With nothing held out all components count the same.
    """
    if not held_out:
        return np.full(count, 1 / count), 0.0
    grid = [np.array(g) / _STEPS for g in product(range(_STEPS + 1), repeat=count) if sum(g) == _STEPS]
    tried = [(weights, caution) for caution in _CAUTIONS for weights in grid]
    errors = [float(np.mean([_error(fold, *blend) for fold in held_out])) for blend in tried]
    good = [blend for blend, error in zip(tried, errors, strict=True) if error <= _AS_GOOD * min(errors) + _ROUNDING]
    return min(good, key=lambda blend: float(np.sum(blend[0] ** 2)))


def choose_by_log_error(held_out: Sequence[HeldOutFold], count: int) -> Floats:
    """Non-negative weights with sum 1 and the smallest mean over folds of the root mean square log error.

    With nothing held out all components count the same.
    """
    if not held_out:
        return np.full(count, 1 / count)
    residuals = [fold.found - fold.true for fold in held_out]
    squares = np.stack([found @ found.T / found.shape[1] for found in residuals])
    grid = np.array([g for g in product(range(_STEPS + 1), repeat=count) if sum(g) == _STEPS]) / _STEPS
    errors = np.sqrt(np.maximum(np.einsum("gi,fij,gj->gf", grid, squares, grid), 0.0)).mean(axis=1)
    good = grid[errors <= _AS_GOOD * errors.min() + _ROUNDING]
    return np.asarray(good[np.argmin((good**2).sum(axis=1))])


def log_error(fold: HeldOutFold, weights: Floats) -> float:
    """Root mean square log error of a blend on a fold."""
    return float(np.sqrt(np.mean((weights @ fold.found - fold.true) ** 2)))


def _error(fold: HeldOutFold, weights: Floats, caution: float) -> float:
    return float(np.abs(np.expm1(weights @ fold.found - caution * fold.distance - fold.true)).mean())
