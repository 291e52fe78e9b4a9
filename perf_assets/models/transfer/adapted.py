"""A model adapted to a dataset from other datasets: ModelX for tables with features and a target of their own.

All rows of the dataset are shots. Of very many, some are, and the others are one more source that has all features.
What predicts is the average over the uses of the sources (`model.py`), or the best model of the rows alone where the
average is worse than that on rows that were left out, by more than a new model may be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import signed_log
from perf_assets.features.tables.unpaired import TransferTable, encoded_rows, shot_scaler, standardised_logs
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.averaged_gp import SOURCE_FUNCTIONS, AveragedGp, Inputs
from perf_assets.models.common.averaged_gp import TARGET_ONLY as OF_TARGET_ONLY
from perf_assets.models.common.conformal import Interval, cross_conformal
from perf_assets.models.common.contract import Predicted
from perf_assets.models.common.severity import transfer_severity
from perf_assets.models.common.small_models import FIT_SMALL, ScaledSmallModel
from perf_assets.models.target.promotion import THRESHOLD
from perf_assets.models.transfer.baselines import TARGET_CHOICE, TARGET_ONLY, target_baselines
from perf_assets.models.transfer.model import (
    LEAST_SHOTS,
    Predict,
    TargetFeatures,
    TransferAverage,
    TransferCandidate,
    fit_product,
    held_out_shots,
)
from perf_assets.models.transfer.source_net import SourceNetSettings
from perf_assets.models.transfer.task import TransferTask

PRODUCT = "product"
_FEW_ROWS = 50
"""Rows up to which a table is quicker to encode as objects, at once, than column by column."""
_MOST_EXAMPLES = 3


class TransferSettings(BaseModel, frozen=True):
    """Settings for learning a dataset: sizes and ways."""

    most_shots: int = Field(default=400, ge=LEAST_SHOTS)
    """Rows that the average is fitted to; the others of a larger dataset are one more source."""
    least_judged: int = Field(default=5, ge=LEAST_SHOTS)
    """Shots from which on some can be held out."""
    source: SourceNetSettings = Field(default_factory=SourceNetSettings)
    """Training of the sources' nets, through which features of other names are aligned."""


@dataclass(frozen=True)
class MethodScore:
    """A method on shots that were left out."""

    name: str
    mape: float
    log_rmse: float
    """Root mean squared error of what is predicted: the logarithm, or the target itself."""
    weight: float | None = None
    """Probability of a use of the sources, given the shots."""


class RowsAlone(ScaledSmallModel):
    """A model of the dataset's own rows."""

    @classmethod
    def fit(cls, name: str, counters: Floats, target: Floats, table: TransferTable, seed: int) -> "RowsAlone":
        """Fit one of `FIT_SMALL`."""
        scaler = shot_scaler(counters, table.is_level)
        return cls(scaler, FIT_SMALL[name](standardised_logs(scaler, signed_log(counters)), target, seed))

    def scaled(self, counters: Floats) -> Floats:
        """Standardise logarithms of rows x features as measured."""
        return standardised_logs(self.scaler, signed_log(counters))


