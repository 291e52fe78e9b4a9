"""A source model from plain tables: TabNet embedding (+) AMM of the source (+) AMM of the target -> XGBoost."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.metrics import log_rmse, mape, share_within
from perf_assets.features.samples import Floats
from perf_assets.features.standardise import Scaler
from perf_assets.features.tables.xamm_applications import ApplicationTable
from perf_assets.features.tables.xamm_pairs import PairAmms
from perf_assets.models.amm.embeddings import Embedding, make_embedding, restore_embedding
from perf_assets.models.common import archive
from perf_assets.models.common.regressors import Regressor, load_regressor, make_regressor
from perf_assets.models.xamm_tables.amm import LEAST_ROWS

MODEL_FILE = "table_source.npz"
_WEIGHTS = "embedding."
_DOWNSTREAM = "xgboost"


@dataclass(frozen=True)
class TableSource:
    """A fitted source model."""

    feature_names: tuple[str, ...]
    scaler: Scaler
    embedding: Embedding
    trees: Regressor
    encoder_version: str | None
    """Of the encoder that made the AMMs; None for a model without them."""
    median_log_ratio: float
    """Of the training rows: what one would say without a model."""
    applications: tuple[str, ...]
    """That it was trained on, where the table said."""
    training_rows: int
    is_simulated: bool

    def predict(self, table: ApplicationTable, amms: PairAmms | None) -> Floats:
        """Relative times."""
        self.check_amms(amms)
        return np.exp(self.trees.predict(_columns(self.scaler, self.embedding, table, amms)))

    def check_amms(self, amms: PairAmms | None) -> None:
        """Refuse a model with AMMs where there are none, the reverse, and AMMs of another encoder."""
        if amms is None and self.encoder_version is not None:
            raise BadInputError(
                "the source model was trained with AMMs: set src_machine_amm and target_machine_amm, "
                "or train a model without them"
            )
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

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        self.trees.save(folder)
        description = {
            "embedding": self.embedding.description(),
            "feature_names": self.feature_names,
            "encoder_version": self.encoder_version,
            "median_log_ratio": self.median_log_ratio,
            "applications": self.applications,
            "training_rows": self.training_rows,
            "is_simulated": self.is_simulated,
        }
        weights = {f"{_WEIGHTS}{name}": array for name, array in self.embedding.arrays().items()}
        archive.save(folder / MODEL_FILE, description, {**self.scaler.arrays(), **weights})

    @classmethod
    def load(cls, folder: Path) -> "TableSource":
        """A saved one."""
        stored, arrays = archive.load(folder / MODEL_FILE)
        weights = {n.removeprefix(_WEIGHTS): array for n, array in arrays.items() if n.startswith(_WEIGHTS)}
        try:
            return cls(
                tuple(stored["feature_names"]),
                Scaler.from_arrays(arrays),
                restore_embedding(stored["embedding"], weights),
                load_regressor(folder),
                stored["encoder_version"],
                float(stored["median_log_ratio"]),
                tuple(stored["applications"]),
                int(stored["training_rows"]),
                bool(stored["is_simulated"]),
            )
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise UnreadableFileError(f"{folder} is no source model of func train, or a damaged one") from None


def fit_table_source(table: ApplicationTable, amms: PairAmms | None, seed: int = 0) -> TableSource:
    """Train on all rows of a table."""
    if len(table.features) < LEAST_ROWS:
        raise BadInputError(f"{table.name} has {len(table.features)} rows: training needs {LEAST_ROWS} at least")
    scaler = Scaler.fit(table.features)
    target = table.log_relative_time
    embedding = make_embedding("tabnet", seed).fit(scaler.transform(table.features), target[:, None])
    trees = make_regressor(_DOWNSTREAM, seed).fit(_columns(scaler, embedding, table, amms), target)
    return TableSource(
        table.feature_names,
        scaler,
        embedding,
        trees,
        None if amms is None else amms.encoder_version,
        float(np.median(target)),
        tuple(table.applications),
        len(target),
        table.is_simulated,
    )


def score_table_source(
    model: TableSource,
    test: ApplicationTable,
    amms: PairAmms | None,
    train: ApplicationTable | None,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Scores of the model beside baselines, all on the same rows.

    `median_ratio` says the same for every row; `raw_xgboost` are trees on the features themselves, without embedding
    and without machines, where there are training rows to fit them on.
    """
    true = np.exp(test.log_relative_time)
    predicted = {
        "source_model": model.predict(test, amms),
        "median_ratio": np.full_like(true, np.exp(model.median_log_ratio)),
    }
    if train is not None:
        scaler = Scaler.fit(train.features)
        trees = make_regressor(_DOWNSTREAM, seed).fit(scaler.transform(train.features), train.log_relative_time)
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


def _columns(scaler: Scaler, embedding: Embedding, table: ApplicationTable, amms: PairAmms | None) -> Floats:
    embedded = embedding.transform(scaler.transform(table.features))
    return embedded if amms is None else np.hstack([embedded, amms.vectors])
