"""Fitted models behind MLflow's interface: what every file in `pyfunc/` makes of its kind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

Answer = Callable[[pd.DataFrame, Any, Mapping[str, Any]], pd.DataFrame]
"""Answers to a table of questions, by a fitted model, with the parameters of the question."""


class ServedModel(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined,misc]
    """A model that is loaded from its artifacts and answers tables."""

    def __init__(self, load: Callable[[Path], Any], answer: Answer) -> None:
        self._load, self._answer = load, answer

    def load_context(self, context: Any) -> None:
        """Load the fitted model from its artifacts."""
        self._model = self._load(Path(context.artifacts["fitted"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Rows of answers, in the columns of the signature."""
        return self._answer(model_input, self._model, params or {})
