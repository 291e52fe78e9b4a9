"""Fitted ensembles of regression trees as plain arrays, so that they are stored without pickle and quick to ask."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Floats
from perf_assets.models.common.archive import Stored

_ROWS_AT_ONCE = 4096
"""Rows that are answered at once: their nodes stay in cache."""


@dataclass(frozen=True, eq=False)
class Forest(Stored):
    """Trees side by side, padded to the same number of nodes; a leaf is its own child."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    """A row whose feature is below goes to the left."""
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[Any]
    """Trees x nodes; trees x nodes x outputs where leaves hold vectors."""
    depth: int
    combine: Literal["sum", "mean", "median"]
    """Boosted trees add up, forests and bagging are a mean, AdaBoost a weighted median."""
    base: float = 0.0
    """Added to the sum."""
    weights: Floats | None = None
    """Weight of each tree in the median."""

    def predict(self, inputs: Floats) -> Floats:
        """One number per row, or one for each output; features are compared in single precision, as in training."""
        rows = inputs.astype(np.float32)
        return np.concatenate(
            [self._predict(rows[start : start + _ROWS_AT_ONCE]) for start in range(0, max(len(rows), 1), _ROWS_AT_ONCE)]
        )

    def _predict(self, rows: NDArray[np.float32]) -> Floats:
        values = self.value[np.arange(len(self.feature)), self._leaves(rows)]
        if self.combine == "sum":
            return np.asarray(self.base + values.sum(axis=1, dtype=float))
        by_tree = np.ascontiguousarray(values.swapaxes(0, 1))
        if self.combine == "mean":
            return np.asarray(by_tree.sum(axis=0) / len(by_tree))
        assert self.weights is not None, "a median of trees has weights"
        order = np.argsort(by_tree, axis=0)
        reached = np.cumsum(self.weights[order], axis=0)
        middle = (reached >= 0.5 * reached[-1]).argmax(axis=0)
        columns = np.arange(by_tree.shape[1])
        return np.asarray(by_tree[order[middle, columns], columns])

    def _leaves(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        """Rows x trees: the leaf of each row. Trees may be unbalanced: only rows that are not in a leaf move on."""
        count, nodes = self.feature.shape
        of_tree = np.tile(np.arange(count, dtype=np.int32) * nodes, len(rows))
        of_row = np.repeat(np.arange(len(rows)) * rows.shape[1], count)
        node = of_tree.copy()
        moving = np.arange(len(node))
        for _ in range(self.depth):
            at = node[moving]
            goes_left = rows.take(of_row[moving] + self.feature.take(at)) < self.threshold.take(at)
            after = of_tree[moving] + np.where(goes_left, self.left.take(at), self.right.take(at))
            node[moving] = after
            moving = moving[after != at]
        return np.asarray(node - of_tree).reshape(len(rows), count)


def forest_of(model: Any) -> Forest:
    """Arrays of a fitted random forest, extremely randomised trees, bagging or AdaBoost of scikit-learn."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    is_median = hasattr(model, "estimator_weights_")
    nodes = []
    for tree in trees:
        # scikit-learn goes left at equality, a forest does not: the least single above the threshold.
        below = tree.threshold.astype(np.float32)
        below = np.where(below > tree.threshold, np.nextafter(below, np.float32(-np.inf)), below)
        threshold = np.nextafter(below, np.float32(np.inf))
        value = tree.value[:, 0, 0] if tree.n_outputs == 1 else tree.value[:, :, 0]
        nodes.append((tree.feature, threshold, tree.children_left, tree.children_right, value))
    weights = np.asarray(model.estimator_weights_[: len(trees)], float) if is_median else None
    return _forest(nodes, combine="median" if is_median else "mean", weights=weights)


def boosted_forest(model: Any, base: float) -> Forest:
    """Arrays of fitted boosted trees of XGBoost, whose base score is 0, and what is added to their sum."""
    stored = json.loads(bytes(model.get_booster().save_raw("json")))
    nodes = []
    for tree in stored["learner"]["gradient_booster"]["model"]["trees"]:
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        split = np.array(tree["split_conditions"], np.float32)
        nodes.append((np.array(tree["split_indices"]), split, left, right, np.where(left < 0, split, 0)))
    return _forest(nodes, combine="sum", base=base)


def _forest(trees: Sequence[tuple[NDArray[Any], ...]], **combined: Any) -> Forest:
    """Forest of feature, threshold, left, right (negative in a leaf) and value of every tree."""
    shape = (len(trees), max(len(tree[0]) for tree in trees))
    feature, left, right = (np.zeros(shape, np.int32) for _ in range(3))
    values = trees[0][-1]
    threshold, value = np.zeros(shape, np.float32), np.zeros((*shape, *values.shape[1:]), values.dtype)
    depth = 0
    for position, (features, thresholds, lefts, rights, own_values) in enumerate(trees):
        count = len(features)
        is_leaf, self_index = lefts < 0, np.arange(count)
        feature[position, :count] = np.where(is_leaf, 0, features)
        threshold[position, :count] = thresholds
        left[position, :count] = np.where(is_leaf, self_index, lefts)
        right[position, :count] = np.where(is_leaf, self_index, rights)
        value[position, :count] = own_values
        depth = max(depth, _depth(lefts, rights))
    return Forest(feature=feature, threshold=threshold, left=left, right=right, value=value, depth=depth, **combined)


def _depth(left: NDArray[Any], right: NDArray[Any]) -> int:
    nodes, depth = np.array([0]), 0
    while len(nodes := nodes[left[nodes] >= 0]):
        nodes = np.concatenate([left[nodes], right[nodes]])
        depth += 1
    return depth
