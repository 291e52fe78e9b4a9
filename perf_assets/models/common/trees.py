"""Fitted ensembles of scikit-learn's regression trees as plain arrays, so that they are stored without pickle."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Floats
from perf_assets.models.common import archive

_LEAF = -1


@dataclass(frozen=True)
class TreeEnsemble:
    """Nodes of all trees one after another; children are positions in the same arrays, -1 for none."""

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    """A number a node, or one for each output."""
    weights: Floats
    """Weight of each tree."""
    combine: Literal["mean", "median"]
    """Weighted mean (forests, bagging), or weighted median (AdaBoost)."""

    @classmethod
    def of(cls, model: Any) -> "TreeEnsemble":
        """A fitted random forest, bagging or AdaBoost regressor."""
        trees = [estimator.tree_ for estimator in model.estimators_]
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        is_median = hasattr(model, "estimator_weights_")
        weights = model.estimator_weights_[: len(trees)] if is_median else np.ones(len(trees))

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees])

        def children(name: str) -> NDArray[np.int64]:
            parts = (getattr(t, name) for t in trees)
            return np.concatenate([np.where(p == _LEAF, _LEAF, p + s) for p, s in zip(parts, starts, strict=False)])

        return cls(
            roots=starts[:-1],
            feature=joined("feature"),
            threshold=joined("threshold"),
            left=children("children_left"),
            right=children("children_right"),
            value=joined("value")[:, 0, 0] if trees[0].n_outputs == 1 else joined("value")[:, :, 0],
            weights=np.asarray(weights, float),
            combine="median" if is_median else "mean",
        )

    def predict(self, features: Floats) -> Floats:
        """One number per row, or one for each output; features are compared in single precision, as in training."""
        rows = features.astype(np.float32)
        by_tree = np.stack([self._leaf_values(rows, root) for root in self.roots])
        if self.combine == "mean":
            return np.asarray(np.average(by_tree, axis=0, weights=self.weights))
        order = np.argsort(by_tree, axis=0)
        reached = np.cumsum(self.weights[order], axis=0)
        middle = (reached >= 0.5 * reached[-1]).argmax(axis=0)
        columns = np.arange(by_tree.shape[1])
        return np.asarray(by_tree[order[middle, columns], columns])

    def save(self, path: Path) -> None:
        """Store without pickle."""
        arrays = {name: array for name, array in vars(self).items() if name != "combine"}
        archive.save(path, {"combine": self.combine}, arrays)

    @classmethod
    def load(cls, path: Path) -> "TreeEnsemble":
        """Read what `save` wrote."""
        description, arrays = archive.load(path)
        return cls(**arrays, combine=description["combine"])

    def _leaf_values(self, rows: NDArray[np.float32], root: int) -> Floats:
        node = np.full(len(rows), root)
        moving = np.arange(len(rows))
        while len(moving):
            at = node[moving]
            inner = self.left[at] != _LEAF
            moving, at = moving[inner], at[inner]
            goes_left = rows[moving, self.feature[at]] <= self.threshold[at]
            node[moving] = np.where(goes_left, self.left[at], self.right[at])
        return np.asarray(self.value[node])
