"""Code that MLflow runs to serve the model of a dataset."""

import mlflow

from perf_assets.models.transfer.adapted import AdaptedTransfer
from perf_assets.registry.served import ServedModel
from perf_assets.registry.transfer import answer

mlflow.models.set_model(ServedModel(AdaptedTransfer.load, lambda table, model, _: answer(table, model)))
