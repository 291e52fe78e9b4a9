"""Models of few rows that are plain arrays once fitted: linear, Gaussian process, nearest neighbours, forests.

Each takes rows x standardised features and is told by its kind; `restore` builds one from what was stored.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Floats
from perf_assets.features.standardise import Scaler
from perf_assets.models.common import archive
from perf_assets.models.common.averaged_gp import AveragedGp, Inputs, squared_distances

_PENALTIES = np.logspace(-2, 4, 13)
_NEIGHBOURS = (1, 2, 3, 5, 8)
_TREES = 40
_BATCH = 4096
"""Rows that a forest answers at once: their nodes stay in cache."""


class SmallModel(Protocol):
    """A fitted model."""

    kind: ClassVar[str]

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""

    def description(self) -> dict[str, Any]:
        """Everything that is not an array."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to store, by name."""


@dataclass(frozen=True)
class Linear:
    """Weighted sum; without weights it is a constant."""

    kind: ClassVar[str] = "linear"
    weights: Floats
    intercept: float

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""
        return np.asarray(inputs @ self.weights + self.intercept)

    def description(self) -> dict[str, Any]:
        """Everything that is not an array."""
        return {"intercept": self.intercept}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to store, by name."""
        return {"weights": self.weights}


@dataclass(frozen=True)
class Neighbours:
    """Mean of the nearest training rows, the nearer ones counting more."""

    kind: ClassVar[str] = "neighbours"
    inputs: Floats
    target: Floats
    count: int

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""
        return _nearest(np.sqrt(squared_distances(inputs, self.inputs)), self.target, self.count)

    def description(self) -> dict[str, Any]:
        """Everything that is not an array."""
        return {"count": self.count}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to store, by name."""
        return {"inputs": self.inputs, "target": self.target}


@dataclass(frozen=True)
class Forest:
    """Trees side by side, padded to the same number of nodes; a leaf is its own child."""

    kind: ClassVar[str] = "forest"
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    """A row whose feature is below goes to the left."""
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    base: float
    depth: int

    def predict(self, inputs: Floats) -> Floats:
        """Base plus the sum of all trees."""
        rows = inputs.astype(np.float32)
        return np.concatenate([self._predict(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH)])

    def _predict(self, rows: NDArray[np.float32]) -> Floats:
        trees = np.arange(len(self.feature))[None]
        node = np.zeros((len(rows), len(self.feature)), np.int32)
        of_row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            goes_left = rows[of_row, self.feature[trees, node]] < self.threshold[trees, node]
            node = np.where(goes_left, self.left[trees, node], self.right[trees, node])
        return np.asarray(self.base + self.value[trees, node].sum(axis=1, dtype=float))

    def description(self) -> dict[str, Any]:
        """Everything that is not an array."""
        return {"base": self.base, "depth": self.depth}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to store, by name."""
        names = ("feature", "threshold", "left", "right", "value")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Averaged:
    """Gaussian processes averaged by their evidence, which look at the rows alone."""

    kind: ClassVar[str] = "averaged_gp"
    process: AveragedGp

    def predict(self, inputs: Floats) -> Floats:
        """One number per row."""
        return self.process.predict(Inputs.alone(inputs))

    def description(self) -> dict[str, Any]:
        """Everything that is not an array."""
        return self.process.description()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays to store, by name."""
        return self.process.arrays()


_KINDS: dict[str, Any] = {"linear": Linear, "neighbours": Neighbours, "forest": Forest}


