"""Pictures of ModelX's table. Every function writes a PNG and returns the drawn figure."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from perf_assets.reports.style import Target, colours, written

METHODS = {
    "product": "product",
    "zero_shot": "zero-shot",
    "linear_probe": "linear probing",
    "fine_tune": "fine-tuning",
    "target_best": "best target-only",
    "oracle_100x": "supervised, 100\N{MULTIPLICATION SIGN} the shots",
}
"""Words by column of errors."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Numbers of shots, from the smallest on; then they come again."""
_ACROSS = 3
"""Panels side by side."""
_TITLE_LENGTH = 44
_FINE = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
"""Marks of an axis that spans less than a factor of ten."""


def severity_against_gain(gains: pd.DataFrame, target: Target) -> Figure:
    """Columns target, shots, severity, gain: a point each; a colour per target, a shape per number of shots."""
    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    colour_of = colours(list(dict.fromkeys(gains["target"])))
    counts = sorted(gains["shots"].unique())
    for (name, shots), here in gains.groupby(["target", "shots"], sort=False):
        marker = _MARKERS[counts.index(shots) % len(_MARKERS)]
        axes.scatter(
            here["severity"], here["gain"], 46, color=colour_of[str(name)], marker=marker, alpha=0.85, linewidths=0,
            label=f"{name}, {shots} shots", zorder=3,
        )  # fmt: skip
    axes.axhline(1, color="#555555", linewidth=1)
    _log_factors(axes, gains["gain"])
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("severity, before any test row is seen: 0 as to itself, 1 nothing in common")
    axes.set_ylabel("gain: error of the best target-only model / of the product")
    _plain(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return written(figure, target)


def learning_curves(rows: pd.DataFrame, target: Target) -> Figure:
    """Columns transfer, shots and those of `METHODS`: a panel per transfer, a line per method."""
    parts = list(rows.groupby("transfer", sort=False))
    across = 2 if len(parts) == 4 else min(_ACROSS, len(parts))
    down = -(-len(parts) // across)
    figure = Figure(figsize=(7.6 if across == 1 else 4.4 * across, 3.3 * down + 0.6), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).ravel()
    colour_of = colours(list(METHODS))
    for axes, (transfer, here) in zip(grid, parts, strict=False):
        ordered = here.sort_values("shots")
        for method, words in METHODS.items():
            is_product = method == "product"
            axes.plot(
                ordered["shots"], ordered[method].where(ordered[method] > 0), marker="o", color=colour_of[method],
                markersize=5 if is_product else 3.5, linewidth=2.6 if is_product else 1.3,
                linestyle="--" if method == "oracle_100x" else "-", label=words, zorder=4 if is_product else 3,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(ordered["shots"].unique().tolist()))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_title(_short(str(transfer)), size=9)
        _plain(axes)
    for axes in grid[len(parts) :]:
        axes.set_axis_off()
    figure.supylabel("mean squared log error", size=9)
    figure.supxlabel("rows of the target that are learned from (shots)", size=9)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return written(figure, target)


def _log_factors(axes: Axes, values: "pd.Series[float]") -> None:
    """A logarithmic axis of factors that holds 1 and all values."""
    low, high = min(float(values.min()), 1.0), max(float(values.max()), 1.0)
    room = max((high / low) ** 0.08, 1.1)
    axes.set_yscale("log")
    axes.set_ylim(low / room, high * room)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high / low >= 10 else _FINE))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}\N{MULTIPLICATION SIGN}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _plain(axes: Axes) -> None:
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _short(title: str) -> str:
    return title if len(title) <= _TITLE_LENGTH else f"…{title[-_TITLE_LENGTH + 1 :]}"
