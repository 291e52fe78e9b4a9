"""Code that MLflow runs to serve the vector model."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.models.vectors.model import VectorModel
from perf_assets.registry.tables.vector import answer


class VectorPyfunc(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A vector model behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        self._model = VectorModel.load(Path(context.artifacts["fitted"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One row for each run and machine."""
        return answer(model_input, self._model, (params or {}).get("relative_to") or None)


mlflow.models.set_model(VectorPyfunc())
