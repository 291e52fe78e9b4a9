"""A blend of methods whose weights come from cross-validation inside the training data.

What is held out inside is what will be new outside: applications where an application is predicted that was never run,
machines where a machine is predicted that ran its benchmark only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.core.metrics import mape_of_logs
from perf_assets.features.folds import BY_UNSEEN, Fold, Unseen
from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common.blending import most_even, weight_grid
from perf_assets.models.common.contract import PairPredictor
from perf_assets.models.source.plain import PLAIN
from perf_assets.models.source.stored import StoredPredictor

_CAUTIONS = (0.0, 0.1, 0.2, 0.3)
FitComponent = Callable[[str, PairedSamples], PairPredictor]


@dataclass(frozen=True)
class Blend:
    """Weighted mean of the components' log relative times, less a caution."""

    components: Mapping[str, StoredPredictor]
    weights: Mapping[str, float]
    caution: float
    """Factor on the mean squared benchmark log ratio of a pair: the more machines differ, the less is known, and of an
    uncertain ratio the value with the smallest expected relative error lies below its median, by about its variance."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times of examples."""
        used = {name: w for name, w in self.weights.items() if w > 0}
        predictions = [self.components[name].predict(samples, examples) for name in used]
        return blended(predictions, list(used.values()), self.caution, distance(samples, examples))


def blended(predictions: Sequence[Floats], weights: Sequence[float] | Floats, caution: float, far: Floats) -> Floats:
    """Weighted mean of predictions, less the caution times how far the machines are apart."""
    return np.asarray(np.sum([w * one for w, one in zip(weights, predictions, strict=True)], axis=0) - caution * far)


@dataclass(frozen=True)
class HeldOutFold:
    """Predictions of the components for one inner fold."""

    predicted: Floats
    """Components x examples."""
    true: Floats
    distance: Floats


def fit_blend(samples: PairedSamples, unseen: Unseen, names: Sequence[str], fit: FitComponent) -> Blend:
    """Fit all components on `samples`, and their weights on folds within it."""
    weights, caution = choose_weights(held_out_folds(samples, unseen, names, fit), len(names), plain=plain_among(names))
    fitted = {name: cast(StoredPredictor, fit(name, samples)) for name in names}
    return Blend(fitted, dict(zip(names, map(float, weights), strict=True)), caution)


def fold_predictions(
    samples: PairedSamples, fold: Fold, names: Iterable[str], fit: FitComponent, test: Examples | None = None
) -> dict[str, Floats]:
    """Fit methods on what a fold leaves to learn from; their log relative times of what is held out."""
    train = fold.train
    return {name: fit(name, train).predict(samples, fold.test if test is None else test) for name in names}


def held_out_fold(samples: PairedSamples, fold: Fold, names: Sequence[str], fit: FitComponent) -> HeldOutFold:
    """Predictions of all components for some of what a fold holds out."""
    test = fold.some_of_test()
    predicted = fold_predictions(samples, fold, names, fit, test)
    by_component = np.stack([predicted[name] for name in names])
    return HeldOutFold(by_component, samples.log_relative_time(test), distance(samples, test))


def held_out_folds(
    samples: PairedSamples, unseen: Unseen, names: Sequence[str], fit: FitComponent
) -> list[HeldOutFold]:
    """One for each of the inner folds."""
    return [held_out_fold(samples, fold, names, fit) for fold in inner_folds(samples, unseen)]


def inner_folds(samples: PairedSamples, unseen: Unseen) -> list[Fold]:
    """Folds that weights are chosen on; none where too few applications or machines are there, so that all count alike.

    All count alike, too, where an application is new and no benchmark describes machines: the blend is made of answers
    from other applications then, and weights that fit the chance of a few applications are worse than even ones.
    """
    if unseen == "application" and not samples.is_benchmark.any():
        return []
    try:
        return list(BY_UNSEEN[unseen](samples))
    except BadInputError:
        return []


def distance(samples: PairedSamples, examples: Examples) -> Floats:
    """Mean squared benchmark log ratio of each example's pair, at most 1; 0 without a benchmark.

    Without the bound a caution on machines of different kinds would buy a small relative error by answering 0.
    """
    rows = samples.benchmark_rows()
    if not len(rows):
        return np.zeros(len(examples))
    squares = (samples.benchmark_log_ratios(rows) ** 2).mean(axis=2)
    return np.asarray(np.minimum(squares, 1.0)[examples.source, examples.target])


def choose_weights(
    held_out: Sequence[HeldOutFold], count: int, importance: Floats | None = None, plain: Sequence[int] = ()
) -> tuple[Floats, float]:
    """Non-negative weights with sum 1, and the caution, with the smallest mean error |predicted / true - 1|.

    The mean is over what was held out, each by its `importance` (all alike by default). Where weights chosen on other
    folds do no better than a plain answer alone (`plain` are their positions), that one answers: weights that fit the
    chance of a few folds are worse. With nothing held out all count the same.
    """
    if not held_out:
        return np.full(count, 1 / count), 0.0
    cautions = _CAUTIONS if any(fold.distance.any() for fold in held_out) else _CAUTIONS[:1]
    tried = [(weights, caution) for caution in cautions for weights in weight_grid(count)]
    weights = np.array([weights for weights, _ in tried])
    errors = np.array([[_error(fold, *blend) for fold in held_out] for blend in tried])
    if plain and len(held_out) > 1:
        alone = [number for number, (w, caution) in enumerate(tried) if caution == 0 and w[list(plain)].max() == 1]
        others = [np.delete(errors, fold, axis=1).mean(axis=1) for fold in range(len(held_out))]
        chosen = [errors[most_even(weights, known), fold] for fold, known in enumerate(others)]
        best = min(alone, key=lambda number: errors[number].mean())
        if errors[best].mean() <= np.mean(chosen):
            return tried[best]
    return tried[most_even(weights, np.average(errors, axis=1, weights=importance))]


def plain_among(names: Sequence[str]) -> list[int]:
    """Positions of plain answers."""
    return [position for position, name in enumerate(names) if name in PLAIN]


def choose_by_log_error(held_out: Sequence[HeldOutFold], count: int) -> Floats:
    """Non-negative weights with sum 1 and the smallest mean over folds of the root mean square log error.

    With nothing held out all components count the same.
    """
    if not held_out:
        return np.full(count, 1 / count)
    residuals = [fold.predicted - fold.true for fold in held_out]
    squares = np.stack([residual @ residual.T / residual.shape[1] for residual in residuals])
    grid = weight_grid(count)
    errors = np.sqrt(np.maximum(np.einsum("gi,fij,gj->gf", grid, squares, grid), 0.0)).mean(axis=1)
    return np.asarray(grid[most_even(grid, errors)])


def log_error(fold: HeldOutFold, weights: Floats) -> float:
    """Root mean square log error of a blend on a fold."""
    return float(np.sqrt(np.mean((weights @ fold.predicted - fold.true) ** 2)))


def _error(fold: HeldOutFold, weights: Floats, caution: float) -> float:
    return mape_of_logs(weights @ fold.predicted - caution * fold.distance - fold.true)
