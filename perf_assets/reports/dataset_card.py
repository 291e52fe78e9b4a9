"""The card of a registered model of a dataset, in Markdown."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from perf_assets.core.text import in_markdown
from perf_assets.reports.machine.numbers import method_name
from perf_assets.reports.site import template

_TEMPLATE = "dataset_card.md.jinja"


@dataclass(frozen=True, eq=False)
class DatasetCard:
    """What the card is made of."""

    name: str
    """Under which it is registered."""
    dataset: str
    target_column: str
    sources: tuple[str, ...]
    is_simulated: bool
    rows_count: int
    chosen: str
    severity: float | None
    columns: Mapping[str, bool]
    """Columns that it looks at, and whether they hold words."""
    candidates: pd.DataFrame
    """Columns method, mape_ratio, log_rmse; empty where there were too few rows to hold some out."""
    provenance: Mapping[str, str]


def dataset_card(card: DatasetCard) -> str:
    """The card, to be stored beside the model."""
    page = template(_TEMPLATE, cell=_cell, method=method_name)
    return page.render(card=card, candidates=card.candidates.to_dict("records"))


def _cell(text: object) -> str:
    """Text that stays in its cell: it starts no column, no line and no HTML."""
    return in_markdown(str(text).replace("`", "'"))