@dataclass(frozen=True, eq=False)
class AdaptedTransfer(Stored):
    """A model of a dataset, with the grounds on which it stands."""

    dataset: str
    target_column: str
    sources: tuple[str, ...]
    """Datasets that it was adapted from."""
    model: TransferAverage
    chosen: str
    """`product`, or the model of the rows alone that predicts instead."""
    alone: RowsAlone | None
    interval: Interval
    severity: float | None
    """Severity of the transfer, 0 (easy) to 1; None where rows are too few."""
    scores: tuple[MethodScore, ...]
    """Best first; empty where there were too few shots to hold some out."""
    shots: int
    """Rows that the average was fitted to."""
    rows: Mapping[str, float]
    """True values of all rows that the model was made of, by the name of the row."""
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Prediction of each shot by a fit that did not see it."""
    held_out_alone: Mapping[str, float] = field(default_factory=dict)
    """Predictions of the best baseline that uses the shots only."""
    examples: Sequence[Mapping[str, Any]] = ()
    """Rows that are known, for people to copy."""

    @property
    def is_log(self) -> bool:
        """Whether it predicts the logarithm."""
        return self.model.is_log

    @cached_property
    def columns(self) -> dict[str, bool]:
        """Columns that it looks at, and whether they hold words."""
        names, levels = self.model.counter_names, self.model.level_columns
        return {levels.get(name, name): name in levels for name in names}

    @cached_property
    def levels(self) -> dict[str, set[str]]:
        """Levels that it knows, by column of words."""
        levels: dict[str, set[str]] = {}
        for name, column in self.model.level_columns.items():
            levels.setdefault(column, set()).add(name.removeprefix(f"{column}="))
        return levels

    def predict(self, table: pd.DataFrame) -> Predicted:
        """Predict the rows of a table with columns as they were landed, in the units of the model: see `is_log`.

        A column that is absent is missing; one at least must be there.
        """
        if not any(column in table.columns for column in self.columns):
            known = listed(list(self.columns))
            raise BadInputError(f"the table has none of the columns that the model of {self.dataset} knows: {known}")
        counters = self._encoded(table)
        mean = self.model.predict(counters) if self.alone is None else self.alone.predict(counters)
        return Predicted(mean, *self.interval.around(mean), self._reasons(table))

    def _encoded(self, table: pd.DataFrame) -> Floats:
        names, levels = self.model.counter_names, self.model.level_columns
        if len(table) > _FEW_ROWS:
            return encoded_rows(table, names, levels)
        cells = dict(zip(map(str, table.columns), table.to_numpy(object).T.tolist(), strict=True))
        unknown = [np.nan] * len(table)
        columns = []
        for name in names:
            column = levels.get(name, name)
            values = cells.get(column, unknown)
            if name in levels:
                level = name[len(column) + 1 :]
                columns.append([np.nan if _is_missing(value) else float(str(value) == level) for value in values])
            else:
                columns.append([_number(value) for value in values])
        return np.array(columns, float).T

    def _reasons(self, table: pd.DataFrame) -> list[str]:
        """For each row, what to know about the answer: columns that it lacks, levels that were never seen."""
        absent = [column for column in self.columns if column not in table.columns]
        general = [f"columns missing: {listed(absent)}, taken as unknown"] if absent else []
        by_row = [general] * len(table)
        for column, levels in self.levels.items():
            if column in table.columns:
                for row, value in enumerate(table[column].tolist()):
                    if not _is_missing(value) and str(value) not in levels:
                        warning = f"{column} {str(value)[:40]!r} was never seen: unlike all of {listed(sorted(levels))}"
                        by_row[row] = [*by_row[row], warning]
        return ["; ".join(notes) for notes in by_row]


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table that is ready for transfer, and what its rows are called."""

    table: TransferTable
    names: Sequence[str]
    """One per row of the table."""
    target_column: str
    examples: Sequence[Mapping[str, Any]] = ()


def adapt_transfer(
    target: NamedTable,
    sources: Sequence[TransferTable],
    *,
    is_log: bool = True,
    catalogue: Catalogue | None = None,
    settings: TransferSettings | None = None,
    seed: int = 0,
) -> AdaptedTransfer:
    """Fit all candidates to the rows of a dataset, and choose by their predictions of rows that were left out."""
    chosen_settings = settings or TransferSettings()
    table = target.table
    order = np.random.default_rng(seed).permutation(len(table))
    shots, further = np.sort(order[: chosen_settings.most_shots]), np.sort(order[chosen_settings.most_shots :])
    own = [replace(table, name=table.name, counters=table.counters[further], target=table.target[further])]
    task = TransferTask.of([*sources, *(own if len(further) else [])], table, catalogue, chosen_settings.source)
    product = fit_product(task, shots, seed, is_log=is_log)
    assert product.model is not None, "there is no candidate from outside"
    others = TransferTask.of(sources, table, catalogue, chosen_settings.source) if len(further) else task
    hard = transfer_severity(others, shots) if len(further) else product.severity
    scored = _Scored.of(table, shots, product.model, seed) if len(shots) >= chosen_settings.least_judged else None
    names = [target.names[row] for row in shots]
    model, alone, interval = product.model, None, product.interval
    if scored is not None and scored.chosen != PRODUCT:
        if scored.chosen == TARGET_CHOICE:
            model = _without_sources(model, table.target[shots])
        else:
            method = scored.chosen.removeprefix(TARGET_ONLY)
            alone = RowsAlone.fit(method, table.counters[shots], table.target[shots], table, seed)
        interval = cross_conformal(scored.held_out[scored.chosen], table.target[shots])
    return AdaptedTransfer(
        dataset=table.name,
        target_column=target.target_column,
        sources=tuple(source.name for source in sources),
        model=model,
        chosen=scored.chosen if scored else PRODUCT,
        alone=alone,
        interval=interval,
        severity=hard.rescaled if hard else None,
        scores=scored.scores(is_log=is_log) if scored else (),
        shots=len(shots),
        rows=dict(zip(target.names, table.target.tolist(), strict=True)),
        held_out=scored.by_name(names, scored.chosen) if scored else {},
        held_out_alone=scored.by_name(names, scored.baseline) if scored else {},
        examples=target.examples[:_MOST_EXAMPLES],
    )


