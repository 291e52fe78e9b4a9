"""Tables of raw counters as target models take them: translated to features."""

from collections.abc import Sequence

import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.catalogue import Resolved
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.counters.raw import counters_in, features_from_counters
from perf_assets.registry.tables.runs import COLUMNS
from perf_assets.registry.tables.target import OUTPUTS

_FEATURES = [feature.name for feature in XAMM_FEATURES]


def signature(formulas: Sequence[Resolved]) -> ModelSignature:
    """A run on the reference machine: its configuration and time, with counters under that machine's own names or as
    canonical features. MLflow drops columns that are not named here.
    """
    taken = {column.name for column in COLUMNS}
    counters = [ColSpec(DataType.double, name, required=False) for name in counters_in(formulas) if name not in taken]
    return ModelSignature(inputs=Schema([*COLUMNS, *counters]), outputs=Schema([*OUTPUTS]))


def with_features(table: pd.DataFrame, formulas: Sequence[Resolved]) -> pd.DataFrame:
    """The table with canonical features made of its raw counters; features that are given stay."""
    made = features_from_counters(table, formulas)
    given = table.reindex(columns=_FEATURES)
    return table.assign(**{name: given[name].fillna(made[name]) for name in _FEATURES})
