"""Questions to a source model, and its answers: tables."""

from io import StringIO

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.descriptions import Descriptions
from perf_assets.features.samples import HOST, PairedSamples
from perf_assets.models.source.model import SourceModel
from perf_assets.registry.tables.questions import COLUMNS, example_runs, questions

SIGNATURE = ModelSignature(
    inputs=Schema([ColSpec(DataType.string, "target_machine"), *COLUMNS]),
    outputs=Schema(
        [
            ColSpec(DataType.double, "relative_time"),
            ColSpec(DataType.double, "predicted_seconds"),
            ColSpec(DataType.double, "lower_seconds"),
            ColSpec(DataType.double, "upper_seconds"),
            ColSpec(DataType.string, "model"),
            ColSpec(DataType.string, "note"),
        ]
    ),
    params=ParamSchema([ParamSpec("descriptions", DataType.string, "")]),
)
"""Runs on a source machine, each with the machine it is asked about. `descriptions` are those of machines that came
later, as `descriptions_text` writes them."""


def descriptions_text(descriptions: Descriptions) -> str:
    """Descriptions of machines as a parameter of a question."""
    return str(descriptions.rows.to_json(orient="split", double_precision=15, index=False))


def with_descriptions(model: SourceModel, text: str) -> SourceModel:
    """The model with the machines that a question brings along."""
    try:
        texts = {"item": str, "encoder_version": str}
        rows = pd.read_json(StringIO(text), orient="split", dtype=texts, precise_float=True)
        descriptions = Descriptions.of(rows, model.encoder_version)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"descriptions: no rows of model_amm__machines ({error})") from None
    if descriptions.rows.empty:
        raise BadInputError(f"descriptions: none is by the encoder of this model, {model.encoder_version}")
    return model.knowing(descriptions)


def answer(table: pd.DataFrame, model: SourceModel) -> pd.DataFrame:
    """Relative time (above 1 is slower on the target), seconds with their 90% interval (as wide as the error on what
    was held out in training), which model answered, and what to know about it.
    """
    if "target_machine" not in table:
        raise BadInputError("the questions lack the column target_machine")
    predicted = model.predict(questions(table, table["target_machine"].tolist(), model.machines.samples))
    seconds, lower, upper = np.exp(predicted.bounds)
    return pd.DataFrame(
        {
            "relative_time": np.exp(predicted.log_relative_time),
            "predicted_seconds": seconds,
            "lower_seconds": lower,
            "upper_seconds": upper,
            "model": np.where(predicted.with_amm, "with-amm", "without-amm"),
            "note": predicted.reasons,
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
