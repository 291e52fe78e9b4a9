"""The few-shot story of a lake: how well models of machines do with few runs, beside what one would have without."""

from typing import TYPE_CHECKING, Any

from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored_or_empty
from perf_assets.workflows.models.kept_aside import OURS, UNCHANGED, scored

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.reports.fleet.facts import Story

_ALONE = ("target_ridge_seconds", "target_gp_seconds")
_RUN = ["machine", "target", "configuration", "measured_seconds", "predicted_seconds", "lower_seconds", "upper_seconds"]


def story_of(lake: Lake) -> "Story | None":
    """Story from runs that are kept aside where there are some, else from the learning curves of all machines."""
    from perf_assets.reports.fleet.facts import Story

    rows = scored(lake)
    if len(rows):
        last = rows[rows["shots"] == rows.groupby("machine")["shots"].transform("max")]
        return Story(kept_aside_curve(rows), last[_RUN].reset_index(drop=True), are_kept_aside=True, is_simulated=True)
    scores = stored_or_empty(lake, TRANSFER_SCORES)
    if scores.empty:
        return None
    is_simulated = bool(scores["is_simulated"].any())
    return Story(learning_curve(scores), rows, are_kept_aside=False, is_simulated=is_simulated)


def story_rows(lake: Lake) -> list[dict[str, Any]]:
    """A row per machine with runs kept aside: runs used, errors and coverage there, with all runs that landed."""
    rows = scored(lake)
    if rows.empty:
        return []
    curve = kept_aside_curve(rows)
    last = curve.loc[curve.groupby("machine")["shots"].idxmax()]
    return [{str(key): _plain(value) for key, value in row.items()} for row in last.to_dict("records")]


def kept_aside_curve(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Mean errors by machine and number of runs given, from predictions of runs that are kept aside.

    `target_only` is the better one of two models of the given runs alone, on the very runs that score it.
    """
    import numpy as np
    import pandas as pd

    curves = []
    for _, group in rows.groupby(["machine", "shots"]):
        true = group["measured_seconds"]
        alone = [_mape(group[name], true) for name in _ALONE if group[name].notna().all()]
        curves.append(
            {
                "machine": str(group["machine"].iloc[0]),
                "shots": int(group["shots"].iloc[0]),
                "kept_aside": int(group["configuration"].nunique()),
                "ours": _mape(group["predicted_seconds"], true),
                "target_only": min(alone) if alone else np.nan,
                "unchanged": _mape(group["unchanged_seconds"], true),
                "coverage": float(true.between(group["lower_seconds"], group["upper_seconds"]).mean()),
            }
        )
    return pd.DataFrame(curves)


def learning_curve(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Columns of the story from `eval_transfer__scores`: medians over draws, means over ways to see a machine."""
    import numpy as np
    import pandas as pd

    keys = ["machine", "target", "shots"]
    middle = scores.pivot_table(index=keys, columns="method", values="mape_ratio", aggfunc="median")
    alone = [name for name in middle.columns if str(name).startswith("target_")]
    ours = scores[scores["method"] == OURS].groupby(keys)["coverage_90_ratio"].mean()
    rows = pd.DataFrame(
        {
            "kept_aside": 0,
            "ours": middle.get(OURS, np.nan),
            "target_only": middle[alone].min(axis=1) if alone else np.nan,
            "unchanged": middle.get(UNCHANGED, np.nan),
            "coverage": ours.reindex(middle.index),
        },
        index=middle.index,
    )
    return rows.groupby(["machine", "shots"]).mean().dropna(subset=["ours"]).reset_index()


def _mape(predicted: "pd.Series[float]", true: "pd.Series[float]") -> float:
    return float((predicted / true - 1).abs().mean())


def _plain(value: Any) -> Any:
    """None for what is not a number."""
    return None if value != value else value
