"""Code that MLflow runs to serve the model of a dataset."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.models.transfer.adapted import AdaptedTransfer
from perf_assets.registry.transfer import answer


class TransferPyfunc(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A model of a dataset behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        self._model = AdaptedTransfer.load(Path(context.artifacts["fitted"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One answer per row."""
        return answer(model_input, self._model)


mlflow.models.set_model(TransferPyfunc())
