"""The page of a comparison of machines as HTML without outside parts."""

import base64
from datetime import datetime
from functools import partial

from perf_assets.core.comparison import MEASURES, WORK_NODE_HOURS, ComparedMachine, Comparison, Estimate
from perf_assets.reports.compare_figures import application_map, intervals
from perf_assets.reports.inline import data_uri
from perf_assets.reports.page import template

_TEMPLATE = "compare.html.jinja"
_SAID = 8
"""Machines that the text in place of a picture can name; the table has them all."""


def compare_page(comparison: Comparison, made_at: datetime) -> str:
    """The page."""
    table = base64.b64encode(comparison.to_csv().encode()).decode()
    return template(_TEMPLATE, interval=_interval).render(
        comparison=comparison,
        made_at=made_at,
        findings=comparison.findings(),
        measures={name: MEASURES[name] for name in comparison.measures},
        work=WORK_NODE_HOURS,
        simulated_count=sum(one.is_simulated for one in comparison.machines),
        words={one.machine: _words(one) for one in comparison.machines},
        intervals=data_uri(partial(intervals, comparison)),
        intervals_words=_said(comparison),
        map=data_uri(partial(application_map, comparison)),
        csv=f"data:text/csv;base64,{table}",
    )


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
