"""Source models from plain tables: TabNet embedding (+) AMM of the source (+) AMM of the target -> XGBoost.

Two of them are trained on one embedding, with and without AMMs, so that a machine without an AMM gets an answer too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.metrics import log_rmse, mape, share_within
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.standardise import Scaler
from perf_assets.features.tables.xamm_applications import APP, SOURCE, TARGET, ApplicationTable
from perf_assets.features.tables.xamm_pairs import PairAmms
from perf_assets.models.amm.embeddings import Embedding
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.regressors import Regressor, fit_regressor
from perf_assets.models.xamm_tables.amm import LEAST_ROWS

WITH_AMM, WITHOUT_AMM = "with_amm", "without_amm"
_DOWNSTREAM = "xgboost"
_LEAST_FOLDS = 3
_ROW_FOLDS = 5


@dataclass(frozen=True)
class Predictions:
    """Relative times, and which of them were made with AMMs."""

    relative_time: Floats
    with_amm: Mask


@dataclass(frozen=True)
class TableSource(Stored):
    """Fitted source models that share an embedding."""

    FILE: ClassVar[str] = "table_source.npz"

    feature_names: tuple[str, ...]
    scaler: Scaler
    embedding: Embedding
    without_amm: Regressor
    with_amm: Regressor | None
    encoder_version: str | None
    """Version of the encoder that made the AMMs; None where there is no model with them."""
    median_log_ratio: float
    """Median over the training rows: the answer without a model."""
    applications: tuple[str, ...]
    """Applications that it was trained on, where the table names them."""
    training_rows: int
    is_simulated: bool

    def predict(self, table: ApplicationTable, amms: PairAmms | None) -> Predictions:
        """Relative times; with AMMs where both machines of a row have one, otherwise without."""
        self.check_amms(amms)
        embedded = self.embedding.transform(self.scaler.transform(table.features))
        logs = np.asarray(self.without_amm.predict(embedded), float)
        is_known = np.zeros(len(embedded), bool) if amms is None else amms.is_known
        if self.with_amm is not None and amms is not None and is_known.any():
            logs[is_known] = self.with_amm.predict(np.hstack([embedded, amms.vectors])[is_known])
        return Predictions(np.exp(logs), is_known)

    def check_amms(self, amms: PairAmms | None) -> None:
        """Refuse AMMs where the model was trained without any, and those of another encoder."""
        if amms is not None and self.encoder_version is None:
            raise BadInputError(
                "the source model was trained without AMMs: unset src_machine_amm and target_machine_amm, "
                "or train a model with them"
            )
        if amms is not None and amms.encoder_version != self.encoder_version:
            raise BadInputError(
                f"the source model was trained with AMMs of encoder {self.encoder_version}, those given are of "
                f"{amms.encoder_version}: run func train again with them"
            )

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        try:
            return super().load(folder)
        except UnreadableFileError as error:
            raise UnreadableFileError(f"{error}: run func train again") from None


def fit_table_source(table: ApplicationTable, amms: PairAmms | None, seed: int = 0) -> TableSource:
    """Train on all rows of a table; without AMMs there is one model only."""
    if len(table.features) < LEAST_ROWS:
        raise BadInputError(f"{table.name} has {len(table.features)} rows: training needs {LEAST_ROWS} at least")
    scaler = Scaler.fit(table.features)
    target = table.log_relative_time
    embedding = Embedding.fit("tabnet", scaler.transform(table.features), target[:, None], seed)
    embedded = embedding.transform(scaler.transform(table.features))
    described = None if amms is None else np.hstack([embedded, amms.vectors])
    return TableSource(
        feature_names=table.feature_names,
        scaler=scaler,
        embedding=embedding,
        without_amm=fit_regressor(_DOWNSTREAM, embedded, target, seed),
        with_amm=None if described is None else fit_regressor(_DOWNSTREAM, described, target, seed),
        encoder_version=None if amms is None else amms.encoder_version,
        median_log_ratio=float(np.median(target)),
        applications=tuple(table.applications),
        training_rows=len(target),
        is_simulated=table.is_simulated,
    )


def score_table_source(
    model: TableSource,
    test: ApplicationTable,
    amms: PairAmms | None,
    train: ApplicationTable | None,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Scores of the model beside baselines, all on the same rows.

    `source_model` uses AMMs where there are some; `without_amm` is then its other half. `median_ratio` says the same of
    every row; `raw_xgboost` are trees on the features themselves, without embedding and without machines, where there
    are training rows to fit them on.
    """
    true = np.exp(test.log_relative_time)
    answers = model.predict(test, amms)
    predicted = {"source_model": answers.relative_time}
    if answers.with_amm.any():
        predicted[WITHOUT_AMM] = model.predict(test, None).relative_time
    predicted["median_ratio"] = np.full_like(true, np.exp(model.median_log_ratio))
    if train is not None:
        scaler = Scaler.fit(train.features)
        trees = fit_regressor(_DOWNSTREAM, scaler.transform(train.features), train.log_relative_time, seed)
        predicted["raw_xgboost"] = np.exp(trees.predict(scaler.transform(test.features)))
    return {
        name: {
            "mape": mape(true, values),
            "log_rmse": log_rmse(true, values),
            "within_10": share_within(true, values, 0.10),
            "within_25": share_within(true, values, 0.25),
        }
        for name, values in predicted.items()
    }


def choose_amms(table: ApplicationTable, candidates: Sequence[PairAmms], seed: int = 0) -> tuple[int, list[float]]:
    """Position of the AMMs with the smallest log error on runs that are held out, and the error of each.

    Machines are held out in turn where the table names three, else applications, else parts of the rows. Trees are
    fitted to the features and the AMMs; the embedding has no part in it.
    """
    folds = list(_folds(table, seed))
    errors = np.empty((len(folds), len(candidates)))
    for position, held_out in enumerate(folds):
        train, truth = table.without(held_out), table.log_relative_time[held_out]
        scaler = Scaler.fit(train.features)
        seen, asked = scaler.transform(train.features), scaler.transform(table.features[held_out])
        for column, amms in enumerate(candidates):
            known = np.hstack([seen, amms.without(held_out).vectors])
            trees = fit_regressor(_DOWNSTREAM, known, train.log_relative_time, seed)
            wrong = trees.predict(np.hstack([asked, amms.vectors[held_out]])) - truth
            errors[position, column] = np.sqrt(np.mean(wrong**2))
    means = errors.mean(axis=0)
    return int(np.argmin(means)), means.tolist()


def _folds(table: ApplicationTable, seed: int) -> Iterator[Mask]:
    """Rows that are held out together; enough rows are left to learn from."""
    labels = table.labels
    if SOURCE in labels and TARGET in labels:
        machines = sorted({*labels[SOURCE].tolist(), *labels[TARGET].tolist()})
        masks = [(labels[SOURCE] == name) | (labels[TARGET] == name) for name in machines]
        usable = [mask for mask in masks if (~mask).sum() >= LEAST_ROWS and mask.any()]
        if len(machines) >= _LEAST_FOLDS and usable:
            yield from usable
            return
    if len(table.applications) >= _LEAST_FOLDS:
        yield from (labels[APP] == name for name in table.applications)
        return
    parts = np.random.default_rng(seed).permutation(len(table.features)) % _ROW_FOLDS
    yield from (parts == part for part in range(_ROW_FOLDS))
