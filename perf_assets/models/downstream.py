"""Regressors that take features to log relative time, behind one interface."""

from typing import Any, Protocol

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Floats
from perf_assets.models.threads import thread_budget

DOWNSTREAM = ("xgboost", "random_forest", "bagging", "adaboost")
MOST_EXAMPLES = 16_000
"""That trees are fitted on."""


class Regressor(Protocol):
    """What all of them do."""

    def fit(self, features: Floats, target: Floats, weights: Floats | None = None) -> "Regressor":
        """Learn from rows x features."""

    def predict(self, features: Floats) -> Floats:
        """One number a row."""


class _Wrapped:
    """A regressor of scikit-learn's interface."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def fit(self, features: Floats, target: Floats, weights: Floats | None = None) -> "_Wrapped":
        self._model.fit(features.astype(np.float32), target, sample_weight=weights)
        return self

    def predict(self, features: Floats) -> Floats:
        return np.asarray(self._model.predict(features.astype(np.float32)), float)


def make_regressor(name: str, seed: int) -> Regressor:
    """A regressor by name."""
    if name not in DOWNSTREAM:
        raise BadInputError(f"downstream model {name!r} is not known: use one of {', '.join(DOWNSTREAM)}")
    return _Wrapped(_xgboost(seed) if name == "xgboost" else _of_scikit_learn(name, seed))


def _xgboost(seed: int) -> object:
    from xgboost import XGBRegressor

    return XGBRegressor(
        n_estimators=200,
        max_depth=6,
        learning_rate=0.1,
        colsample_bytree=0.5,
        subsample=0.8,
        max_bin=64,
        tree_method="hist",
        n_jobs=thread_budget(),
        random_state=seed,
    )


def _of_scikit_learn(name: str, seed: int) -> object:
    from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    jobs = thread_budget()
    if name == "random_forest":
        return RandomForestRegressor(
            60, max_features=0.3, max_samples=0.3, min_samples_leaf=2, n_jobs=jobs, random_state=seed
        )
    if name == "bagging":
        tree = DecisionTreeRegressor(max_features=0.5, min_samples_leaf=2)
        return BaggingRegressor(tree, n_estimators=20, max_samples=0.3, n_jobs=jobs, random_state=seed)
    tree = DecisionTreeRegressor(max_depth=6, max_features=0.3)
    return AdaBoostRegressor(tree, n_estimators=30, random_state=seed)
