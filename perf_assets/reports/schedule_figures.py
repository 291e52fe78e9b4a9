"""Pictures of schedules: turnaround by strategy, over loads, and nodes over a busy day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter

from perf_assets.reports.figures import Target, colours, save

_HOUR = 3600.0
_AS_ASKED, _NARROWER, _KILLED = "#2563a8", "#d9731a", "#d62728"


@dataclass(frozen=True)
class GanttBar:
    """A job on neighbouring nodes; times in seconds."""

    start: float
    end: float
    first_node: int
    nodes: int
    is_narrower: bool
    was_killed: bool


def turnaround_by_strategy(rows: pd.DataFrame, load: float, target: Target) -> Figure:
    """Mean turnaround and bounded slowdown at a load: a bar per strategy, whiskers over shaken submissions."""
    here = rows[rows["load_ratio"] == load]
    names = list(dict.fromkeys(here["strategy"]))[::-1]
    figure = Figure(figsize=(10, 0.42 * len(names) + 1.5), layout="constrained")
    shown = (
        ("turnaround_mean_seconds", "mean turnaround, hours", _HOUR),
        ("bounded_slowdown_mean", "mean bounded slowdown", 1.0),
    )
    for axes, (column, label, unit) in zip(figure.subplots(1, len(shown), sharey=True), shown, strict=True):
        found = here.groupby("strategy")[column].agg(["mean", "min", "max"]).loc[names] / unit
        whiskers = [found["mean"] - found["min"], found["max"] - found["mean"]]
        colour = [_NARROWER if "moldable" in name else _AS_ASKED for name in names]
        axes.barh(range(len(names)), found["mean"], 0.7, xerr=whiskers, color=colour, error_kw={"elinewidth": 1})
        axes.set_xscale("log")
        axes.set_xlim(found["min"].min() / 2, found["max"].max() * 4)
        for place, (mean, highest) in enumerate(found[["mean", "max"]].to_numpy(float)):
            axes.annotate(f"{mean:,.1f}", (highest, place), (4, 0), textcoords="offset points", va="center", size=8)
        _plain(axes, "x")
        axes.set_xlabel(label)
    figure.axes[0].set_yticks(range(len(names)), names)
    figure.suptitle(f"{_where(rows)}, load {load:g}; whiskers: {here['repetition'].nunique()} shaken traces", size=10)
    return _written(figure, target)


def load_sweep(rows: pd.DataFrame, own_load: float, target: Target) -> Figure:
    """Mean turnaround over load, a line per strategy; the trace's own load is marked."""
    found = rows[rows["repetition"] == 0]
    names = list(dict.fromkeys(found["strategy"]))
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    for name, colour in colours(names).items():
        line = found[found["strategy"] == name].sort_values("load_ratio")
        style = "--" if "oracle" in name else "-"
        axes.plot(
            line["load_ratio"],
            line["turnaround_mean_seconds"] / _HOUR,
            style,
            marker="o",
            ms=4,
            color=colour,
            label=name,
        )
    if found["load_ratio"].min() <= own_load <= found["load_ratio"].max():
        axes.axvline(own_load, color="#888888", linewidth=1, linestyle=":", label="load of the trace")
    axes.set_yscale("log")
    _plain(axes, "y")
    axes.set_xlabel("load: node-seconds that come in / node-seconds there are")
    axes.set_ylabel("mean turnaround, hours")
    axes.set_title(_where(rows), size=10)
    axes.legend(frameon=False, fontsize=8)
    return _written(figure, target)


def gantt(panels: Mapping[str, Sequence[GanttBar]], nodes: int, begins: float, ends: float, target: Target) -> Figure:
    """Nodes over time: a panel per strategy, a rectangle per job."""
    figure = Figure(figsize=(11, 3.0 * len(panels) + 0.6), layout="constrained")
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, jobs) in zip(grid, panels.items(), strict=True):
        boxes = [
            Rectangle(((job.start - begins) / _HOUR, job.first_node), (job.end - job.start) / _HOUR, job.nodes)
            for job in jobs
        ]
        faces = [_KILLED if job.was_killed else _NARROWER if job.is_narrower else _AS_ASKED for job in jobs]
        axes.add_collection(PatchCollection(boxes, facecolors=faces, edgecolors="white", linewidths=0.4))
        axes.set_xlim(0, (ends - begins) / _HOUR)
        axes.set_ylim(0, nodes)
        axes.set_ylabel("nodes")
        axes.set_title(name, size=10, loc="left")
    grid[-1].set_xlabel(f"hours from {begins / 86_400:.0f} days after the first submission")
    labels = {"as wide as asked for": _AS_ASKED, "on fewer nodes": _NARROWER, "killed": _KILLED}
    handles = [Patch(color=colour, label=label) for label, colour in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return _written(figure, target)


def _where(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    trace = f"{first['trace']} ({'made up' if first['is_trace_simulated'] else 'measured'})"
    scaling = f"scaling of {first['machine']} ({'simulated' if first['is_simulated'] else 'measured'})"
    return f"{trace} on {first['nodes_count']} nodes, {scaling}"


def _plain(axes: Axes, which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(axis="x" if which == "x" else "y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _written(figure: Figure, target: Target) -> Figure:
    save(figure, target, 130)
    return figure
