"""Code that MLflow runs to serve the AMM encoder: kernel times of machines in, their AMMs out."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.models.source.amm_options import TrainedEncoder
from perf_assets.registry.amm import vectors


class EncoderPyfunc(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """The encoder behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted encoder from its artifacts."""
        self._encoder = TrainedEncoder.load(Path(context.artifacts["fitted"])).encoder

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One row per machine and component."""
        return vectors(model_input, self._encoder)


mlflow.models.set_model(EncoderPyfunc())
