"""Page of a comparison of machines with its figures; HTML without outside parts."""

import math
from datetime import datetime
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from perf_assets.core.comparison import MEASURES, WORK_NODE_HOURS, ComparedMachine, Comparison, Estimate, Measure
from perf_assets.reports.site import Chart, chart, template
from perf_assets.reports.style import BLUE, GREY, ORANGE, Target, plain, written

AXES: dict[Measure, str] = {
    "relative_time": "time relative to {baseline}",
    "node_hours": "node-hours for what is {work:g} on {baseline}",
    "energy_kwh": "kWh for what is {work:g} node-hours on {baseline}",
    "price": "price of what is {work:g} node-hours on {baseline}",
}
_LONG_AXIS = 6.0
"""Values that differ by more than this factor are drawn on a logarithmic axis."""
_PANELS_A_LINE = 2
_LEAST_REACH = math.log(1.05)
"""Least range of the colours of the map: differences below are nothing to see."""


def intervals(comparison: Comparison, target: Target) -> Figure:
    """A panel for each measure, the one of the ranking first: a row for each machine with its interval and places."""
    measures = sorted(comparison.measures, key=lambda name: name != comparison.ranked_by)
    lines = -(-len(measures) // _PANELS_A_LINE)
    height = (0.36 * len(comparison.machines) + 1.0) * lines + 0.6
    figure = Figure(figsize=(9.0, height), layout="constrained")
    panels = figure.subplots(lines, _PANELS_A_LINE, sharey=True).ravel()
    for axes, measure in zip(panels, measures, strict=False):
        _panel(axes, comparison, measure)
    for axes in panels[len(measures) :]:
        axes.set_axis_off()
    names = [one.machine for one in comparison.machines]
    panels[0].set_yticks(range(len(names)), names, size=9)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    panels[0].plot([], [], "o-", color=BLUE, label="measured, or predicted by the champion")
    panels[0].plot([], [], "o-", color=ORANGE, markerfacecolor="white", label="all or most of it from the prior")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    figure.supxlabel("lines: 90% intervals; at the right: possible places; dashed: today", size=8)
    return written(figure, target)


def _panel(axes: Axes, comparison: Comparison, measure: Measure) -> None:
    by_machine = comparison.of(measure)
    for row, one in enumerate(comparison.machines):
        estimate = by_machine[one.machine]
        is_prior = one.configurations.is_mostly_prior
        colour = ORANGE if is_prior else BLUE
        axes.plot([estimate.lower, estimate.upper], [row, row], color=colour, linewidth=2.4, zorder=2)
        face = "white" if is_prior else colour
        axes.plot(
            [estimate.value], [row], "o", color=colour, markerfacecolor=face, markeredgewidth=2, markersize=7, zorder=3
        )
        axes.annotate(
            estimate.place,
            (1, row),
            (5, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            size=8,
        )
    today = {"relative_time": 1.0, "node_hours": WORK_NODE_HOURS}.get(measure)
    if today is not None:
        axes.axvline(today, color="#555555", linewidth=1, linestyle="--", zorder=1)
    elif comparison.baseline in by_machine:
        axes.axvline(by_machine[comparison.baseline].value, color="#555555", linewidth=1, linestyle="--", zorder=1)
    ends = [end for one in by_machine.values() for end in (one.lower, one.upper)] + ([today] if today else [])
    _axis(axes, min(ends), max(ends))
    axes.set_title(MEASURES[measure], size=10)
    axes.set_xlabel(AXES[measure].format(baseline=comparison.baseline, work=WORK_NODE_HOURS), size=8)


def _axis(axes: Axes, low: float, high: float) -> None:
    """Axis from 0, or logarithmic where values differ widely."""
    if high > _LONG_AXIS * low:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high < 100 * low else (1,)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(low / 1.2, high * 1.2)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlim(0, 1.08 * high)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    axes.tick_params("x", labelsize=8)
    axes.tick_params("y", length=0, labelsize=9)
    plain(axes, "x")


def application_map(comparison: Comparison, target: Target) -> Figure:
    """Machines x applications: relative time with its interval; blue is faster than the baseline, red slower."""
    machines = [one.machine for one in comparison.machines]
    apps = list(comparison.weights)
    cells = {(one.machine, one.app): one for one in comparison.applications}
    logs = np.array([[math.log(cells[machine, app].relative_time.value) for app in apps] for machine in machines])
    figure = Figure(figsize=(1.7 * len(apps) + 2.6, 0.46 * len(machines) + 1.3), layout="constrained")
    axes = figure.subplots()
    reach = max(float(np.abs(logs).max()), _LEAST_REACH)
    image = axes.imshow(logs, aspect="auto", cmap="RdBu_r", norm=TwoSlopeNorm(0.0, -reach, reach))
    for (row, column), value in np.ndenumerate(logs):
        one = cells[machines[row], apps[column]]
        colour = "black" if abs(value) < 0.6 * reach else "white"
        axes.text(column, row - 0.14, f"{one.relative_time.value:.3g}", ha="center", va="center", size=9, color=colour)
        interval = f"{one.relative_time.lower:.3g} to {one.relative_time.upper:.3g}"
        axes.text(column, row + 0.24, interval, ha="center", va="center", size=6.5, color=colour)
    names = [f"{app}\n{comparison.weights[app]:.0%}".replace("$", r"\$") for app in apps]
    axes.set_xticks(range(len(apps)), names, size=9)
    axes.set_yticks(range(len(machines)), machines, size=9)
    axes.tick_params(length=0)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{math.exp(value):.2g}"))
    bar.ax.tick_params(labelsize=7, color=GREY)
    figure.supxlabel(f"time relative to {comparison.baseline}: below 1 is faster", size=8)
    return written(figure, target)


_TEMPLATE = "compare.html.jinja"
_SAID = 8
"""Machines that the text in place of a picture can name; the table has them all."""


def compare_page(comparison: Comparison, made_at: datetime) -> str:
    """The page."""
    return template(_TEMPLATE, interval=_interval).render(
        comparison=comparison,
        made_at=made_at,
        findings=comparison.findings(),
        measures={name: MEASURES[name] for name in comparison.measures},
        work=WORK_NODE_HOURS,
        simulated_count=sum(one.is_simulated for one in comparison.machines),
        words={one.machine: _words(one) for one in comparison.machines},
        intervals=_intervals_chart(comparison),
        map=_map_chart(comparison),
    )


def _intervals_chart(comparison: Comparison) -> Chart:
    whole = comparison.to_frame().query("app == ''").drop(columns=["app", "weight_ratio"]).dropna(axis="columns")
    title = "The whole portfolio on each machine: values, 90% intervals and places."
    return chart("comparison-machines", title, _in_words(comparison), partial(intervals, comparison), whole)


def _map_chart(comparison: Comparison) -> Chart:
    parts = comparison.to_frame().query("app != ''").dropna(axis="columns")
    title = f"Time of each application on each machine relative to {comparison.baseline}."
    words = f"{title} The figures are in the table below."
    return chart("comparison-applications", title, words, partial(application_map, comparison), parts)


def _words(one: ComparedMachine) -> list[tuple[str, str]]:
    """Evidence behind the figures of a machine in words, each with its colour."""
    counts = one.configurations
    every = counts.measured + counts.champion + counts.prior
    if counts.measured == every:
        return [("measured", "good")]
    if counts.prior == every:
        return [("prior only", "bad")]
    kinds = ((counts.measured, "measured", "good"), (counts.champion, "champion", ""), (counts.prior, "prior", "bad"))
    return [(f"{count} {word}", tone) for count, word, tone in kinds if count]


def _interval(estimate: Estimate) -> str:
    return f"{estimate.lower:.3g} to {estimate.upper:.3g}"


def _in_words(comparison: Comparison) -> str:
    """Text in place of the picture."""
    by_machine = comparison.of(comparison.ranked_by)
    start = f"Machines by {MEASURES[comparison.ranked_by]} with 90% intervals"
    if len(by_machine) > _SAID:
        return f"{start}. The figures are in the table below."
    return f"{start}: " + "; ".join(f"{name} {one}, place {one.place}" for name, one in by_machine.items()) + "."
