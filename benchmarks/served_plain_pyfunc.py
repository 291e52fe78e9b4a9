"""What MLflow runs to serve a target model of plain tables, whose questions are rows of counters."""

from pathlib import Path
from typing import Any

import mlflow
import numpy as np

from perf_assets.models.transfer.model import TransferAverage


class ServedPlain(mlflow.pyfunc.PythonModel):
    """An unpaired target model behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        self._model = TransferAverage.load(Path(context.artifacts["fitted"]))

    def predict(self, context: Any, model_input: np.ndarray, params: dict[str, Any] | None = None) -> np.ndarray:
        """One number a row."""
        return self._model.predict(model_input)


mlflow.models.set_model(ServedPlain())
