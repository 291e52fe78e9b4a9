"""Page of the scheduling experiment with its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perf_assets.reports.scores import origin
from perf_assets.reports.site import Chart, Part, chart, results_page
from perf_assets.reports.style import Target, colours, plain, written

_HOUR = 3600.0
_AS_ASKED, _NARROWER, _KILLED = "#2563a8", "#d9731a", "#d62728"
_AT_LOAD = (
    ("turnaround_mean_seconds", "mean turnaround, hours", _HOUR),
    ("bounded_slowdown_mean", "mean bounded slowdown", 1.0),
)
"""Columns that are drawn at one load, their labels, and the unit in which."""
_SPREAD = ("mean", "min", "max")


@dataclass(frozen=True)
class GanttBar:
    """A job on neighbouring nodes; times in seconds."""

    start: float
    end: float
    first_node: int
    nodes: int
    is_narrower: bool
    was_killed: bool


def at_load(rows: pd.DataFrame, load: float) -> pd.DataFrame:
    """A row per strategy: turnaround and bounded slowdown at a load, mean, min and max over shaken submissions."""
    here = rows[rows["load_ratio"] == load]
    columns = [column for column, _, _ in _AT_LOAD]
    aggregated = here.groupby("strategy", sort=False)[columns].agg(list(_SPREAD))
    aggregated.columns = pd.Index(["_".join(names) for names in aggregated.columns])
    return aggregated.reset_index()


def over_loads(rows: pd.DataFrame) -> pd.DataFrame:
    """Strategy, load and mean turnaround of the trace as it is."""
    return rows.loc[rows["repetition"] == 0, ["strategy", "load_ratio", "turnaround_mean_seconds"]]


def turnaround_by_strategy(rows: pd.DataFrame, load: float, target: Target) -> Figure:
    """Mean turnaround and bounded slowdown at a load: a bar per strategy, whiskers over shaken submissions."""
    here = rows[rows["load_ratio"] == load]
    by_strategy = at_load(rows, load).set_index("strategy")[::-1]
    names = [str(name) for name in by_strategy.index]
    figure = Figure(figsize=(10, 0.42 * len(names) + 1.5), layout="constrained")
    for axes, (column, label, unit) in zip(figure.subplots(1, len(_AT_LOAD), sharey=True), _AT_LOAD, strict=True):
        mean, low, high = (by_strategy[f"{column}_{what}"] / unit for what in _SPREAD)
        colour = [_NARROWER if "moldable" in name else _AS_ASKED for name in names]
        axes.barh(
            range(len(names)), mean, 0.7, xerr=[mean - low, high - mean], color=colour, error_kw={"elinewidth": 1}
        )
        axes.set_xscale("log")
        axes.set_xlim(low.min() / 2, high.max() * 4)
        for place, (value, highest) in enumerate(zip(mean, high, strict=True)):
            axes.annotate(f"{value:,.1f}", (highest, place), (4, 0), textcoords="offset points", va="center", size=8)
        _plain(axes, "x")
        axes.set_xlabel(label)
    figure.axes[0].set_yticks(range(len(names)), names)
    figure.suptitle(f"{_where(rows)}, load {load:g}; whiskers: {here['repetition'].nunique()} shaken traces", size=10)
    return written(figure, target)


def load_sweep(rows: pd.DataFrame, own_load: float, target: Target) -> Figure:
    """Mean turnaround over load, a line per strategy; the trace's own load is marked."""
    turnarounds = over_loads(rows)
    names = list(dict.fromkeys(turnarounds["strategy"]))
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    for name, colour in colours(names).items():
        line = turnarounds[turnarounds["strategy"] == name].sort_values("load_ratio")
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
    if turnarounds["load_ratio"].min() <= own_load <= turnarounds["load_ratio"].max():
        axes.axvline(own_load, color="#888888", linewidth=1, linestyle=":", label="load of the trace")
    axes.set_yscale("log")
    _plain(axes, "y")
    axes.set_xlabel("load: node-seconds that come in / node-seconds there are")
    axes.set_ylabel("mean turnaround, hours")
    axes.set_title(_where(rows), size=10)
    axes.legend(frameon=False, fontsize=8)
    return written(figure, target)


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
    return written(figure, target)


def _where(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    trace = f"{first['trace']} ({'simulated' if first['is_trace_simulated'] else 'measured'})"
    scaling = f"scaling of {first['machine']} ({'simulated' if first['is_simulated'] else 'measured'})"
    return f"{trace} on {first['nodes_count']} nodes, {scaling}"


def _plain(axes: Axes, which: Literal["x", "y"]) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
    plain(axes, which)


_TITLE = "Schedules with and without predictions"
_PARTS = ("At full load", "Over loads", "A busy day")


def schedule_page(rows: pd.DataFrame, charts: Sequence[Chart], made_of: str) -> str:
    """The page; `made_of` says what is measured, simulated and predicted."""
    parts = [Part(title, "", [drawn]) for title, drawn in zip(_PARTS, charts, strict=True)]
    return results_page(_TITLE, origin(rows), made_of, parts)


def turnaround_chart(rows: pd.DataFrame, load: float) -> Chart:
    """Strategies at one load."""
    numbers = at_load(rows, load)
    text = "; ".join(
        f"{name} {seconds / 3600:,.1f} hours"
        for name, seconds in zip(numbers["strategy"], numbers["turnaround_mean_seconds_mean"], strict=True)
    )
    return chart(
        "schedule-turnaround",
        f"Mean turnaround and bounded slowdown at load {load:g}, by strategy.",
        f"Bars by strategy. Mean turnaround: {text}.",
        partial(turnaround_by_strategy, rows, load),
        numbers,
    )


def sweep_chart(rows: pd.DataFrame, own_load: float) -> Chart:
    """Chart of strategies over loads."""
    numbers = over_loads(rows)
    names, loads = list(dict.fromkeys(numbers["strategy"])), numbers["load_ratio"]
    return chart(
        "schedule-load-sweep",
        "Mean turnaround over load, by strategy.",
        f"Lines of {', '.join(names)} from load {loads.min():g} to {loads.max():g}.",
        partial(load_sweep, rows, own_load),
        numbers,
    )


def day_chart(panels: Mapping[str, Sequence[GanttBar]], nodes: int, begins: float, ends: float) -> Chart:
    """Chart of jobs on nodes over a span of time, by strategy."""
    numbers = pd.DataFrame(
        [{"strategy": name, **asdict(job)} for name, jobs in panels.items() for job in jobs],
        columns=["strategy", *GanttBar.__dataclass_fields__],
    ).rename(columns={"start": "start_seconds", "end": "end_seconds", "nodes": "nodes_count"})
    text = "; ".join(f"{name}: {len(jobs)} jobs" for name, jobs in panels.items())
    return chart(
        "schedule-busy-day",
        "Nodes over the busiest day; seconds are counted from the first submission.",
        f"A rectangle per job, {nodes} nodes over {(ends - begins) / 3600:g} hours. {text}.",
        partial(gantt, panels, nodes, begins, ends),
        numbers,
    )
