"""Code that MLflow runs to serve the vector model: one row for each run and machine."""

import mlflow

from perf_assets.models.vectors.model import VectorModel
from perf_assets.registry.served import ServedModel
from perf_assets.registry.tables.vector import answer

mlflow.models.set_model(
    ServedModel(VectorModel.load, lambda table, model, params: answer(table, model, params.get("relative_to") or None))
)
