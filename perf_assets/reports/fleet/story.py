"""The worth of a few runs on a machine: error over runs, predicted against measured, and one sentence about both."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perf_assets.reports.fleet.facts import Story
from perf_assets.reports.machine.numbers import records
from perf_assets.reports.scores import error
from perf_assets.reports.site import Chart, chart
from perf_assets.reports.style import BLUE, GREY, ORANGE, Target, colours, plain, written
from perf_assets.reports.xamm.findings import Finding

LINES: Mapping[str, tuple[str, str]] = {
    "ours": ("our model", BLUE),
    "target_only": ("best model of these runs alone (target-only)", ORANGE),
    "unchanged": ("time on the reference machine, unchanged", GREY),
}
"""Column -> name and colour."""
_AXIS_END = 3.0
"""End of the axis of errors, as a ratio: what lies beyond would flatten the rest."""
_LABEL_POINTS = 14.0
"""Least distance of two labels, in points: the height of a line of text."""


def story_finding(story: Story) -> Finding:
    """The worth of a few runs in one sentence, and where it is not so."""
    last = story.last
    middle = {name: float(last[name].median()) for name in LINES}
    fewest, most = int(last["shots"].min()), int(last["shots"].max())
    runs = f"{most} runs" if fewest == most else f"{fewest} to {most} runs"
    machines = "1 machine" if len(last) == 1 else f"{len(last)} machines (median)"
    headline = (
        f"With {runs} each on {machines} our models are {error(middle['ours'])} off on {story.test_runs}; the best "
        f"models of these runs alone {error(middle['target_only'])}, the time unchanged {error(middle['unchanged'])}."
    )
    lost = [
        f"{row['machine']} ({error(row['ours'])}; {LINES[best][0]} {error(row[best])})"
        for row in records(last)
        if (best := _best(row)) != "ours"
    ]
    smallest = f"Ours is the smallest error on {len(last) - len(lost)} of {len(last)}"
    return Finding(headline, f"{smallest}; not on {', '.join(lost)}." if lost else f"{smallest}.")


def _best(row: dict[str, float]) -> str:
    return min(LINES, key=lambda name: row[name] if row[name] == row[name] else np.inf)


def story_charts(story: Story) -> list[Chart]:
    """Error over runs; predicted against measured where single runs are known."""
    charts = [
        chart(
            "few-runs-errors",
            f"Error on {story.test_runs} over the number of runs on the machine.",
            story_finding(story).headline,
            partial(draw_curve, story),
            story.curve,
        )
    ]
    if len(story.runs):
        ratio = (story.runs["predicted_seconds"] / story.runs["measured_seconds"] - 1).abs()
        charts.append(
            chart(
                "few-runs-predicted",
                "Predicted against measured seconds, a point per run that was kept aside.",
                f"{len(ratio)} runs: {(ratio <= 0.1).mean():.0%} within 10%, {(ratio <= 0.25).mean():.0%} within 25%.",
                partial(draw_scatter, story.runs),
                story.runs,
            )
        )
    return charts


def draw_curve(story: Story, target: Target) -> Figure:
    """Three lines, the median over machines; thin ones are single machines."""
    figure = Figure(figsize=(6.2, 4.8), layout="constrained")
    axes = figure.subplots()
    shared = _shared_shots(story.curve)
    ends: dict[str, tuple[float, float]] = {}
    for name, (label, colour) in LINES.items():
        clipped = story.curve.assign(value=100 * story.curve[name].clip(upper=_AXIS_END))
        for _, own in clipped.groupby("machine"):
            axes.plot(own["shots"], own["value"], color=colour, linewidth=0.8, alpha=0.35)
        # A median of some of the machines beside one of all would compare different machines.
        middle = clipped[clipped["shots"].isin(shared)].groupby("shots")["value"].agg(_median_of_all).dropna()
        axes.plot(middle.index, middle, "o-", color=colour, linewidth=2.6, markersize=6, label=label)
        if len(middle):
            ends[colour] = (middle.index[-1], middle.iloc[-1])
    axes.set_xticks(sorted(story.curve["shots"].unique()))
    axes.set_xlabel("runs on the new machine")
    axes.set_ylabel(f"mean error on {story.test_runs}")
    axes.margins(x=0.16)
    _percent_log(axes)
    figure.legend(loc="outside upper center", ncols=1, frameon=False, fontsize=9)
    origin = "simulated fleet" if story.is_simulated else "measured"
    machines = ", ".join(sorted(story.curve["machine"].unique()))
    figure.supxlabel(f"thick: median, where all machines have a value; thin: {machines}; {origin}", size=8)
    _label_ends(figure, axes, ends)
    return written(figure, target)


def _label_ends(figure: Figure, axes: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write the value at the end of each line in its colour, and move labels apart that would cover each other.

    `ends` has the last point of each line (runs, error in percent) by colour.
    """
    figure.draw_without_rendering()
    points = 72 / figure.dpi
    height = {colour: float(axes.transData.transform(end)[1]) * points for colour, end in ends.items()}
    order = sorted(ends, key=lambda colour: height[colour])
    shown = np.array([height[colour] for colour in order])
    for _ in range(len(order)):
        for low in np.flatnonzero(np.diff(shown) < _LABEL_POINTS - 1e-6):
            missing = _LABEL_POINTS - (shown[low + 1] - shown[low])
            shown[low] -= missing / 2
            shown[low + 1] += missing / 2
    for colour, place in zip(order, shown, strict=True):
        axes.annotate(
            error(ends[colour][1] / 100),
            ends[colour],
            (8, place - height[colour]),
            textcoords="offset points",
            va="center",
            color=colour,
            weight="bold",
        )


def _median_of_all(values: "pd.Series[float]") -> float:
    """Median, where every machine has a value."""
    return float(values.median()) if values.notna().all() else np.nan


def _shared_shots(curve: pd.DataFrame) -> list[int]:
    """Numbers of runs that at least half of the machines have: a median of one would not be one."""
    counts = curve.groupby("shots")["machine"].nunique()
    return [int(shots) for shots in counts[counts >= max(1, counts.max() / 2)].index]


def draw_scatter(runs: pd.DataFrame, target: Target, unit: str = "seconds") -> Figure:
    """A point per run, a colour per machine; the band holds what is within a quarter."""
    figure = Figure(figsize=(6.2, 4.8), layout="constrained")
    axes = figure.subplots()
    seconds = runs[["measured_seconds", "predicted_seconds"]]
    ends = np.array([seconds.min().min() / 1.5, seconds.max().max() * 1.5])
    axes.fill_between(ends, ends / 1.25, ends * 1.25, color="#e4eef8", zorder=0, label="within 25%")
    axes.plot(ends, ends, color="#555555", linewidth=1, zorder=1)
    names = sorted(runs["machine"].unique())
    for name, colour in colours(names).items():
        own = runs[runs["machine"] == name]
        axes.plot(own["measured_seconds"], own["predicted_seconds"], ".", color=colour, alpha=0.6, label=name)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set_xlabel(f"measured {unit}")
    axes.set_ylabel(f"predicted {unit}")
    # Within two decades powers of ten alone would be one or two labels.
    labelled = (1, 2, 5) if ends[1] < 100 * ends[0] else (1,)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10, subs=labelled))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    plain(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    return written(figure, target)


def _percent_log(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    plain(axes, "y")