def _without_sources(model: TransferAverage, target: Floats) -> TransferAverage:
    """The Gaussian process of the shots alone."""
    rows = Inputs.alone(model.process.rows.spaces[0])
    features = TargetFeatures(model.features.scaler, ())
    return replace(model, process=AveragedGp.fit(rows, target), features=features)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Predictions of every method for shots that it was not fitted to."""

    true: Floats
    held_out: Mapping[str, Floats]
    weights: Mapping[str, float]

    @classmethod
    def of(cls, table: TransferTable, shots: Indices, model: TransferAverage, seed: int) -> "_Scored":
        process = model.process
        held_out = {PRODUCT: process.held_out}
        weights = {}
        for kind, of_kind in process.held_out_by_kind.items():
            is_aligned = kind == SOURCE_FUNCTIONS and model.features.aligned is not None
            name = f"{PRODUCT}_{'alignment' if is_aligned else kind}"
            held_out[name], weights[name] = of_kind, process.shares[kind]
        for name, fit in target_baselines(table).items():
            if name != TARGET_CHOICE:
                held_out[name] = held_out_shots(_Baseline(name, fit), shots, seed)
        own = process.held_out_by_kind.get(OF_TARGET_ONLY)
        if own is None:
            own = AveragedGp.fit(Inputs.alone(process.rows.spaces[0]), table.target[shots]).held_out
        held_out[TARGET_CHOICE] = own
        return cls(table.target[shots], held_out, weights)

    @property
    def baseline(self) -> str:
        """The model of the shots alone with the smallest error."""
        return min((name for name in self.held_out if name.startswith(TARGET_ONLY)), key=lambda n: self._error(n))

    @cached_property
    def chosen(self) -> str:
        """The product, or the best model of the shots alone where the product would not be promoted beside it."""
        return PRODUCT if self._error(PRODUCT) <= THRESHOLD * self._error(self.baseline) else self.baseline

    def scores(self, *, is_log: bool) -> tuple[MethodScore, ...]:
        """All methods, best first."""
        scored = []
        for name, predicted in self.held_out.items():
            relative = relative_errors(predicted - self.true, self.true, is_log=is_log)
            rmse = float(np.sqrt(self._error(name)))
            scored.append(MethodScore(name, float(np.mean(np.abs(relative))), rmse, self.weights.get(name)))
        return tuple(sorted(scored, key=lambda score: score.log_rmse))

    def by_name(self, names: Sequence[str], method: str) -> dict[str, float]:
        """Predictions of a method, by the name of the row."""
        return dict(zip(names, self.held_out[method].tolist(), strict=True))

    def _error(self, name: str) -> float:
        return float(np.mean((self.held_out[name] - self.true) ** 2))


@dataclass(frozen=True)
class _Baseline(TransferCandidate):
    """A model of the shots alone, as a candidate."""

    label: str
    fit_rows: Any

    @property
    def name(self) -> str:
        return self.label

    def fit(self, shots: Indices, seed: int) -> Predict:
        predict: Predict = self.fit_rows(shots, seed)
        return predict


def relative_errors(errors: Floats, true: Floats, *, is_log: bool) -> Floats:
    """Errors of predictions relative to the plain true values."""
    if is_log:
        return np.asarray(np.expm1(np.clip(errors, -50, 50)))
    return np.asarray(errors / np.maximum(np.abs(true), 1e-12))


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or value != value


def _number(value: object) -> float:
    """Number that a cell holds; NaN where it holds none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.nan
    return number if np.isfinite(number) else np.nan
