"""Tables of questions to a source model, and of its answers: the columns that the registered model takes and gives."""

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet_samples import RUN_COLUMNS, configuration_name
from perf_assets.features.paired import HOST, PairedSamples
from perf_assets.models.source_model import SourceModel
from perf_assets.models.stored_samples import Questions

_TEXTS = ("source_machine", "target_machine", "app")
_MEASURED = tuple(name for name in RUN_COLUMNS if name not in ("ranks", "threads", "wall_seconds"))

SIGNATURE = ModelSignature(
    inputs=Schema(
        [
            *(ColSpec(DataType.string, name) for name in _TEXTS),
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
            ColSpec(DataType.double, "relative_time"),
            ColSpec(DataType.double, "predicted_seconds"),
            ColSpec(DataType.string, "model"),
            ColSpec(DataType.string, "note"),
        ]
    ),
)
"""`uses_gpus`: whether the program runs on GPUs where a machine has some (yes where not given)."""


def questions_of(table: pd.DataFrame, model: SourceModel) -> Questions:
    """One question a row."""
    missing = [name for name in (*_TEXTS, "ranks", "threads", "wall_seconds") if name not in table]
    if missing:
        raise BadInputError(f"the questions lack the column {missing[0]}")
    if not (table["wall_seconds"] > 0).all():
        raise BadInputError("wall_seconds must be above 0 in every row: it is the time on the source machine")
    on_gpus = table["uses_gpus"].fillna(True).astype(bool) if "uses_gpus" in table else pd.Series(True, table.index)
    args = table["args"].fillna("") if "args" in table else pd.Series("", table.index)
    keys = zip(table["app"], args, table["ranks"], table["threads"], strict=True)
    names = model.machines.samples.counter_names
    counters = table.reindex(columns=list(names)).to_numpy(float)
    return Questions(
        _seen_as(table["source_machine"], on_gpus, model),
        _seen_as(table["target_machine"], on_gpus, model),
        table["app"].astype(str).tolist(),
        [configuration_name(key) for key in keys],
        counters,
        np.log(table["wall_seconds"].to_numpy(float)),
    )


def answer(table: pd.DataFrame, model: SourceModel) -> pd.DataFrame:
    """Relative time (above 1 is slower on the target), seconds, which model answered, and what to know about it."""
    questions = questions_of(table, model)
    answers = model.answer(questions)
    relative = np.exp(answers.log_relative_time)
    known = set(model.machines.samples.machines)
    notes = []
    for source, target, has_amm in zip(questions.sources, questions.targets, answers.with_amm, strict=True):
        unknown = [machine for machine in (source, target) if machine not in known]
        if has_amm:
            notes.append("" if target in model.machines.trained else f"{target} is known by its benchmark alone")
        else:
            why = f"no AMM of {' and '.join(unknown)}" if unknown else "this model has no AMMs"
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
    rows = pd.DataFrame(
        samples.counters[examples.source, examples.row][:, : len(RUN_COLUMNS)], columns=list(RUN_COLUMNS)
    )
    machines = np.array(samples.machines)
    return rows.assign(
        source_machine=[str(name).removesuffix(HOST) for name in machines[examples.source]],
        target_machine=[str(name).removesuffix(HOST) for name in machines[examples.target]],
        app=samples.apps[examples.row],
        args="",
        ranks=rows["ranks"].astype(int),
        threads=rows["threads"].astype(int),
        uses_gpus=[not str(name).endswith(HOST) for name in machines[examples.target]],
    )[[column.name for column in SIGNATURE.inputs.inputs]]


def _seen_as(machines: pd.Series, on_gpus: pd.Series, model: SourceModel) -> list[str]:
    """A machine with GPUs is another one to a program that does not use them."""
    known = set(model.machines.samples.machines)
    return [
        f"{machine}{HOST}" if not uses_gpus and f"{machine}{HOST}" in known else str(machine)
        for machine, uses_gpus in zip(machines, on_gpus, strict=True)
    ]
