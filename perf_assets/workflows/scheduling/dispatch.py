"""Few-shot predictions of relative speeds: a cluster's column from few of its rows and columns of known machines."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.shots import Shots

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.samples import Floats

LEAST_ROWS = 4
"""Fewest rows of a column that a model is fitted to."""
_SPEED = "speed"


def predicted_speeds(
    frame: "pd.DataFrame",
    ways: Sequence[str],
    known: Sequence[str],
    shots: Shots,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> "dict[str, Floats]":
    """Speeds of all rows on each of the ways, by prediction: ours, and the average of the application and of the way.

    `known` are machines on which all workloads were measured: their speeds are features, and each one in turn (but the
    first) a source. Rows that a column was learned from are drawn with the seed, the same ones for every prediction.
    """
    import numpy as np

    from perf_assets.features.tables.unpaired import transfer_table
    from perf_assets.models.transfer.model import fit_product
    from perf_assets.models.transfer.task import TransferTask

    absent = [name for name in (*known, *ways, "app") if name not in frame]
    if absent:
        raise BadInputError(f"the table of speeds has no column {listed(absent)}")
    if len(known) < 2:
        raise BadInputError("speeds are predicted from at least two machines that are known: name them")
    speeds = frame[[*known, *ways]].astype(float)
    features = frame[[name for name in frame if name not in speeds]].join(speeds[known[0]])
    sources = [transfer_table(name, features.assign(**{_SPEED: speeds[name]}), _SPEED) for name in known[1:]]
    random = np.random.default_rng(seed)
    predicted = {
        name: np.full((len(frame), len(ways)), np.nan) for name in ("ours", "application average", "way average")
    }
    for place, way in enumerate(ways):
        # Asked of every row, also of those that were not measured there: a dispatcher does not know which these are.
        asked = transfer_table(way, features.assign(**{_SPEED: speeds[way].fillna(1.0)}), _SPEED)
        measured = np.flatnonzero(speeds[way].notna().to_numpy())
        count = min(shots.count(len(measured)), len(measured))
        if count < LEAST_ROWS:
            raise BadInputError(
                f"{way}: {count} rows of {len(measured)} are too few to learn from; {LEAST_ROWS} or more"
            )
        few = np.sort(random.choice(measured, count, replace=False))
        model = fit_product(TransferTask.of(sources, asked), few, seed)
        predicted["ours"][:, place] = np.exp(model.predict_rows(np.arange(len(frame))))
        log_speed = np.log(speeds[way].iloc[few])
        by_app = log_speed.groupby(frame["app"].iloc[few]).mean()
        predicted["way average"][:, place] = np.exp(log_speed.mean())
        predicted["application average"][:, place] = np.exp(frame["app"].map(by_app).fillna(log_speed.mean()))
        error = np.abs(predicted["ours"][measured, place] / speeds[way].to_numpy()[measured] - 1)
        say(f"{way}: {count} of {len(measured)} rows are shots, median error of all rows {np.median(error):.1%}")
    return predicted
