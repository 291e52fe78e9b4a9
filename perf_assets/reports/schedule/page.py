"""The page of the scheduling experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

import pandas as pd

from perf_assets.reports.chart import Chart, chart
from perf_assets.reports.results_page import Part, results_page
from perf_assets.reports.schedule import figures
from perf_assets.reports.scores import origin

_TITLE = "Schedules with and without predictions"
_PARTS = ("At full load", "Over loads", "A busy day")


def schedule_page(rows: pd.DataFrame, charts: Sequence[Chart], made_of: str) -> str:
    """The page; `made_of` says what is measured, simulated and predicted."""
    parts = [Part(title, "", [drawn]) for title, drawn in zip(_PARTS, charts, strict=True)]
    return results_page(_TITLE, origin(rows), made_of, parts)


def turnaround_chart(rows: pd.DataFrame, load: float) -> Chart:
    """Strategies at one load."""
    numbers = figures.at_load(rows, load)
    said = "; ".join(
        f"{name} {seconds / 3600:,.1f} hours"
        for name, seconds in zip(numbers["strategy"], numbers["turnaround_mean_seconds_mean"], strict=True)
    )
    return chart(
        "schedule-turnaround",
        f"Mean turnaround and bounded slowdown at load {load:g}, by strategy.",
        f"Bars by strategy. Mean turnaround: {said}.",
        partial(figures.turnaround_by_strategy, rows, load),
        numbers,
    )


def sweep_chart(rows: pd.DataFrame, own_load: float) -> Chart:
    """Strategies over loads."""
    numbers = figures.over_loads(rows)
    names, loads = list(dict.fromkeys(numbers["strategy"])), numbers["load_ratio"]
    return chart(
        "schedule-load-sweep",
        "Mean turnaround over load, by strategy.",
        f"Lines of {', '.join(names)} from load {loads.min():g} to {loads.max():g}.",
        partial(figures.load_sweep, rows, own_load),
        numbers,
    )


def day_chart(panels: Mapping[str, Sequence[figures.GanttBar]], nodes: int, begins: float, ends: float) -> Chart:
    """Which jobs ran on which nodes in a time, by strategy."""
    numbers = pd.DataFrame(
        [{"strategy": name, **asdict(job)} for name, jobs in panels.items() for job in jobs],
        columns=["strategy", *figures.GanttBar.__dataclass_fields__],
    ).rename(columns={"start": "start_seconds", "end": "end_seconds", "nodes": "nodes_count"})
    said = "; ".join(f"{name}: {len(jobs)} jobs" for name, jobs in panels.items())
    return chart(
        "schedule-busy-day",
        "Nodes over the busiest day; seconds are counted from the first submission.",
        f"A rectangle per job, {nodes} nodes over {(ends - begins) / 3600:g} hours. {said}.",
        partial(figures.gantt, panels, nodes, begins, ends),
        numbers,
    )
