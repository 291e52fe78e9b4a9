"""Regressors that take features to log relative time, behind one interface."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats
from perf_assets.infra.threads import thread_budget
from perf_assets.models.common.trees import Forest, forest_of

DOWNSTREAM = ("xgboost", "random_forest", "bagging", "adaboost")
MOST_EXAMPLES = 16_000
"""Examples that trees are fitted on."""


@dataclass(frozen=True, eq=False)
class Boosted:
    """Many boosted trees, which XGBoost itself answers with."""

    booster: NDArray[np.uint8]
    """The library's own format (UBJSON)."""

    def predict(self, features: Floats) -> Floats:
        """One number per row."""
        return np.asarray(self._model.predict(features.astype(np.float32)), float)

    @cached_property
    def _model(self) -> Any:
        model = _xgboost(0)
        model.load_model(bytearray(self.booster))
        return model


Regressor = Boosted | Forest


def fit_regressor(name: str, features: Floats, target: Floats, seed: int, weights: Floats | None = None) -> Regressor:
    """Fit a regressor by name to rows x features."""
    if name not in DOWNSTREAM:
        raise BadInputError(f"downstream model {name!r} is not known: use one of {', '.join(DOWNSTREAM)}")
    model = _xgboost(seed) if name == "xgboost" else _of_scikit_learn(name, seed)
    model.fit(features.astype(np.float32), target, sample_weight=weights)
    if name == "xgboost":
        return Boosted(np.frombuffer(model.get_booster().save_raw("ubj"), np.uint8))
    return forest_of(model)


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
