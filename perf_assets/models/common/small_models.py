"""Models of few rows that are plain arrays once fitted: linear, Gaussian process, nearest neighbours, forests.

Each takes rows x standardised features.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats
from perf_assets.features.standardise import Scaler
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.averaged_gp import AveragedGp, Inputs, squared_distances
from perf_assets.models.common.trees import Forest, boosted_forest, forest_of

_PENALTIES = np.logspace(-2, 4, 13)
_NEIGHBOURS = (1, 2, 3, 5, 8)
_TREES = 40


@dataclass(frozen=True)
class Linear:
    """Weighted sum; without weights it is a constant."""

    weights: Floats
    intercept: float

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""
        return np.asarray(inputs @ self.weights + self.intercept)


@dataclass(frozen=True)
class Neighbours:
    """Mean of the nearest training rows, the nearer ones counting more."""

    inputs: Floats
    target: Floats
    count: int

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""
        return _nearest(np.sqrt(squared_distances(inputs, self.inputs)), self.target, self.count)


@dataclass(frozen=True, eq=False)
class Averaged:
    """Gaussian processes averaged by their evidence, which look at the rows alone."""

    process: AveragedGp

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""
        return self.process.predict(Inputs.alone(inputs))


SmallModel = Linear | Neighbours | Forest | Averaged


def fit_mean(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """The mean of the rows."""
    return Linear(np.zeros(inputs.shape[1]), float(target.mean()))


def fit_ridge(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Fit a ridge regression."""
    return ridge_with_held_out(inputs, target)[0]


def ridge_with_held_out(inputs: Floats, target: Floats) -> tuple[Linear, Floats]:
    """Ridge regression with the penalty of the smallest leave-one-out error, and its leave-one-out predictions."""
    middle, centre = inputs.mean(axis=0), float(target.mean())
    centred, wanted = inputs - middle, target - centre
    values, vectors = np.linalg.eigh(centred @ centred.T)
    values = np.maximum(values, 0)
    projected = vectors.T @ wanted
    count = len(target)
    error, dual, residual = np.inf, wanted, wanted
    for penalty in _PENALTIES:
        tried = vectors @ (projected / (values + penalty))
        diagonal = (vectors**2) @ (1 / (values + penalty))
        # Leaving a row out also moves the mean: one degree of freedom more, shared by all rows.
        left_out = tried / np.maximum(diagonal - 1 / (count * penalty), 1e-12)
        if float(np.mean(left_out**2)) < error:
            error, dual, residual = float(np.mean(left_out**2)), tried, left_out
    weights = centred.T @ dual
    return Linear(weights, centre - float(middle @ weights)), target - residual


def fit_gp(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Fit Gaussian processes, averaged by their evidence."""
    return Averaged(AveragedGp.fit(Inputs.alone(inputs), target))


def fit_neighbours(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Nearest neighbours; their number by leave-one-out error."""
    distances = np.sqrt(squared_distances(inputs, inputs))
    np.fill_diagonal(distances, np.inf)
    possible = [count for count in _NEIGHBOURS if count < len(target)] or [1]
    errors = [float(np.mean((_nearest(distances, target, count) - target) ** 2)) for count in possible]
    return Neighbours(inputs, target, possible[int(np.argmin(errors))])


def fit_extra_trees(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Fit extremely randomised trees."""
    from sklearn.ensemble import ExtraTreesRegressor

    model = ExtraTreesRegressor(_TREES, max_features=0.5, n_jobs=1, random_state=seed)
    return forest_of(model.fit(inputs.astype(np.float32), target))


def fit_xgboost(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Fit boosted trees."""
    return _boosted(inputs, target, seed, trees=150, depth=4)


def fit_deep_trees(inputs: Floats, target: Floats, seed: int = 0) -> Forest:
    """Boosted trees for hundreds of rows and more."""
    return _boosted(inputs, target, seed, trees=300, depth=6)


def _boosted(inputs: Floats, target: Floats, seed: int, *, trees: int, depth: int) -> Forest:
    from xgboost import XGBRegressor

    model = XGBRegressor(
        n_estimators=trees,
        max_depth=depth,
        learning_rate=0.1,
        colsample_bytree=0.5,
        subsample=0.8,
        max_bin=64,
        tree_method="hist",
        # Threads wait for each other at every level of a tree: on a busy machine two take 5 to 20 times as long as one.
        n_jobs=1,
        random_state=seed,
    )
    centre = float(target.mean())
    model.set_params(base_score=0.0).fit(inputs.astype(np.float32), target - centre)
    return boosted_forest(model, centre)


FIT_SMALL: dict[str, Callable[[Floats, Floats, int], SmallModel]] = {
    "mean": fit_mean,
    "ridge": fit_ridge,
    "gp": fit_gp,
    "knn": fit_neighbours,
    "extra_trees": fit_extra_trees,
    "xgboost": fit_xgboost,
}
"""Fits by name, the simplest first."""


def _nearest(distances: Floats, target: Floats, count: int) -> Floats:
    nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
    weights = 1 / (np.take_along_axis(distances, nearest, axis=1) + 1e-6)
    return np.asarray((weights * target[nearest]).sum(axis=1) / weights.sum(axis=1))


@dataclass(frozen=True, eq=False)
class ScaledSmallModel(Stored):
    """A small model with the scaling of its inputs."""

    scaler: Scaler
    model: SmallModel

    def scaled(self, counters: Floats) -> Floats:
        """Standardise rows x counters as measured."""
        return self.scaler.transform(counters)

    def predict(self, counters: Floats) -> Floats:
        """Predict from rows x counters as measured."""
        return self.model.predict(self.scaled(counters))
