from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from perf_assets.core.errors import UnreadableFileError
from perf_assets.models.common import archive
from perf_assets.models.common.regressors import DOWNSTREAM, Regressor, fit_regressor
from perf_assets.models.common.trees import forest_of

ROWS = np.random.default_rng(0).standard_normal((300, 5))
TARGET = ROWS[:, 0] * ROWS[:, 1] + np.abs(ROWS[:, 2])


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(7, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(max_features=0.5), 5, random_state=0),
        AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=9, random_state=0),
    ],
)
def test_arrays_predict_what_scikit_learn_predicts(
    model: RandomForestRegressor | BaggingRegressor | AdaBoostRegressor,
) -> None:
    inputs = ROWS.astype(np.float32)
    model.fit(inputs, TARGET)
    assert forest_of(model).predict(ROWS) == pytest.approx(model.predict(inputs), abs=1e-9)


@pytest.mark.parametrize("name", DOWNSTREAM)
def test_downstream_models_survive_storage(name: str, tmp_path: Path) -> None:
    fitted = fit_regressor(name, ROWS, TARGET, 0)
    assert np.corrcoef(fitted.predict(ROWS), TARGET)[0, 1] > 0.8
    archive.write(tmp_path / "trees.npz", fitted)
    assert archive.read(tmp_path / "trees.npz", Regressor).predict(ROWS) == pytest.approx(fitted.predict(ROWS))
    with pytest.raises(UnreadableFileError, match="no saved model"):
        archive.read(tmp_path / "other.npz", Regressor)
