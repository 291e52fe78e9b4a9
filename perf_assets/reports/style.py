"""Style that all figures share; bars and dots of errors. Every drawing function writes a PNG and returns the figure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from perf_assets.reports.names import TREES, describe, full_name, split
from perf_assets.reports.scores import ALL, arrow, error, over_seeds, percent, scenarios

Target = Path | IO[bytes]
_POWER = re.compile(r"\$\\mathdefault\{[-0-9.{}^]*\}\$")
"""Powers as matplotlib writes them beside logarithmic axes."""
_PALETTE = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#111111"),
    *("#000080", "#7fd67f", "#f2a6a6", "#c5a3e8", "#006d5b", "#ffbf00", "#9a9a9a", "#800000", "#66b3ff", "#5c5c00"),
)
DPI = 130
GREY = "#9aa5b1"
BLUE = "#2563a8"
ORANGE = "#d9731a"
_LABEL_ROOM = 0.5
"""Room for the text beside the longest bar, as a part of its length."""
_WIDE_RANGE = 8.0
"""Values that differ by more than this factor are drawn on a logarithmic axis."""
MOST_MAPE = 10.0
"""End of an axis of errors, unless the product is above it: what lies beyond would flatten the rest."""


def trees_by_scenario(scores: pd.DataFrame, target: Target) -> Figure:
    """Experiment `raw_vs_embedding_vs_amm`: a panel per scenario, a group per downstream model, a bar per input."""
    means = over_seeds(scores[scores["experiment"] == "raw_vs_embedding_vs_amm"])
    means[["input", "trees"]] = [split(method) for method in means["method"]]
    panels, inputs = scenarios(means), list(dict.fromkeys(means["input"]))
    trees = [name for name in TREES if (means["trees"] == name).any()]
    figure = Figure(figsize=(2.6 * len(panels) + 0.8, 3.8), layout="constrained")
    for axes, scenario in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        here = means[means["scenario"] == scenario].set_index(["input", "trees"])
        width = 0.8 / len(inputs)
        for number, name in enumerate(inputs):
            values = here.loc[name].reindex(trees)
            places = [group + (number - (len(inputs) - 1) / 2) * width for group in range(len(trees))]
            axes.bar(
                places,
                100 * values["mape"],
                width,
                yerr=100 * values["spread"].where(values["seeds"] > 1),
                color=(GREY, BLUE, ORANGE)[number],
                label=describe(name),
                error_kw={"elinewidth": 1, "capsize": 2},
            )
        axes.set_xticks(range(len(trees)), [TREES[name] for name in trees], rotation=20, ha="right")
        axes.set_title(arrow(scenario))
        axes.set_ylabel("MAPE" if axes.get_subplotspec().is_first_col() else "")
        _percent_axis(axes, "y", here)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(inputs), frameon=False)
    return written(figure, target)


def methods_by_scenario(scores: pd.DataFrame, experiment: str, protocol: str, target: Target) -> Figure:
    """An experiment: a panel per scenario and one for all, a bar per method; the best one stands out."""
    means = over_seeds(scores[(scores["experiment"] == experiment) & (scores["protocol"] == protocol)])
    methods = list(dict.fromkeys(means["method"]))[::-1]
    panels = [*scenarios(means), ALL]
    figure = Figure(figsize=(1.7 * len(panels) + 2.5, 0.3 * len(methods) + 1.1), layout="constrained")
    rows = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    trees = {split(name)[1] for name in methods} - {""}
    name_of = describe if len(trees) <= 1 else full_name
    most_seeds = means["seeds"].max()
    for axes, scenario in zip(rows, panels, strict=True):
        here = means[means["scenario"] == scenario].set_index("method").reindex(methods)
        best = here["mape"].min()
        axes.barh(
            range(len(methods)),
            100 * here["mape"],
            0.7,
            xerr=100 * here["spread"].where(here["seeds"] > 1),
            color=[ORANGE if value == best else BLUE for value in here["mape"]],
            error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#333333"},
        )
        axes.plot(100 * here["median"], range(len(methods)), "o", color="white", markeredgecolor="black", ms=4)
        _percent_axis(axes, "x", here, room_for_text=True)
        for place, (mape, spread, seeds, median) in enumerate(
            here[["mape", "spread", "seeds", "median"]].to_numpy(float)
        ):
            if mape == mape:
                text = percent(mape) + ("†" if seeds < most_seeds else "")
                end = 100 * max(mape + spread, median)
                axes.annotate(text, (end, place), (4, 0), textcoords="offset points", va="center", size=7)
        axes.set_title("all pairs" if scenario == ALL else arrow(scenario), size=10)
        axes.tick_params("x", labelsize=7)
    rows[0].set_yticks(range(len(methods)), [name_of(name) for name in methods], size=8)
    notes = ["MAPE, mean over held-out folds", "circles: median over folds"]
    notes += [f"whiskers: standard deviation over {most_seeds} seeds"] if most_seeds > 1 else []
    notes += [f"† fewer seeds: {means['seeds'].min()}"] if means["seeds"].min() < most_seeds else []
    notes += [f"trees: {TREES[name]}" for name in sorted(trees)]
    figure.supxlabel("; ".join(notes), size=8)
    return written(figure, target)


def _percent_axis(axes: Axes, which: Literal["x", "y"], means: pd.DataFrame, *, room_for_text: bool = False) -> None:
    """Percentages from below the smallest mean or median to above the largest, with its spread."""
    low = 100 * means[["mape", "median"]].min().min()
    high = 100 * max((means["mape"] + means["spread"]).max(), means["median"].max())
    percent_axis(axes, which, low, high, room=_LABEL_ROOM if room_for_text else 0.1)


def percent_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float, *, room: float) -> None:
    """Percentages; logarithmic where values differ widely, and then from below the smallest.

    The room beyond the largest is a part of the length of the axis.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    if high > _WIDE_RANGE * low > 0:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(10, numticks=4))
        start = low / 2
        limits = (start, high * max((high / start) ** room, 1.3))
    else:
        axis.set_major_locator(MaxNLocator(3 if which == "x" else 6))
        limits = (0.0, high * (1 + room))
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}%" if value >= 1 else f"{value:g}%"))
    axis.set_minor_formatter(NullFormatter())
    plain(axes, which)


def plain(axes: Axes, which: Literal["both", "x", "y"] = "both") -> None:
    """A grid behind what is drawn, and no frame at the top and at the right."""
    axes.grid(axis=which, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def written(figure: Figure, target: Target) -> Figure:
    """The figure, stored as PNG."""
    save(figure, target, DPI)
    return figure


def save(figure: Figure, target: Target, dpi: int) -> None:
    """Store a figure as PNG; a name with dollars in it is not a formula, which could be wrong and stop the drawing."""
    for text in figure.findobj(Text):
        words = text.get_text()
        if is_math_text(words) and not _POWER.fullmatch(words):
            text.set_parse_math(False)
    figure.savefig(target, dpi=dpi, format="png")


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: those of the palette in turn, again from the first when all are used."""
    return {name: _PALETTE[number % len(_PALETTE)] for number, name in enumerate(names)}


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
