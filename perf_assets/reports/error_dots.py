"""Dots of errors in rows, one method or machine each; beyond the end of the axis an arrow with its figure."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from perf_assets.reports.scores import error
from perf_assets.reports.style import MOST_MAPE, percent_axis

DOT, ARROW = "o", ">"


def dots(axes: Axes, rows: Sequence[int], ratios: Sequence[float], *, is_labelled: bool = False, **style: Any) -> None:
    """A dot in each row; with `is_labelled` each has its figure beside it, else only those beyond the end."""
    for row, ratio in zip(rows, ratios, strict=True):
        is_beyond = ratio > MOST_MAPE
        place = 100 * min(ratio, MOST_MAPE)
        axes.plot([place], [row], marker=ARROW if is_beyond else DOT, linestyle="", **{"markersize": 8, **style})
        if is_labelled or is_beyond:
            axes.annotate(error(ratio), (place, row), (8, 0), textcoords="offset points", va="center", size=8)


def errors_axis(axes: Axes, ratios: Sequence[float], names: Sequence[str]) -> None:
    """Names of rows from the top down, and percentages that hold all errors up to the end."""
    shown = [100 * min(ratio, MOST_MAPE) for ratio in ratios if ratio == ratio] or [100.0]
    percent_axis(axes, "x", min(shown), max(shown), room=0.2)
    if axes.get_xscale() == "log":
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    # A dollar sign would start a formula.
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names], size=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params("x", labelsize=8)
    axes.tick_params("y", length=0)
