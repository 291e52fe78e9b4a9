"""Code that MLflow runs to serve a source model: it loads the folder of arrays and answers tables of questions."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.models.source.model import SourceModel
from perf_assets.registry.tables.source import answer, with_descriptions


class SourcePyfunc(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A source model behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        self._model = SourceModel.load(Path(context.artifacts["fitted"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One answer per row; the parameter `descriptions` brings machines that came after training."""
        text = (params or {}).get("descriptions", "")
        return answer(model_input, with_descriptions(self._model, text) if text else self._model)


mlflow.models.set_model(SourcePyfunc())
