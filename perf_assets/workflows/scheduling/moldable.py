"""Few-shot predictions of a table of moldable jobs: an application from few of its rows and all rows of the others."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.shots import Shots

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.samples import Floats
    from perf_assets.models.transfer.task import TransferTask

_ANSWERS = "(_nodes|_seconds)$"
"""Columns that hold what others chose or predicted, and the times of it: no features."""


def predicted_column(shots: str) -> str:
    """Name of the column of predictions."""
    return f"ours {shots}_predicted_seconds"


def upper_column(shots: str) -> str:
    """Name of the column with upper ends of 90% intervals."""
    return f"ours {shots}_upper_seconds"


def with_predictions(
    frame: "pd.DataFrame", shots: Sequence[str], seed: int, say: Callable[[str], None] = lambda _: None
) -> "pd.DataFrame":
    """The table with columns of predicted seconds and upper ends per number of shots, which are drawn with the seed."""
    import numpy as np

    from perf_assets.features.tables.unpaired import transfer_table
    from perf_assets.models.transfer.task import TransferTask

    asked = {text: Shots.parse(text) for text in shots}
    if "app" not in frame or "runtime_seconds" not in frame:
        raise BadInputError("the table of jobs needs the columns app and runtime_seconds")
    apps = sorted(frame["app"].dropna().astype(str).unique())
    if len(apps) < 2:
        raise BadInputError("the table of jobs has one application: there is none to learn from, leave --shots out")
    plain = frame.drop(columns=["app", *frame.filter(regex=_ANSWERS).columns.difference(["runtime_seconds"])])
    seconds = frame["runtime_seconds"]
    kept = frame.assign(**{column(text): np.nan for text in shots for column in (predicted_column, upper_column)})
    tables = {app: transfer_table(app, plain[frame["app"] == app], "runtime_seconds") for app in apps}
    for app in apps:
        task = TransferTask.of([tables[other] for other in apps if other != app], tables[app])
        rows = frame.index[frame["app"] == app][tables[app].rows]
        for text, count in asked.items():
            predicted, upper, used = _predict(task, count, seed)
            kept.loc[rows, predicted_column(text)] = predicted
            kept.loc[rows, upper_column(text)] = upper
            error = float(np.mean(np.abs(predicted / seconds.loc[rows].to_numpy() - 1)))
            say(f"{app}: {used} of {len(rows)} rows are shots, mean error of all rows {error:.1%}")
    return kept


def _predict(task: "TransferTask", shots: Shots, seed: int) -> "tuple[Floats, Floats, int]":
    """Predicted seconds of all rows of the target, upper ends of their intervals, and how many are learned from."""
    import numpy as np

    from perf_assets.models.transfer.model import fit_product

    count = shots.count(len(task.target))
    few = np.sort(np.random.default_rng(seed).permutation(len(task.target))[:count])
    product = fit_product(task, few, seed)
    predicted = product.predict_rows(np.arange(len(task.target)))
    return np.exp(predicted), np.exp(predicted + product.interval.half_width), count
