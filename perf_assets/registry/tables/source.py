"""Questions to a source model, and its answers: tables."""

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import HOST, PairedSamples
from perf_assets.models.source.model import SourceModel
from perf_assets.registry.tables.runs import COLUMNS, example_runs, questions

SIGNATURE = ModelSignature(
    inputs=Schema([ColSpec(DataType.string, "target_machine"), *COLUMNS]),
    outputs=Schema(
        [
            ColSpec(DataType.double, "relative_time"),
            ColSpec(DataType.double, "predicted_seconds"),
            ColSpec(DataType.string, "model"),
            ColSpec(DataType.string, "note"),
        ]
    ),
)
"""Runs on a source machine, each with the machine it is asked about."""


def answer(table: pd.DataFrame, model: SourceModel) -> pd.DataFrame:
    """Relative time (above 1 is slower on the target), seconds, which model answered, and what to know about it."""
    if "target_machine" not in table:
        raise BadInputError("the questions lack the column target_machine")
    asked = questions(table, table["target_machine"].tolist(), model.machines.samples)
    answers = model.answer(asked)
    relative = np.exp(answers.log_relative_time)
    known = set(model.machines.samples.machines)
    notes = []
    for source, target, has_amm in zip(asked.sources, asked.targets, answers.with_amm, strict=True):
        unknown = [machine for machine in (source, target) if machine not in known]
        if has_amm:
            notes.append("" if target in model.machines.trained else f"{target} is known by its benchmark alone")
        else:
            named = " and ".join(unknown)
            why = f"no AMM of {named} in this model (ingest its RAJAPerf runs, then train)" if unknown else ""
            why = why or "this model has no AMMs"
            notes.append(f"{why}: answered from the counters alone, for an average pair of machines")
    return pd.DataFrame(
        {
            "relative_time": relative,
            "predicted_seconds": relative * table["wall_seconds"].to_numpy(float),
            "model": np.where(answers.with_amm, "with-amm", "without-amm"),
            "note": notes,
        },
        index=table.index,
    )


def example_questions(samples: PairedSamples, count: int = 3) -> pd.DataFrame:
    """Some questions about runs that are known, for people to copy."""
    examples = samples.examples().at_most(count, seed=0)
    targets = [samples.machines[target] for target in examples.target]
    runs = example_runs(
        samples, examples.source, examples.row, uses_gpus=[not target.endswith(HOST) for target in targets]
    )
    runs.insert(0, "target_machine", [target.removesuffix(HOST) for target in targets])
    return runs
