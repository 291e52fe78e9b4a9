"""The card of a registered target model, in Markdown: what it is, how to use it, how good it is, and its limits."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from perf_assets.core.text import in_markdown
from perf_assets.reports.machine.findings import chosen_finding
from perf_assets.reports.machine.numbers import by_view, candidate_tables, digits, method_name, times
from perf_assets.reports.site import template

_TEMPLATE = "model_card.md.jinja"


@dataclass(frozen=True)
class CardView:
    """One way in which programs see the machine: with its GPUs, or without."""

    name: str
    reference: str
    """Machine whose runs the model starts from."""
    shots: int
    """Runs on the machine itself that it was fitted to."""
    chosen: str
    """Method."""


@dataclass(frozen=True)
class CardColumn:
    """A column of the table that the model takes, or gives."""

    name: str
    type: str
    is_required: bool = True


@dataclass(frozen=True)
class CardFacts:
    """What the card of a target model is made of."""

    machine: str
    is_simulated: bool
    """Whether runs that it was made from are simulated."""
    views: tuple[CardView, ...]
    candidates: pd.DataFrame
    """Candidates as in `MachineFacts`; empty where there were too few runs to hold some out."""
    coverage_ratio: float
    """Share of the true times that the interval promises to hold."""
    severity: float | None
    """How hard the transfer is, 0 to 1."""
    source_version: int | None
    """Version of `perf-source`."""
    encoder_version: str | None
    """Version of the AMM encoder."""
    manifests_count: int
    manifests_digest: str
    seed: int
    code_version: str
    dagster_run_id: str
    inputs: tuple[CardColumn, ...]
    outputs: tuple[CardColumn, ...]


def model_card(card: CardFacts) -> str:
    """The card, to be stored beside the model."""
    page = template(_TEMPLATE, cell=_cell, method=method_name, times=times, digits=digits)
    tables = _tables(card.candidates)
    return page.render(
        card=card,
        promise=f"{card.coverage_ratio:.0%}",
        outside=f"{1 - card.coverage_ratio:.0%}",
        needed=[column for column in card.inputs if column.is_required],
        optional=[column for column in card.inputs if not column.is_required],
        tables=tables,
        unjudged=[view for view in card.views if view.name not in {table["view"] for table in tables}],
    )


def _tables(candidates: pd.DataFrame) -> list[dict[str, Any]]:
    """A table per view, with what it says and whether a baseline is at least as good as what was chosen."""
    said = {view: chosen_finding(view, here) for view, here in by_view(candidates)}
    return [
        table
        | {
            "finding": said[table["view"]],
            "is_beaten": any(row["is_chosen"] and row["to_baseline"] >= 1 for row in table["rows"]),
        }
        for table in candidate_tables(candidates)
    ]


def _cell(text: object) -> str:
    """Text that stays in its cell: it starts no column, no line and no HTML."""
    return in_markdown(str(text).replace("`", "'"))
