"""The page of a dataset: its model, how hard the transfer is, how good it is, what to measure next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from perf_assets.core.text import in_markdown
from perf_assets.reports.machine.figures import Shown, candidate_figure, curve_chart, weights_chart
from perf_assets.reports.machine.numbers import method_name
from perf_assets.reports.site import Chart, Part, chart, results_page, template

_CORRESPONDENCES = 25
_NO_REASON = "not there"


@dataclass(frozen=True, eq=False)
class DatasetFacts:
    """Content of the page and the card of a dataset; an empty table has its reason in `missing`."""

    dataset: str
    target_column: str
    sources: tuple[str, ...]
    is_simulated: bool
    is_log: bool
    registered_as: str
    """Name, version and alias, for people."""
    rows_count: int
    chosen: str
    severity: float | None
    candidates: pd.DataFrame
    """Columns seen_as, source, shots, method, mape_ratio, log_rmse, weight, is_chosen."""
    curve: pd.DataFrame
    """Columns target, source, shots, seed, method, mape_ratio."""
    alignment: pd.DataFrame
    """Columns source, source_counter, target_counter, weight, importance, stability; most important first."""
    weights: pd.DataFrame
    """Source features x features of the dataset, of the first source."""
    next_rows: pd.DataFrame
    """Columns rank, source, row, what, error_before, error_after."""
    verdicts: pd.DataFrame
    notes: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


def dataset_page(facts: DatasetFacts) -> str:
    """The page, from tables; a part that is not there shows its reason."""
    parts = [
        _model(facts), _severity(facts), _candidates(facts), _curve(facts), _alignment(facts), _next(facts),
        _verdicts(facts),
    ]  # fmt: skip
    origin = "simulated" if facts.is_simulated else "tables as landed"
    lead = f"{facts.rows_count} rows; predicts {facts.target_column}; adapted from {', '.join(facts.sources)}."
    return results_page(f"Dataset {facts.dataset}", origin, lead, parts)


def _why(facts: DatasetFacts, part: str) -> str:
    return facts.missing.get(part, _NO_REASON)


def _model(facts: DatasetFacts) -> Part:
    text = f"{facts.registered_as}. It is: {method_name(facts.chosen)}."
    notes = pd.DataFrame({"note": list(facts.notes)})
    return Part("The model", text, [], {"How the tables were read": notes} if facts.notes else {})


def _severity(facts: DatasetFacts) -> Part:
    if facts.severity is None:
        return Part("How hard the transfer is", "Rows are too few to tell.", [])
    text = "0: the sources predict these rows as well as their own; 1: they say no more than chance."
    return Part("How hard the transfer is", f"Severity {facts.severity:.2f}. {text}", [])


def _candidates(facts: DatasetFacts) -> Part:
    title = "What was tried"
    if facts.candidates.empty:
        return Part(title, f"No candidate could be judged: {_why(facts, 'candidates')}.", [])
    unit = "log(predicted / true)" if facts.is_log else "predicted - true"
    shown = pd.DataFrame(
        {
            "method": facts.candidates["method"].map(method_name),
            "MAPE": facts.candidates["mape_ratio"],
            f"root mean square of {unit}": facts.candidates["log_rmse"],
            "probability": facts.candidates["weight"].astype(float),
            "predicts": ["yes" if chosen else "" for chosen in facts.candidates["is_chosen"]],
        }
    )
    drawn = chart(
        f"{facts.dataset}-candidates",
        "Errors on rows that were left out, beside baselines.",
        f"{len(shown)} methods; the smallest error has {shown['method'].iloc[0]}.",
        partial(candidate_figure, facts.candidates),
        facts.candidates,
    )
    text = "Each row is predicted by a fit that did not see it. Probability: of a use of the sources, given the rows."
    return Part(title, text, [drawn], {"Errors on rows that were left out": shown})


def _curve(facts: DatasetFacts) -> Part:
    title = "Learning curve"
    if facts.curve.empty:
        return Part(title, f"Not there: {_why(facts, 'curve')}.", [])
    charts: list[Chart] = [curve_chart(facts.dataset, facts.curve, Shown.ERROR)]
    medians = facts.curve.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median")
    table = medians.rename(index=method_name).rename(columns=lambda shots: f"{shots} rows").reset_index()
    return Part(title, "Errors on test rows, over the number of rows learned from.", charts, {"Median MAPE": table})


def _alignment(facts: DatasetFacts) -> Part:
    title = "Which feature stands for which"
    if facts.alignment.empty:
        return Part(title, f"Not there: {_why(facts, 'alignment')}.", [])
    charts = [weights_chart(facts.dataset, facts.sources[0], facts.weights)] if facts.weights.size else []
    text = (
        "Weight: standard deviations of the source's feature per standard deviation of ours. Stability: share of folds."
    )
    return Part(title, text, charts, {"Most important first": facts.alignment.head(_CORRESPONDENCES)})


def _next(facts: DatasetFacts) -> Part:
    title = "What to measure next"
    if facts.next_rows.empty:
        return Part(title, f"Not known: {_why(facts, 'next_rows')}.", [])
    return Part(
        title, "What ran in the sources and would say most about the rest.", [], {"Best first": facts.next_rows}
    )


def _verdicts(facts: DatasetFacts) -> Part:
    columns = ["version", "decision", "shots", "log_rmse", "champion_log_rmse", "target_only_log_rmse", "reason"]
    shown = facts.verdicts[::-1][columns].astype({name: float for name in columns if name.endswith("rmse")})
    return Part("Model history", "", [], {"Newest first": shown})


_TEMPLATE = "dataset_card.md.jinja"


@dataclass(frozen=True, eq=False)
class DatasetCard:
    """Content of the card."""

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
