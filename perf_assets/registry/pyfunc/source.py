"""Code that MLflow runs to serve a source model.

The parameter `descriptions` brings machines that came after training.
"""

from collections.abc import Mapping
from typing import Any

import mlflow
import pandas as pd

from perf_assets.models.source.model import SourceModel
from perf_assets.registry.served import ServedModel
from perf_assets.registry.tables.source import answer, with_descriptions


def _answer(table: pd.DataFrame, model: SourceModel, params: Mapping[str, Any]) -> pd.DataFrame:
    text = params.get("descriptions", "")
    return answer(table, with_descriptions(model, text) if text else model)


mlflow.models.set_model(ServedModel(SourceModel.load, _answer))
