"""Pages of figures and tables in one form, for results that need no more words than these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from perf_assets.reports.chart import Chart
from perf_assets.reports.site import template

_TEMPLATE = "results.html.jinja"
_SMALL = 0.01
"""Numbers below have two digits that count: three places would leave one or none."""


@dataclass(frozen=True)
class Part:
    """A section of a page."""

    title: str
    said: str
    charts: Sequence[Chart]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """By caption; the first column names the row."""


def results_page(title: str, origin: str, lead: str, parts: Sequence[Part], *, is_in_site: bool = True) -> str:
    """The page; `origin` says which data the figures are from. One that is not in the site has no way to its index."""
    return template(_TEMPLATE, cell=_cell).render(
        title=title, origin=origin, lead=lead, shown=parts, is_in_site=is_in_site
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        shown = f"{value:.2g}" if 0 < abs(value) < _SMALL else f"{value:,.3f}"
        return "\N{EN DASH}" if value != value else shown.replace("-", "\N{MINUS SIGN}")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
