"""What MLflow runs to serve the target model of a machine."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.models.adapted import AdaptedTarget
from perf_assets.registry.target_questions import answer


class ServedTarget(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A target model behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        self._model = AdaptedTarget.load(Path(context.artifacts["fitted"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One answer a row."""
        return answer(model_input, self._model)


mlflow.models.set_model(ServedTarget())
