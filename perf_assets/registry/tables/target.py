"""Questions to the target model of a machine, and its answers: tables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from mlflow.types import ColSpec, DataType

from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.samples import HOST, Floats, Indices
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry.tables.runs import example_runs, questions

_ANSWERS = ("predicted_seconds", "lower_seconds", "upper_seconds", "relative_time")
OUTPUTS = [*(ColSpec(DataType.double, name) for name in _ANSWERS), ColSpec(DataType.string, "note")]
"""Times on the target with their 90% interval, relative to the source, and what to know about the answer."""


def answer(table: pd.DataFrame, model: AdaptedTarget, usual: Indices) -> pd.DataFrame:
    """Seconds on the machine with their interval, the time relative to the source, and a note.

    `usual` are the features that a run should have: positions among the model's counters.
    """
    asked = questions(table, [model.machine] * len(table), model.samples)
    found = np.exp(model.predict(asked))
    relative = found[0] / np.exp(asked.log_seconds)
    notes = _notes(asked.counters[:, usual], [model.samples.counter_names[position] for position in usual])
    # At once: to add a column of texts to a table of numbers takes longer than all else here.
    return pd.DataFrame(dict(zip(_ANSWERS, [*found, relative], strict=True)) | {"note": notes}, table.index)


def usual_features(model: AdaptedTarget) -> Indices:
    """Positions of the features that most runs on the reference machines have."""
    samples = model.samples
    runs = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
    sources = {samples.machines.index(view.source) for view in model.views.values()}
    shares = np.isfinite(np.concatenate([samples.counters[source, runs[source]] for source in sources])).mean(axis=0)
    names = {feature.name for feature in XAMM_FEATURES}
    is_feature = np.array([name in names for name in samples.counter_names])
    return np.flatnonzero(is_feature & (shares > 0.5))


def example_questions(model: AdaptedTarget, count: int = 3) -> pd.DataFrame:
    """Some questions about runs on the reference machine, for people to copy."""
    samples = model.samples
    name, view = next(iter(model.views.items()))
    source = samples.machines.index(view.source)
    rows = np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark)[:count]
    return example_runs(samples, np.full(len(rows), source), rows, uses_gpus=[not name.endswith(HOST)] * len(rows))


def _notes(features: Floats, names: Sequence[str]) -> list[str]:
    """For each row, the features that it lacks."""
    lacks = np.isnan(features)
    if not lacks.any():
        return [""] * len(features)
    patterns, of_row = np.unique(lacks, axis=0, return_inverse=True)
    texts = []
    for pattern in patterns:
        missing = [name for name, is_missing in zip(names, pattern, strict=True) if is_missing]
        texts.append(f"counters missing for {', '.join(missing)}: taken as unknown" if missing else "")
    return [texts[position] for position in of_row.ravel()]
