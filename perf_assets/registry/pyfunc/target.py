"""Code that MLflow runs to serve the target model of a machine."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.features.counters.raw import counters_in, load_formulas
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry.tables.target import answer, with_features
from perf_assets.registry.target import FORMULAS


class TargetPyfunc(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A target model behind MLflow's interface."""

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        folder = Path(context.artifacts["fitted"])
        self._model, self._formulas = AdaptedTarget.load(folder), load_formulas(folder / FORMULAS)
        self._counters = set(counters_in(self._formulas))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """One answer per row."""
        has_counters = not self._counters.isdisjoint(model_input.columns)
        table = with_features(model_input, self._formulas) if has_counters else model_input
        return answer(table, self._model)


mlflow.models.set_model(TargetPyfunc())
