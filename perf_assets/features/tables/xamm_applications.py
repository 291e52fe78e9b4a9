"""Plain tables of application runs: features measured on a source machine, and the relative time on a target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.samples import Floats
from perf_assets.features.tables.xamm_benchmarks import SIMULATED, as_text, says_simulated

RELATIVE_TIME = "relative_time"
SOURCE = "source_machine"
TARGET = "target_machine"
APP = "app"
_NO_FEATURES = frozenset((RELATIVE_TIME, SOURCE, TARGET, APP, "args", SIMULATED))


@dataclass(frozen=True, eq=False)
class ApplicationTable:
    """Rows x features and their targets."""

    name: str
    """Name of the file, for messages."""
    feature_names: tuple[str, ...]
    features: Floats
    """NaN where a value is missing."""
    log_relative_time: Floats
    """NaN in all rows where the table has no such column."""
    labels: dict[str, NDArray[np.str_]]
    """Columns source_machine, target_machine and app, as far as the table has them."""
    is_simulated: bool
    notes: tuple[str, ...]

    @property
    def has_targets(self) -> bool:
        """Whether the relative times are known."""
        return bool(np.isfinite(self.log_relative_time).all())

    def without(self, rows: NDArray[np.bool_]) -> "ApplicationTable":
        """All rows but some."""
        return replace(
            self,
            features=self.features[~rows],
            log_relative_time=self.log_relative_time[~rows],
            labels={label: values[~rows] for label, values in self.labels.items()},
        )

    @property
    def applications(self) -> list[str]:
        """Applications in alphabetical order; empty where the table does not name them."""
        return sorted(set(self.labels[APP].tolist())) if APP in self.labels else []


def application_table(
    table: pd.DataFrame, name: str, wanted: Sequence[str] | None = None, *, needs_targets: bool = True
) -> ApplicationTable:
    """Check a table; its features are all numeric columns that have no other role, or those `wanted`.

    Where targets are not needed, the column of relative times may be absent or empty.
    """
    is_absent = RELATIVE_TIME not in table or bool(table[RELATIVE_TIME].isna().all())
    if is_absent and needs_targets:
        raise BadInputError(f"{name}: no column {RELATIVE_TIME!r}; there are {listed(list(table.columns))}")
    target = pd.Series(np.nan, table.index) if is_absent else _checked(table[RELATIVE_TIME], name)
    others = [str(column) for column in table.columns if column not in _NO_FEATURES]
    texts = [column for column in others if not is_numeric_dtype(table[column])]
    features = [column for column in others if column not in texts] if wanted is None else list(wanted)
    if not features:
        raise BadInputError(f"{name}: no numeric column is left for features beside {RELATIVE_TIME}")
    for problem, names in (
        ("lacks the features (or has them empty)", [feature for feature in features if feature not in table]),
        ("has text in the features", [feature for feature in features if feature in texts]),
    ):
        if names:
            raise BadInputError(f"{name} {problem} {listed(names)}")
    ignored = [column for column in others if column not in features]
    return ApplicationTable(
        name=name,
        feature_names=tuple(features),
        features=table[features].to_numpy(float),
        log_relative_time=np.log(target.to_numpy(float)),
        labels={label: _texts(table, label, name) for label in (SOURCE, TARGET, APP) if label in table},
        is_simulated=says_simulated(table),
        notes=(f"{name}: {len(ignored)} columns are no features and are left out: {listed(ignored)}",)
        if ignored
        else (),
    )


def _checked(target: "pd.Series[float]", name: str) -> "pd.Series[float]":
    is_wrong = ~(target > 0).to_numpy() if is_numeric_dtype(target) else np.ones(len(target), bool)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise BadInputError(f"{name}: {RELATIVE_TIME} is {target.iloc[row]} in row {row}: it is a number above 0")
    return target


def _texts(table: pd.DataFrame, label: str, name: str) -> NDArray[np.str_]:
    if table[label].isna().any():
        raise BadInputError(f"{name}: column {label!r} is empty in row {int(np.argmax(table[label].isna()))}")
    return table[label].map(as_text).to_numpy(np.str_)
