"""Pages of figures and tables in one form, for results that need no more words than these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from perf_assets.reports.chart import Chart
from perf_assets.reports.page import template

_TEMPLATE = "results.html.jinja"


@dataclass(frozen=True)
class Part:
    """A section of a page."""

    title: str
    said: str
    charts: Sequence[Chart]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """By caption; the first column names the row."""


def results_page(title: str, origin: str, lead: str, parts: Sequence[Part]) -> str:
    """The page; `origin` says which data the figures are from."""
    return template(_TEMPLATE, cell=_cell).render(title=title, origin=origin, lead=lead, shown=parts)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "\N{EN DASH}" if value != value else f"{value:,.3f}".replace("-", "\N{MINUS SIGN}")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
