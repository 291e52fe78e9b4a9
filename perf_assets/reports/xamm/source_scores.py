"""The source models beside their baselines, as a picture."""

import pandas as pd
from matplotlib.figure import Figure

from perf_assets.reports.names import full_name
from perf_assets.reports.style import Target, save

_SHOWN_METHODS = 12
_TITLES = {"application": "unseen application", "machine": "unseen machine"}


def source_scores(scores: pd.DataFrame, target: Target) -> Figure:
    """Columns unseen, method, mape_ratio: a panel for each kind of held-out data, the best methods first."""
    panels = [kind for kind in _TITLES if (scores["unseen"] == kind).any()]
    figure = Figure(figsize=(4.6 * len(panels), 0.24 * _SHOWN_METHODS + 1), layout="constrained")
    for axes, kind in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        best = scores[scores["unseen"] == kind].nsmallest(_SHOWN_METHODS, "mape_ratio")[::-1]
        names = [full_name(str(method)) for method in best["method"]]
        is_ours = best["method"].str.startswith("with_amm")
        bars = axes.barh(names, 100 * best["mape_ratio"], color=["#d9731a" if ours else "#2563a8" for ours in is_ours])
        axes.bar_label(bars, fmt="%.0f%%", padding=3, size=7)
        axes.set_title(_TITLES[kind], size=10)
        axes.set_xlabel("MAPE, %")
        axes.tick_params(labelsize=7)
        axes.margins(x=0.15)
    save(figure, target, 90)
    return figure
