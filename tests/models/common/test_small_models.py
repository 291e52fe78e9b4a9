"""Models of few rows: right where it can be told, and the same after storing."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV

from perf_assets.models.common import archive
from perf_assets.models.common.small_models import (
    FIT_SMALL,
    SmallModel,
    fit_extra_trees,
    fit_xgboost,
    ridge_with_held_out,
)

GENERATOR = np.random.default_rng(0)
INPUTS = GENERATOR.normal(size=(40, 5))
TARGET = INPUTS @ [1.0, -0.5, 0.2, 0.0, 0.0] + 0.3 * np.sin(3 * INPUTS[:, 0])


@pytest.mark.parametrize("name", list(FIT_SMALL))
def test_a_model_is_the_same_after_storing(name: str, tmp_path: Path) -> None:
    model = FIT_SMALL[name](INPUTS, TARGET, 0)
    archive.write(tmp_path / "small.npz", model)
    again = archive.read(tmp_path / "small.npz", SmallModel)
    asked = GENERATOR.normal(size=(9, 5))
    assert again.predict(asked) == pytest.approx(model.predict(asked))
    error = np.mean((model.predict(INPUTS) - TARGET) ** 2)
    assert error <= np.var(TARGET) * 1.0001


def test_ridge_leaves_out_as_scikit_learn_does() -> None:
    model, held_out = ridge_with_held_out(INPUTS, TARGET)
    theirs = RidgeCV(np.logspace(-2, 4, 13)).fit(INPUTS, TARGET)
    assert model.weights == pytest.approx(theirs.coef_, abs=1e-6)
    assert np.mean((held_out - TARGET) ** 2) == pytest.approx(-theirs.best_score_, rel=1e-3)


def test_forests_answer_as_the_libraries_do() -> None:
    asked = GENERATOR.normal(size=(50, 5))
    theirs = ExtraTreesRegressor(40, max_features=0.5, random_state=3).fit(INPUTS.astype(np.float32), TARGET)
    assert fit_extra_trees(INPUTS, TARGET, 3).predict(asked) == pytest.approx(
        theirs.predict(asked.astype(np.float32)), abs=1e-5
    )
    boosted = fit_xgboost(INPUTS, TARGET, 0).predict(INPUTS)
    assert np.mean((boosted - TARGET) ** 2) < 0.1 * np.var(TARGET)


def test_xgboost_is_copied_exactly() -> None:
    from xgboost import XGBRegressor

    settings = {"max_depth": 4, "learning_rate": 0.1, "colsample_bytree": 0.5, "subsample": 0.8, "max_bin": 64}
    theirs = XGBRegressor(n_estimators=150, tree_method="hist", random_state=0, base_score=0.0, n_jobs=1, **settings)
    theirs.fit(INPUTS.astype(np.float32), TARGET - TARGET.mean())
    asked = GENERATOR.normal(size=(50, 5))
    found = fit_xgboost(INPUTS, TARGET, 0).predict(asked)
    assert found == pytest.approx(TARGET.mean() + theirs.predict(asked.astype(np.float32)), abs=1e-5)
