"""Tables of questions to the target model of a machine, and of its answers."""

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet_samples import RUN_COLUMNS, configuration_name
from perf_assets.features.paired import HOST
from perf_assets.models.adapted import AdaptedTarget, seen_as
from perf_assets.models.stored_samples import Questions

_NEEDED = ("source_machine", "app", "ranks", "threads", "wall_seconds")
_MEASURED = tuple(name for name in RUN_COLUMNS if name not in _NEEDED)

SIGNATURE = ModelSignature(
    inputs=Schema(
        [
            ColSpec(DataType.string, "source_machine"),
            ColSpec(DataType.string, "app"),
            ColSpec(DataType.string, "args", required=False),
            ColSpec(DataType.long, "ranks"),
            ColSpec(DataType.long, "threads"),
            ColSpec(DataType.boolean, "uses_gpus", required=False),
            ColSpec(DataType.double, "wall_seconds"),
            *(ColSpec(DataType.double, name, required=False) for name in _MEASURED),
        ]
    ),
    outputs=Schema(
        [
            ColSpec(DataType.double, "predicted_seconds"),
            ColSpec(DataType.double, "lower_seconds"),
            ColSpec(DataType.double, "upper_seconds"),
            ColSpec(DataType.double, "relative_time"),
        ]
    ),
)
"""Runs on the reference machine of the model, to times on the target with a 90% interval."""


def answer(table: pd.DataFrame, model: AdaptedTarget) -> pd.DataFrame:
    """Seconds on the machine with their interval, and the time relative to the source."""
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise BadInputError(f"the questions lack the column {missing[0]}")
    if not (table["wall_seconds"] > 0).all():
        raise BadInputError("wall_seconds must be above 0 in every row: it is the time on the source machine")
    known = model.samples.machines
    on_gpus = table["uses_gpus"].fillna(True).astype(bool) if "uses_gpus" in table else pd.Series(True, table.index)
    args = table["args"].fillna("") if "args" in table else pd.Series("", table.index)
    keys = zip(table["app"], args, table["ranks"], table["threads"], strict=True)
    questions = Questions(
        [seen_as(m, uses_gpus=bool(g), known=known) for m, g in zip(table["source_machine"], on_gpus, strict=True)],
        [seen_as(model.machine, uses_gpus=bool(gpus), known=known) for gpus in on_gpus],
        table["app"].astype(str).tolist(),
        [configuration_name(key) for key in keys],
        table.reindex(columns=list(model.samples.counter_names)).to_numpy(float),
        np.log(table["wall_seconds"].to_numpy(float)),
    )
    mean, lower, upper = (np.exp(values) for values in model.predict(questions))
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
    frame = pd.DataFrame(samples.counters[source, rows][:, : len(RUN_COLUMNS)], columns=list(RUN_COLUMNS))
    return frame.assign(
        source_machine=view.source.removesuffix(HOST),
        app=samples.apps[rows],
        args="",
        ranks=frame["ranks"].astype(int),
        threads=frame["threads"].astype(int),
        uses_gpus=not name.endswith(HOST),
    )[[column.name for column in SIGNATURE.inputs.inputs]]
