"""The page of a comparison of machines as HTML without outside parts."""

from datetime import datetime
from functools import partial

from perf_assets.core.comparison import MEASURES, WORK_NODE_HOURS, ComparedMachine, Comparison, Estimate
from perf_assets.reports.chart import Chart, chart
from perf_assets.reports.compare.figures import application_map, intervals
from perf_assets.reports.site import template

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
    return chart("comparison-machines", title, _said(comparison), partial(intervals, comparison), whole)


def _map_chart(comparison: Comparison) -> Chart:
    parts = comparison.to_frame().query("app != ''").dropna(axis="columns")
    title = f"Time of each application on each machine relative to {comparison.baseline}."
    words = f"{title} The figures are in the table below."
    return chart("comparison-applications", title, words, partial(application_map, comparison), parts)


def _words(one: ComparedMachine) -> list[tuple[str, str]]:
    """What the figures of a machine rest on, each with its colour."""
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


def _said(comparison: Comparison) -> str:
    """What the picture shows, for those who cannot see it."""
    found = comparison.of(comparison.ranked_by)
    start = f"Machines by {MEASURES[comparison.ranked_by]} with 90% intervals"
    if len(found) > _SAID:
        return f"{start}. The figures are in the table below."
    return f"{start}: " + "; ".join(f"{name} {one}, place {one.place}" for name, one in found.items()) + "."
