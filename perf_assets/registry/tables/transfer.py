"""Answers of the model of a dataset: a table of predictions with their 90% interval."""

import numpy as np
import pandas as pd
from mlflow.types import ColSpec, DataType

from perf_assets.models.transfer.adapted import AdaptedTransfer

_ANSWERS = ("predicted", "lower", "upper")
OUTPUTS = [*(ColSpec(DataType.double, name) for name in _ANSWERS), ColSpec(DataType.string, "note")]
"""The column that is predicted with its interval, in its own unit, and what to know about the answer."""


def answer(table: pd.DataFrame, adapted: AdaptedTransfer) -> pd.DataFrame:
    """One answer per row."""
    predicted = adapted.predict(table)
    values = np.exp(predicted.bounds) if adapted.is_log else predicted.bounds
    return pd.DataFrame(dict(zip(_ANSWERS, values, strict=True)) | {"note": predicted.reasons}, table.index)
