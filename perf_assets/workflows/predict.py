"""Asking any registered model with a table, one way for the shell, HTTP and Python."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

import pandas as pd

from perf_assets.registry.asking import OpenModel, open_model, resolve

_KEPT = 8


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """What a registered model says of the rows of a table."""

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
                while len(self._loaded) > _KEPT:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(key)
        return TableAnswer(model.name, model.version, model.answer(table))


def ask_table(reference: str, table: pd.DataFrame) -> TableAnswer:
    """Ask a registered model once."""
    return RegisteredModels().ask(reference, table)
