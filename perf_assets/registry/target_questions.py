"""Questions to the target model of a machine, and its answers: tables."""

import numpy as np
import pandas as pd
from mlflow.types import ColSpec, DataType

from perf_assets.features.paired import HOST
from perf_assets.models.adapted import AdaptedTarget
from perf_assets.registry.runs_table import example_runs, questions

OUTPUTS = [
    ColSpec(DataType.double, name) for name in ("predicted_seconds", "lower_seconds", "upper_seconds", "relative_time")
]
"""Times on the target with their 90% interval, and relative to the source."""


def answer(table: pd.DataFrame, model: AdaptedTarget) -> pd.DataFrame:
    """Seconds on the machine with their interval, and the time relative to the source."""
    asked = questions(table, [model.machine] * len(table), model.samples)
    mean, lower, upper = (np.exp(values) for values in model.predict(asked))
    return pd.DataFrame(
        {
            "predicted_seconds": mean,
            "lower_seconds": lower,
            "upper_seconds": upper,
            "relative_time": mean / table["wall_seconds"].to_numpy(float),
        },
        index=table.index,
    )


def example_questions(model: AdaptedTarget, count: int = 3) -> pd.DataFrame:
    """Some questions about runs on the reference machine, for people to copy."""
    samples = model.samples
    name, view = next(iter(model.views.items()))
    source = samples.machines.index(view.source)
    rows = np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark)[:count]
    return example_runs(samples, np.full(len(rows), source), rows, uses_gpus=[not name.endswith(HOST)] * len(rows))
