"""Regressors that take features to log relative time, behind one interface."""

from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.features.samples import Floats
from perf_assets.infra.threads import thread_budget
from perf_assets.models.common.trees import TreeEnsemble

DOWNSTREAM = ("xgboost", "random_forest", "bagging", "adaboost")
MOST_EXAMPLES = 16_000
"""Examples that trees are fitted on."""
_BOOSTED_FILE = "xgboost.ubj"
_ENSEMBLE_FILE = "trees.npz"


class Regressor(Protocol):
    """What all of them do."""

    def fit(self, features: Floats, target: Floats, weights: Floats | None = None) -> Self:
        """Learn from rows x features."""

    def predict(self, features: Floats) -> Floats:
        """One number per row."""

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""


class _Boosted:
    """XGBoost."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def fit(self, features: Floats, target: Floats, weights: Floats | None = None) -> Self:
        self._model.fit(features.astype(np.float32), target, sample_weight=weights)
        return self

    def predict(self, features: Floats) -> Floats:
        return np.asarray(self._model.predict(features.astype(np.float32)), float)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._model.save_model(folder / _BOOSTED_FILE)


class _Ensemble:
    """Trees of scikit-learn; kept as arrays once they are fitted."""

    def __init__(self, model: Any, trees: TreeEnsemble | None = None) -> None:
        self._model = model
        self._trees = trees

    def fit(self, features: Floats, target: Floats, weights: Floats | None = None) -> Self:
        fitted = self._model.fit(features.astype(np.float32), target, sample_weight=weights)
        self._trees = TreeEnsemble.of(fitted)
        return self

    def predict(self, features: Floats) -> Floats:
        assert self._trees is not None, "fit first"
        return self._trees.predict(features)

    def save(self, folder: Path) -> None:
        assert self._trees is not None, "fit first"
        folder.mkdir(parents=True, exist_ok=True)
        self._trees.save(folder / _ENSEMBLE_FILE)


def make_regressor(name: str, seed: int) -> Regressor:
    """A regressor by name."""
    if name not in DOWNSTREAM:
        raise BadInputError(f"downstream model {name!r} is not known: use one of {', '.join(DOWNSTREAM)}")
    return _Boosted(_xgboost(seed)) if name == "xgboost" else _Ensemble(_of_scikit_learn(name, seed))


def load_regressor(folder: Path) -> Regressor:
    """Load a regressor of any kind."""
    if (folder / _ENSEMBLE_FILE).is_file():
        return _Ensemble(None, TreeEnsemble.load(folder / _ENSEMBLE_FILE))
    if not (folder / _BOOSTED_FILE).is_file():
        raise UnreadableFileError(f"{folder} has no saved trees")
    model = _xgboost(0)
    model.load_model(folder / _BOOSTED_FILE)
    return _Boosted(model)


def _xgboost(seed: int) -> Any:
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


def _of_scikit_learn(name: str, seed: int) -> Any:
    from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    jobs = thread_budget()
    if name == "random_forest":
        return RandomForestRegressor(
            60, max_features=0.3, max_samples=0.3, min_samples_leaf=2, n_jobs=jobs, random_state=seed
        )
    if name == "bagging":
        tree = DecisionTreeRegressor(max_features=0.5, min_samples_leaf=2)
        # More jobs would be processes, which take longer to load scikit-learn than these trees take to grow.
        return BaggingRegressor(tree, n_estimators=20, max_samples=0.3, n_jobs=1, random_state=seed)
    tree = DecisionTreeRegressor(max_depth=6, max_features=0.3)
    return AdaBoostRegressor(tree, n_estimators=30, random_state=seed)
