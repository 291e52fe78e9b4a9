"""Code that MLflow runs to serve the AMM encoder: kernel times of machines in, their AMMs out."""

import mlflow

from perf_assets.models.source.amm_options import TrainedEncoder
from perf_assets.registry.amm import vectors
from perf_assets.registry.served import ServedModel

mlflow.models.set_model(ServedModel(TrainedEncoder.load, lambda table, trained, _: vectors(table, trained.encoder)))
