"""What MLflow runs to serve the target model of a machine."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.features.raw_counters import load_formulas
from perf_assets.models.adapted import AdaptedTarget
from perf_assets.registry.target import FORMULAS
from perf_assets.registry.target_inputs import missing_notes, with_features
from perf_assets.registry.target_questions import answer


class ServedTarget(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A target model behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        folder = Path(context.artifacts["fitted"])
        self._model, self._formulas = AdaptedTarget.load(folder), load_formulas(folder / FORMULAS)

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One answer a row."""
        table = with_features(model_input, self._formulas)
        return answer(table, self._model).assign(note=missing_notes(table, self._model))


mlflow.models.set_model(ServedTarget())
