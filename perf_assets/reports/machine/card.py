"""Cards of registered models, in Markdown: of a machine's target model, and of the encoder that describes machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from perf_assets.core.text import in_markdown, markdown_rows
from perf_assets.reports.machine.findings import chosen_finding
from perf_assets.reports.machine.numbers import by_view, candidate_tables, digits, method_name, times
from perf_assets.reports.site import template

if TYPE_CHECKING:
    import pandas as pd


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
    """Content of the card of a target model."""

    machine: str
    is_simulated: bool
    """Whether runs that it was made from are simulated."""
    views: tuple[CardView, ...]
    candidates: pd.DataFrame
    """Candidates as in `MachineFacts`; empty where there were too few runs to hold some out."""
    coverage_ratio: float
    """Share of the true times that the interval promises to hold."""
    severity: float | None
    """Severity of the transfer, 0 (easy) to 1."""
    source_version: int | None
    """Version of `perf-source`."""
    encoder_version: str | None
    """Version of the AMM encoder."""
    manifests_count: int
    manifests_digest: str
    tracking_uri: str
    """Address of MLflow, for the example; without passwords."""
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
    """A table per view, with remarks and whether a baseline is at least as good as the chosen model."""
    chosen_by_view = {view: chosen_finding(view, here) for view, here in by_view(candidates)}
    return [
        table
        | {
            "finding": chosen_by_view[table["view"]],
            "is_beaten": any(row["is_chosen"] and row["to_baseline"] >= 1 for row in table["rows"]),
        }
        for table in candidate_tables(candidates)
    ]


def _cell(text: object) -> str:
    """Text that stays in its cell: it starts no column, no line and no HTML."""
    return in_markdown(str(text).replace("`", "'"))


def encoder_card(
    options: str, machines: Sequence[str], identity: str, tried: "pd.DataFrame", provenance: Mapping[str, str]
) -> str:
    """Markdown: what the encoder is for, what it was made of, how its options were chosen."""
    simulated = "The measurements are simulated. " if provenance.get("is_simulated") == "true" else ""
    chosen = (
        markdown_rows(tried, ".3f")
        if len(tried)
        else "None were compared (too few machines, or a quick training): the paper's option."
    )
    made_of = "\n".join(f"- {name}: {value}" for name, value in provenance.items())
    return f"""# perf-amm: encoder of RAJAPerf results

{simulated}It turns the RAJAPerf kernel times of a machine (one core, all cores, about half of them, GPUs; by problem
size) into an Abstract Machine Model, a vector that source models take as their input. It is frozen: a machine that
comes later is described by it without training anything.

- identity: {identity}
- option of Algorithm 1: {options}
- trained on: {", ".join(machines)}

## Options, by their log error on machines that were held out

{chosen}

## Made of

{made_of}
"""
