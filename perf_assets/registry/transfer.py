"""Registration of models of datasets: `perf-transfer-<dataset>`, aliases `champion` and `challenger`."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.errors import UnknownError
from perf_assets.models.transfer.adapted import AdaptedTransfer
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.versions import CHALLENGER, load_fitted, shown_alias

PREFIX = "perf-transfer-"
_MOST_PARAM = 500
"""Characters of a parameter that MLflow takes in all of its stores."""


def registered_name(dataset: str) -> str:
    """Name of the model of a dataset."""
    return f"{PREFIX}{dataset}"


def signature(adapted: AdaptedTransfer) -> ModelSignature:
    """Columns as they were landed, numbers and words; each of them may be absent."""
    inputs = [
        ColSpec(DataType.string if is_words else DataType.double, column, required=False)
        for column, is_words in adapted.columns.items()
    ]
    return ModelSignature(inputs=Schema([*inputs]), outputs=Schema([*OUTPUTS]))


def example_rows(adapted: AdaptedTransfer) -> pd.DataFrame:
    """Some rows that are known, for people to copy."""
    frame = pd.DataFrame(list(adapted.examples)).reindex(columns=list(adapted.columns))
    kinds = {column: object if is_words else float for column, is_words in adapted.columns.items()}
    frame = frame.astype(kinds)
    return frame.where(frame.notna(), None) if len(frame) else frame


def candidate_table(adapted: AdaptedTransfer) -> pd.DataFrame:
    """All candidates and baselines on held-out rows; which was chosen."""
    return pd.DataFrame(
        [
            {
                "seen_as": adapted.dataset,
                "source": " + ".join(adapted.sources),
                "shots": adapted.shots,
                "method": score.name,
                "mape_ratio": score.mape,
                "log_rmse": score.log_rmse,
                "weight": score.weight,
                "is_chosen": score.name == adapted.chosen,
            }
            for score in adapted.scores
        ]
    )


def _comparable(adapted: AdaptedTransfer) -> dict[str, float]:
    """Metrics by names that are the same for every kind of model, on held-out rows."""
    errors = {score.name: score.mape for score in adapted.scores}
    alone = [error for name, error in errors.items() if name.startswith("target_")]
    metrics = {
        "shots": float(adapted.shots),
        "severity": adapted.severity,
        "mape": errors.get(adapted.chosen),
        "mape_target_only": min(alone, default=None),
    }
    return {name: value for name, value in metrics.items() if value is not None}


def register_transfer(
    adapted: AdaptedTransfer,
    provenance: Mapping[str, str],
    files: Mapping[str, bytes],
    *,
    name: str | None = None,
) -> Version:
    """Register a model of a dataset as challenger, under the dataset's name unless another is given."""
    metrics = {f"{score.name} {metric}": getattr(score, metric) for score in adapted.scores for metric in _METRICS}
    metrics |= _comparable(adapted)
    candidate = Candidate(
        registered_name=name or registered_name(adapted.dataset),
        code=Path(__file__).with_name("pyfunc") / "transfer.py",
        save=adapted.save,
        signature=signature(adapted),
        example=example_rows(adapted),
        metrics=metrics,
        params={
            "sources": " + ".join(adapted.sources)[:_MOST_PARAM],
            "target_column": adapted.target_column[:_MOST_PARAM],
            "rows": len(adapted.rows),
            "shots": adapted.shots,
            "chosen": adapted.chosen,
            "is_log": adapted.is_log,
        },
        tags={
            **provenance,
            "kind": "transfer",
            "dataset": adapted.dataset,
            "sources": " + ".join(adapted.sources),
            "target_column": adapted.target_column,
            "severity": "not known" if adapted.severity is None else f"{adapted.severity:.3f}",
        },
        tables={"candidates": candidate_table(adapted)},
        files=files,
    )
    return register(candidate, CHALLENGER)


_METRICS = ("mape", "log_rmse")


def load_transfer(name: str, version: int) -> AdaptedTransfer:
    """The model of a registered version."""
    return load_fitted(AdaptedTransfer.load, name, version, "adapt it again")


def shown_of(dataset: str) -> tuple[str, int, AdaptedTransfer]:
    """Alias, version and model to show: the champion, or where nothing was promoted yet, the newest challenger."""
    name = registered_name(dataset)
    shown = shown_alias(name)
    if shown is None:
        raise UnknownError(f"there is no model of dataset {dataset!r}: run 'perf-assets adapt --dataset {dataset}'")
    return *shown, load_transfer(name, shown[1])


_ANSWERS = ("predicted", "lower", "upper")
OUTPUTS = [*(ColSpec(DataType.double, name) for name in _ANSWERS), ColSpec(DataType.string, "note")]
"""The column that is predicted with its interval, in its own unit, and what to know about the answer."""


def answer(table: pd.DataFrame, adapted: AdaptedTransfer) -> pd.DataFrame:
    """One answer per row."""
    predicted = adapted.predict(table)
    values = np.exp(predicted.bounds) if adapted.is_log else predicted.bounds
    return pd.DataFrame(dict(zip(_ANSWERS, values, strict=True)) | {"note": predicted.reasons}, table.index)
