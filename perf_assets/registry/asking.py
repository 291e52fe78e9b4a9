"""Ask any registered model with a table: the columns of its signature go in, its own answers come out."""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PyFuncModel
from mlflow.types import ColSpec, DataType

from perf_assets.core.errors import BadInputError, RegistryError, UnknownError, listed
from perf_assets.registry.source import WITH_AMM
from perf_assets.registry.store import first_line
from perf_assets.registry.versions import CHAMPION, all_aliases, load_code, unknown_model

_MOST_LOADED = 8


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """Answers of a registered model for the rows of a table."""

    model: str
    version: int
    frame: pd.DataFrame
    """Its own answers: one row per row that was asked, or as its signature says."""


class RegisteredModels:
    """Registered models, loaded when they are first asked; the last few are kept."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[str, int], OpenModel] = OrderedDict()
        self._lock = Lock()

    def ask(self, reference: str, table: pd.DataFrame) -> TableAnswer:
        """Answers of `NAME`, `NAME@ALIAS` or `NAME/VERSION`; an alias is looked up anew each time."""
        key = resolve(reference)
        with self._lock:
            model = self._loaded.get(key)
            if model is None:
                model = self._loaded[key] = open_model(*key)
                while len(self._loaded) > _MOST_LOADED:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(key)
        return TableAnswer(model.name, model.version, model.answer(table))


_REFERENCE = re.compile(r"(?P<name>[^@/]+)(?:@(?P<alias>[^@/]+)|/(?P<version>[1-9]\d*))?")
_USED_ALIASES = (CHAMPION, WITH_AMM)
"""Aliases of what people get, from the first on."""
_TRUE, _FALSE = {"true", "yes", "1", "1.0"}, {"false", "no", "0", "0.0"}
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class OpenModel:
    """A registered version that can be asked."""

    name: str
    version: int
    model: PyFuncModel

    def answer(self, table: pd.DataFrame) -> pd.DataFrame:
        """The model's own answers to a table; columns that it does not know are left out."""
        columns = list(self.model.metadata.get_input_schema())  # type: ignore[no-untyped-call]
        asked = _checked(self.name, table, columns)
        try:
            return pd.DataFrame(self.model.predict(asked))
        except MlflowException as error:
            raise BadInputError(f"{self.name} cannot be asked so ({first_line(error)})") from None


def resolve(reference: str) -> tuple[str, int]:
    """Name and version that `NAME`, `NAME@ALIAS` or `NAME/VERSION` stand for; the champion where neither is given."""
    parts = _REFERENCE.fullmatch(reference)
    if parts is None:
        raise BadInputError(f"{reference[:200]!r} names no model: write NAME, NAME@ALIAS or NAME/VERSION")
    name, every = parts["name"], all_aliases()
    if name not in every:
        raise unknown_model(name, sorted(every))
    if parts["version"]:
        return name, int(parts["version"])
    aliases = every[name]
    wanted = parts["alias"] or next((alias for alias in _USED_ALIASES if alias in aliases), CHAMPION)
    if wanted not in aliases:
        known = listed([f"{name}@{alias}" for alias in sorted(aliases)]) or "no alias at all"
        raise UnknownError(f"{name} has no @{wanted}: there is {known}; see 'perf-assets models {name}'")
    return name, aliases[wanted]


def open_model(name: str, version: int) -> OpenModel:
    """A registered version, loaded; its Python code comes from the registry."""
    try:
        return OpenModel(name, version, load_code(f"{name}/{version}"))
    except MlflowException as error:
        raise UnknownError(
            f"{name} has no version {version} ({first_line(error)}): see 'perf-assets models {name}'"
        ) from None
    except OSError as error:
        raise RegistryError(f"the files of {name} version {version} cannot be read ({error})") from None


def _checked(name: str, table: pd.DataFrame, columns: list[ColSpec]) -> pd.DataFrame:
    """The columns of a signature, each of its type."""
    if table.empty:
        raise BadInputError(f"the table has no rows to ask {name} about")
    lacking = [column.name for column in columns if column.required and column.name not in table.columns]
    if lacking:
        raise BadInputError(f"the table lacks the column {lacking[0]}: {name} needs {listed(lacking)}")
    given = [column for column in columns if column.name in table.columns]
    if not given:
        known = listed([column.name for column in columns])
        raise BadInputError(f"the table has none of the columns that {name} knows: {known}")
    return pd.DataFrame({column.name: _cast(table[column.name], column) for column in given}, index=table.index)


def _cast(values: "pd.Series[Any]", column: ColSpec) -> "pd.Series[Any]":
    if column.type == DataType.string:
        return values.astype(object).map(_text)
    if column.type == DataType.boolean:
        return _each(values, column, _flag).astype(object if values.isna().any() else bool)
    numbers = pd.to_numeric(values, errors="coerce")
    is_bad = numbers.isna() & values.notna()
    if column.type in (DataType.long, DataType.integer):
        is_bad |= numbers.isna() | (numbers % 1 != 0)
    if is_bad.any():
        raise _refused(column, "a whole number" if column.type == DataType.long else "a number", is_bad, values)
    return numbers.astype(np.int64 if column.type in (DataType.long, DataType.integer) else float)


def _each(values: "pd.Series[Any]", column: ColSpec, cast: Callable[[Any], Any]) -> "pd.Series[Any]":
    cells = values.astype(object).map(cast)
    is_bad = cells.isna() & values.notna()
    if is_bad.any():
        raise _refused(column, "true or false", is_bad, values)
    return cells


def _refused(column: ColSpec, wanted: str, is_bad: "pd.Series[bool]", values: "pd.Series[Any]") -> BadInputError:
    row = int(np.flatnonzero(is_bad.to_numpy())[0])
    return BadInputError(
        f"column {column.name} must hold {wanted}: row {row} has {str(values.iloc[row])[:_SHOWN_CHARACTERS]!r}"
    )


def _text(value: Any) -> str | None:
    """A word; whole numbers without a point, as tables of words hold them."""
    if value is None or value is pd.NA or value != value:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _flag(value: Any) -> bool | None:
    text = str(value).strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def ask_table(reference: str, table: pd.DataFrame) -> TableAnswer:
    """Ask a registered model once."""
    return RegisteredModels().ask(reference, table)
