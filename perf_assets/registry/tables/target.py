"""Questions to the target model of a machine, and its answers: tables."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.catalogue import Resolved
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.counters.raw import counters_in, features_from_counters
from perf_assets.features.samples import HOST
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry.tables.questions import COLUMNS, example_runs, questions

_FEATURES = [feature.name for feature in XAMM_FEATURES]
TARGET_RANKS = ColSpec(DataType.double, "target_ranks", required=False)
"""Ranks on the target where they are not those of the run; empty where they are."""
_ANSWERS = ("predicted_seconds", "lower_seconds", "upper_seconds", "relative_time")
OUTPUTS = [*(ColSpec(DataType.double, name) for name in _ANSWERS), ColSpec(DataType.string, "note")]
"""Times on the target with their 90% interval, relative to the source, and what to know about the answer."""


def signature(formulas: Sequence[Resolved]) -> ModelSignature:
    """Columns of a run on the reference machine: its configuration and time, with counters under that machine's own
    names or as canonical features. MLflow drops columns that are not named here.
    """
    taken = {column.name for column in COLUMNS}
    counters = [ColSpec(DataType.double, name, required=False) for name in counters_in(formulas) if name not in taken]
    return ModelSignature(inputs=Schema([*COLUMNS, TARGET_RANKS, *counters]), outputs=Schema([*OUTPUTS]))


def with_features(table: pd.DataFrame, formulas: Sequence[Resolved]) -> pd.DataFrame:
    """Add canonical features made of raw counters; features that are given stay."""
    made = features_from_counters(table, formulas)
    given = table.reindex(columns=_FEATURES)
    return table.assign(**{name: given[name].fillna(made[name]) for name in _FEATURES})


def answer(table: pd.DataFrame, model: AdaptedTarget) -> pd.DataFrame:
    """Seconds on the machine with their interval, the time relative to the source, and a note."""
    asked = questions(table, [model.machine] * len(table), model.samples)
    if TARGET_RANKS.name in table:
        asked = replace(asked, ranks=_ranks(table[TARGET_RANKS.name]))
    predicted = model.predict(asked)
    seconds = np.exp(predicted.bounds)
    relative = seconds[0] / np.exp(asked.log_seconds)
    # At once: to add a column of texts to a table of numbers takes longer than all else here.
    columns = dict(zip(_ANSWERS, [*seconds, relative], strict=True))
    return pd.DataFrame(columns | {"note": predicted.reasons}, table.index)


def _ranks(column: pd.Series) -> list[int | None]:
    """Numbers of ranks, None where there is none."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(float)
    is_wrong = pd.notna(column).to_numpy() & ~((values >= 1) & (values == np.round(values)))
    if is_wrong.any():
        raise BadInputError("target_ranks must be a whole number above 0, or empty, in every row")
    return [None if np.isnan(value) else int(value) for value in values]


def example_questions(model: AdaptedTarget, count: int = 3) -> pd.DataFrame:
    """Some questions about runs on the reference machine, for people to copy."""
    samples = model.samples
    name, view = next(iter(model.views.items()))
    source = samples.machines.index(view.source)
    rows = np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark)[:count]
    return example_runs(samples, np.full(len(rows), source), rows, uses_gpus=[not name.endswith(HOST)] * len(rows))
