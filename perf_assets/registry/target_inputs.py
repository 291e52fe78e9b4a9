"""Tables of raw counters as target models take them: translated to features, and told what they lack."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.canonical import XAMM_FEATURES
from perf_assets.core.catalogue import Resolved
from perf_assets.features.raw_counters import counters_in, features_from_counters
from perf_assets.models.adapted import AdaptedTarget
from perf_assets.registry.runs_table import COLUMNS
from perf_assets.registry.target_questions import OUTPUTS

_FEATURES = [feature.name for feature in XAMM_FEATURES]


def signature(formulas: Sequence[Resolved]) -> ModelSignature:
    """A run on the reference machine: its configuration and time, with counters under that machine's own names or as
    canonical features. MLflow drops columns that are not named here.
    """
    taken = {column.name for column in COLUMNS}
    counters = [ColSpec(DataType.double, name, required=False) for name in counters_in(formulas) if name not in taken]
    note = ColSpec(DataType.string, "note")
    return ModelSignature(inputs=Schema([*COLUMNS, *counters]), outputs=Schema([*OUTPUTS, note]))


def with_features(table: pd.DataFrame, formulas: Sequence[Resolved]) -> pd.DataFrame:
    """The table with canonical features, made of raw counters where it has those; features that are given stay."""
    if not any(name in table for name in counters_in(formulas)):
        return table
    made = features_from_counters(table, formulas)
    given = table.reindex(columns=_FEATURES)
    return table.assign(**{name: given[name].fillna(made[name]) for name in _FEATURES})


def missing_notes(table: pd.DataFrame, model: AdaptedTarget) -> list[str]:
    """For each row, the features that runs on the reference machine have and this one lacks."""
    expected = expected_features(model)
    if not expected:
        return [""] * len(table)
    lacks = table.reindex(columns=expected).isna().to_numpy()
    patterns, of_row = np.unique(lacks, axis=0, return_inverse=True)
    texts = []
    for pattern in patterns:
        names = [name for name, is_missing in zip(expected, pattern, strict=True) if is_missing]
        texts.append(f"counters missing for {', '.join(names)}: taken as unknown" if names else "")
    return [texts[position] for position in of_row.ravel()]


def expected_features(model: AdaptedTarget) -> list[str]:
    """Features that most runs on the reference machines have."""
    samples = model.samples
    sources = [samples.machines.index(view.source) for view in model.views.values()]
    ran = [
        samples.counters[source, np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark] for source in sources
    ]
    shares = np.isfinite(np.concatenate(ran)).mean(axis=0)
    usual = {name for name, share in zip(samples.counter_names, shares, strict=True) if share > 0.5}
    return [name for name in _FEATURES if name in usual]
