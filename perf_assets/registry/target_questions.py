"""Questions to the target model of a machine, and its answers: tables."""

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.features.paired import HOST
from perf_assets.models.adapted import AdaptedTarget
from perf_assets.registry.runs_table import COLUMNS, example_runs, questions

_ANSWERS = pd.Index(["predicted_seconds", "lower_seconds", "upper_seconds", "relative_time"])
SIGNATURE = ModelSignature(
    inputs=Schema(list(COLUMNS)),
    outputs=Schema([ColSpec(DataType.double, name) for name in _ANSWERS]),
)
"""Runs on the reference machine of the model, to times on the target with a 90% interval."""


def answer(table: pd.DataFrame, model: AdaptedTarget) -> pd.DataFrame:
    """Seconds on the machine with their interval, and the time relative to the source."""
    asked = questions(table, [model.machine] * len(table), model.samples)
    found = np.exp(model.predict(asked))
    relative = found[0] / np.exp(asked.log_seconds)
    return pd.DataFrame(np.vstack([found, relative]).T, table.index, _ANSWERS)


def example_questions(model: AdaptedTarget, count: int = 3) -> pd.DataFrame:
    """Some questions about runs on the reference machine, for people to copy."""
    samples = model.samples
    name, view = next(iter(model.views.items()))
    source = samples.machines.index(view.source)
    rows = np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark)[:count]
    return example_runs(samples, np.full(len(rows), source), rows, uses_gpus=[not name.endswith(HOST)] * len(rows))
