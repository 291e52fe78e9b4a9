"""Code that MLflow runs to serve the target model of a machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd

from perf_assets.core.catalogue import Resolved
from perf_assets.features.counters.raw import counters_in, load_formulas
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry.served import ServedModel
from perf_assets.registry.tables.target import answer, with_features
from perf_assets.registry.target import FORMULAS

_Loaded = tuple[AdaptedTarget, Sequence[Resolved], set[str]]
"""Model, formulas of its reference machine, and the counters in these."""


def _load(folder: Path) -> _Loaded:
    formulas = load_formulas(folder / FORMULAS)
    return AdaptedTarget.load(folder), formulas, set(counters_in(formulas))


def _answer(table: pd.DataFrame, loaded: _Loaded, params: Mapping[str, Any]) -> pd.DataFrame:
    model, formulas, counters = loaded
    return answer(table if counters.isdisjoint(table.columns) else with_features(table, formulas), model)


mlflow.models.set_model(ServedModel(_load, _answer))