def restore(kind: str, description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> SmallModel:
    """A model from its kind and what `description` and `arrays` gave."""
    if kind == Averaged.kind:
        return Averaged(AveragedGp.restore(description, arrays))
    model: SmallModel = _KINDS[kind](**description, **arrays)
    return model


def fit_mean(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """The mean of the rows."""
    return Linear(np.zeros(inputs.shape[1]), float(target.mean()))


def fit_ridge(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Ridge regression."""
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
    """Gaussian processes, averaged."""
    return Averaged(AveragedGp.fit(Inputs.alone(inputs), target))


def fit_neighbours(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Nearest neighbours; their number by leave-one-out error."""
    distances = np.sqrt(squared_distances(inputs, inputs))
    np.fill_diagonal(distances, np.inf)
    possible = [count for count in _NEIGHBOURS if count < len(target)] or [1]
    errors = [float(np.mean((_nearest(distances, target, count) - target) ** 2)) for count in possible]
    return Neighbours(inputs, target, possible[int(np.argmin(errors))])


def fit_extra_trees(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Extremely randomised trees."""
    from sklearn.ensemble import ExtraTreesRegressor

    model = ExtraTreesRegressor(_TREES, max_features=0.5, n_jobs=1, random_state=seed)
    model.fit(inputs.astype(np.float32), target)
    trees = []
    for estimator in model.estimators_:
        tree = estimator.tree_
        # scikit-learn goes left at equality, a forest does not.
        threshold = np.nextafter(tree.threshold.astype(np.float32), np.float32(np.inf))
        trees.append((tree.feature, threshold, tree.children_left, tree.children_right, tree.value[:, 0, 0] / _TREES))
    return _forest(trees, 0.0)


def fit_xgboost(inputs: Floats, target: Floats, seed: int = 0) -> SmallModel:
    """Boosted trees."""
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
    stored = json.loads(bytes(model.get_booster().save_raw("json")))
    boosted_trees = []
    for tree in stored["learner"]["gradient_booster"]["model"]["trees"]:
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        split = np.array(tree["split_conditions"], np.float32)
        boosted_trees.append((np.array(tree["split_indices"]), split, left, right, np.where(left < 0, split, 0)))
    return _forest(boosted_trees, centre)


FIT_SMALL: dict[str, Callable[[Floats, Floats, int], SmallModel]] = {
    "mean": fit_mean,
    "ridge": fit_ridge,
    "gp": fit_gp,
    "knn": fit_neighbours,
    "extra_trees": fit_extra_trees,
    "xgboost": fit_xgboost,
}
"""Fits by name, the simplest first."""


def _forest(trees: Sequence[tuple[NDArray[Any], ...]], base: float) -> Forest:
    """Forest of feature, threshold, left, right (negative in a leaf) and value of every tree."""
    shape = (len(trees), max(len(tree[0]) for tree in trees))
    feature, left, right = (np.zeros(shape, np.int32) for _ in range(3))
    threshold, value = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    depth = 0
    for position, (features, thresholds, lefts, rights, values) in enumerate(trees):
        count = len(features)
        is_leaf, self_index = lefts < 0, np.arange(count)
        feature[position, :count] = np.where(is_leaf, 0, features)
        threshold[position, :count] = thresholds
        left[position, :count] = np.where(is_leaf, self_index, lefts)
        right[position, :count] = np.where(is_leaf, self_index, rights)
        value[position, :count] = np.where(is_leaf, values, 0)
        depth = max(depth, _depth(lefts, rights))
    return Forest(feature=feature, threshold=threshold, left=left, right=right, value=value, base=base, depth=depth)


def _depth(left: NDArray[Any], right: NDArray[Any]) -> int:
    nodes, depth = np.array([0]), 0
    while len(nodes := nodes[left[nodes] >= 0]):
        nodes = np.concatenate([left[nodes], right[nodes]])
        depth += 1
    return depth


def _nearest(distances: Floats, target: Floats, count: int) -> Floats:
    nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
    weights = 1 / (np.take_along_axis(distances, nearest, axis=1) + 1e-6)
    return np.asarray((weights * target[nearest]).sum(axis=1) / weights.sum(axis=1))


@dataclass(frozen=True, eq=False)
class ScaledSmallModel:
    """A small model with the scaling of its inputs."""

    scaler: Scaler
    model: SmallModel

    def scaled(self, counters: Floats) -> Floats:
        """Standardise rows x counters as measured."""
        return self.scaler.transform(counters)

    def predict(self, counters: Floats) -> Floats:
        """Predict from rows x counters as measured."""
        return self.model.predict(self.scaled(counters))

    def save(self, path: Path) -> None:
        """Store into a file, without pickle."""
        description = {"kind": self.model.kind, "settings": self.model.description()}
        archive.save(path, description, {**archive.prefixed("model_", self.model.arrays()), **self.scaler.arrays()})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        description, arrays = archive.load(path)
        model = restore(description["kind"], description["settings"], archive.part("model_", arrays))
        return cls(Scaler.from_arrays(arrays), model)
