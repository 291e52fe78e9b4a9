"""Questions to the vector model, and its answers: tables."""

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema

from perf_assets.features.fleet.samples import RUN_COLUMNS, argument_names
from perf_assets.features.fleet.vectors import RUN_FEATURES
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.model import Runs, VectorModel
from perf_assets.registry.tables.questions import CONFIGURATION, NEEDED, check_runs, with_arguments

_MEASURED = tuple(dict.fromkeys((*RUN_FEATURES, *RUN_COLUMNS)))
_OPTIONAL = tuple(name for name in _MEASURED if name not in (*NEEDED, "uses_gpus"))
SIGNATURE = ModelSignature(
    inputs=Schema(
        [
            *CONFIGURATION,
            *(ColSpec(DataType.double, name, required=False) for name in _OPTIONAL),
        ]
    ),
    outputs=Schema(
        [
            ColSpec(DataType.long, "run"),
            ColSpec(DataType.string, "machine"),
            ColSpec(DataType.double, "relative_time"),
            ColSpec(DataType.double, "lower_relative_time"),
            ColSpec(DataType.double, "upper_relative_time"),
            ColSpec(DataType.long, "rank"),
            ColSpec(DataType.double, "order_probability"),
            ColSpec(DataType.string, "note"),
        ]
    ),
    params=ParamSchema([ParamSpec("relative_to", DataType.string, "")]),
)
"""Runs on any machine of the fleet, to one row per run and machine. `relative_to`: min (fastest), max (slowest) or
a machine; the model's own reference where it is empty."""


def answer(table: pd.DataFrame, model: VectorModel, reference: str | None = None) -> pd.DataFrame:
    """One row per run (numbered from 0) and machine, fastest first: relative time, interval, rank, what to know."""
    check_runs(table)
    on_gpus = table["uses_gpus"].fillna(True) if "uses_gpus" in table else pd.Series(True, table.index)
    on_gpus = on_gpus.astype(bool)
    apps = table["app"].astype(str).tolist()
    args = table["args"].fillna("").astype(str).tolist() if "args" in table else [""] * len(table)
    names = model.known.counter_names
    complete = table.assign(uses_gpus=on_gpus.astype(float))
    counters = with_arguments(complete.reindex(columns=list(names)).to_numpy(float), names, apps, args)
    complete = complete.assign(**{name: counters[:, names.index(name)] for name in argument_names(names)})
    predicted = model.predict(
        Runs(
            table["source_machine"].astype(str).tolist(),
            apps,
            on_gpus.to_numpy(bool),
            complete.reindex(columns=list(model.feature_names)).to_numpy(float),
            counters,
        ),
        reference,
    )
    runs, machines = predicted.log_time.shape
    relative, lower, upper = np.exp(predicted.bounds)
    answers = pd.DataFrame(
        {
            "run": np.repeat(np.arange(runs), machines),
            "machine": np.tile(np.array(model.machines), runs),
            "relative_time": relative.ravel(),
            "lower_relative_time": lower.ravel(),
            "upper_relative_time": upper.ravel(),
            "rank": predicted.places.ravel().astype(int) + 1,
            "order_probability": np.repeat(predicted.probability, machines),
            "note": np.repeat(predicted.reasons, machines),
        }
    )
    return answers.sort_values(["run", "rank"], ignore_index=True)


def example_questions(samples: VectorSamples, count: int = 3) -> pd.DataFrame:
    """Some runs that are known, for people to copy."""
    chosen = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    part = samples.where(chosen)
    features = pd.DataFrame(part.features, columns=list(part.feature_names))
    other = pd.DataFrame(part.counters, columns=list(samples.paired.counter_names))
    both = features.join(other[[name for name in RUN_COLUMNS if name not in features]])
    return both.assign(
        source_machine=np.array(samples.machines)[part.source],
        app=part.apps[part.row],
        args="",
        ranks=both["ranks"].astype(int),
        threads=both["threads"].astype(int),
        uses_gpus=both["uses_gpus"] > 0,
    )[[column.name for column in SIGNATURE.inputs]]
