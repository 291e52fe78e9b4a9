"""Canonical features of single runs from counters under a machine's own names, as the warehouse derives them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.catalogue import Resolved
from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.tables.canonical import XAMM_FEATURES

_SHARE_SUFFIX = "_per_instruction"
_INSTRUCTIONS = "instructions"


def features_from_counters(table: pd.DataFrame, formulas: Sequence[Resolved]) -> pd.DataFrame:
    """Features of each row, from its counters (sums over a rank's threads, mean over ranks); NaN where a counter that
    is needed was not measured.
    """
    instructions = _quantity(table, formulas, _INSTRUCTIONS)
    instructions = instructions.where(instructions != 0)
    columns = {}
    for feature in XAMM_FEATURES:
        values = _quantity(table, formulas, feature.expression.removesuffix(_SHARE_SUFFIX))
        columns[feature.name] = values / instructions if feature.expression.endswith(_SHARE_SUFFIX) else values
    return pd.DataFrame(columns, index=table.index)


def by_quantity(formulas: Sequence[Resolved]) -> dict[str, list[Resolved]]:
    """The formulas that features are made of, in order of preference."""
    used = {feature.expression.removesuffix(_SHARE_SUFFIX) for feature in XAMM_FEATURES} | {_INSTRUCTIONS}
    return {name: [formula for formula in formulas if formula.quantity == name] for name in used}


def features_of_run(counters: Mapping[str, float], formulas: Mapping[str, Sequence[Resolved]]) -> dict[str, float]:
    """`features_from_counters` of a single run, without a table; features that cannot be made are left out."""
    instructions = _quantity_of_run(counters, formulas[_INSTRUCTIONS])
    features = {}
    for feature in XAMM_FEATURES:
        value = _quantity_of_run(counters, formulas[feature.expression.removesuffix(_SHARE_SUFFIX)])
        if feature.expression.endswith(_SHARE_SUFFIX):
            value = value / instructions if value is not None and instructions else None
        if value is not None:
            features[feature.name] = value
    return features


def counters_in(formulas: Sequence[Resolved]) -> list[str]:
    """All counters that features can be made of."""
    used = {feature.expression.removesuffix(_SHARE_SUFFIX) for feature in XAMM_FEATURES} | {_INSTRUCTIONS}
    return sorted({name for formula in formulas if formula.quantity in used for name in formula.counters})


def save_formulas(path: Path, formulas: Sequence[Resolved]) -> None:
    """Write formulas to a JSON file."""
    path.write_text(json.dumps([asdict(formula) for formula in formulas]))


def load_formulas(path: Path) -> list[Resolved]:
    """Formulas from a JSON file."""
    try:
        return [
            Resolved(row["quantity"], tuple((tuple(n), float(f)) for n, f in row["terms"]), row["meaning"])
            for row in json.loads(path.read_text())
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFileError(f"{path} holds no formulas of counters ({error})") from None


def _quantity(table: pd.DataFrame, formulas: Sequence[Resolved], name: str) -> "pd.Series[float]":
    """The first formula whose counters were all measured, row by row."""
    values = pd.Series(np.nan, table.index)
    for formula in formulas:
        if formula.quantity == name:
            total = pd.Series(0.0, table.index)
            for names, factor in formula.terms:
                total = total + factor * _any_of(table, names)
            values = values.fillna(total)
    return values


def _quantity_of_run(counters: Mapping[str, float], formulas: Sequence[Resolved]) -> float | None:
    for formula in formulas:
        values = [next((counters[name] for name in names if name in counters), None) for names, _ in formula.terms]
        if None not in values:
            return sum(factor * value for (_, factor), value in zip(formula.terms, values, strict=True) if value)
    return None


def _any_of(table: pd.DataFrame, names: Sequence[str]) -> "pd.Series[float]":
    """Values of a counter that tools spell differently."""
    values = pd.Series(np.nan, table.index)
    for name in names:
        if name in table:
            values = values.fillna(pd.to_numeric(table[name]))
    return values
