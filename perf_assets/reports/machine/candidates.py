"""A picture of what was tried for a machine: errors of candidates and of baselines on held-out runs."""

import pandas as pd
from matplotlib.figure import Figure

from perf_assets.reports.error_dots import dots, errors_axis
from perf_assets.reports.machine.numbers import candidate_tables, method_name
from perf_assets.reports.style import BLUE, ORANGE, Target, written

_CHOSEN, _CANDIDATE, _BASELINE = "chosen", "other candidate", "baseline"
_STYLES = {
    _CHOSEN: {"color": BLUE, "markersize": 10},
    _CANDIDATE: {"color": "white", "markeredgecolor": BLUE, "markeredgewidth": 2},
    _BASELINE: {"color": "white", "markeredgecolor": ORANGE, "markeredgewidth": 2},
}


def candidate_figure(candidates: pd.DataFrame, target: Target) -> Figure:
    """Rows of `MachineFacts.candidates`: a panel per view, a dot per method, the smallest log error at the top."""
    tables = candidate_tables(candidates)
    heights = [0.3 * len(table["rows"]) + 0.6 for table in tables]
    figure = Figure(figsize=(8.2, sum(heights) + 0.8), layout="constrained")
    panels = figure.subplots(len(tables), 1, squeeze=False, sharex=False, height_ratios=heights)[:, 0]
    for axes, table in zip(panels, tables, strict=True):
        found = table["rows"]
        for row, method in enumerate(found):
            dots(axes, [row], [method["mape_ratio"]], is_labelled=True, **_STYLES[_kind(method)])
        errors_axis(
            axes, [method["mape_ratio"] for method in found], [method_name(method["method"]) for method in found]
        )
        axes.set_title(
            f"{table['view']}, from runs on {table['source']}, {table['shots']} shots".replace("$", r"\$"), size=10
        )
    for kind, style in _STYLES.items():
        panels[0].plot([], [], "o", label=kind, **style)
    figure.legend(loc="outside upper center", ncols=len(_STYLES), frameon=False, fontsize=9)
    figure.supxlabel(
        "MAPE on held-out shots, each predicted by a fit that did not see it; smallest log error first", size=8
    )
    return written(figure, target)


def _kind(method: dict[str, object]) -> str:
    if method["is_chosen"]:
        return _CHOSEN
    return _BASELINE if method["is_baseline"] else _CANDIDATE
