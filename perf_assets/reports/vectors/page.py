"""The page of relative-performance vectors: how good they are, and how the fleet grows."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from perf_assets.core.tables.vectors import PAPER_MACHINES, PAPER_PROTOCOL
from perf_assets.reports.scores import error, origin, percent
from perf_assets.reports.site import Chart, Part, chart, results_page
from perf_assets.reports.vectors import figures as vector_figures
from perf_assets.reports.vectors.numbers import (
    EVERY,
    GROWTH_NAMES,
    MEASURED,
    NAMES,
    PROTOCOLS,
    application_vector,
    drawn_entries,
    grown,
    means_by_application,
    relative_times_by_machine,
    roc_curves,
    shown_app,
)

_TITLE = "Relative-performance vectors"
_LEAD = "From the counters of one run on any machine, its times on all machines, relative to a reference."
_SCORE_TITLES = {
    "r2": "R²",
    "r2_per_machine": "R² per machine",
    "mae_ratio": "mean absolute error",
    "mape_ratio": "MAPE",
    "same_order_ratio": "same order",
    "top1_ratio": "fastest found",
    "regret_ratio": "regret",
    "auc_ratio": "AUC",
}
PAPER = {"vae_dnn": {"r2": 0.81, "order": 0.91}, "random_forest": {"r2": 0.68}, "majority": {"order": 0.80}}
"""Figures of Nichols et al., on their own data."""


def vector_page(scores: pd.DataFrame, parts: Sequence[Part]) -> str:
    """The page; the rows of `eval_vector__scores` say which data it is from."""
    return results_page(_TITLE, origin(scores), _LEAD, parts)


def score_parts(rows: pd.DataFrame, entries: pd.DataFrame, vectors: pd.DataFrame, means: pd.DataFrame) -> list[Part]:
    """Parts made of held-out samples, their entries, all true vectors, and scores by protocol and method."""
    tables = {
        f"Scores, {PROTOCOLS[str(protocol)]}": here[["method", *_SCORE_TITLES]].rename(columns=_SCORE_TITLES)
        for protocol, here in means.assign(method=means["method"].map(_name)).groupby("protocol", sort=False)
        if protocol != PAPER_PROTOCOL
    }
    return [
        Part("Relative performance", "As measured.", [_distribution(vectors), _application(vectors, entries)]),
        Part(
            "Order of machines",
            "Share of samples whose machines are all in the right order; the majority order is the same for all.",
            [orders_chart(rows), _roc(rows)],
            tables,
        ),
        *_beside_the_paper(means),
        Part("Errors of relative times", "", [_errors(rows), _entries(entries)]),
    ]


def _beside_the_paper(means: pd.DataFrame) -> list[Part]:
    """Scores on the four machines of the paper; nothing where the fleet lacks one of them."""
    here = means[means["protocol"] == PAPER_PROTOCOL]
    if here.empty:
        return []
    table = pd.DataFrame(
        {
            "method": here["method"].map(_name),
            "R²": here["r2"],
            "R², paper": here["method"].map({name: figures.get("r2") for name, figures in PAPER.items()}),
            "same order": here["same_order_ratio"],
            "same order, paper": here["method"].map({name: figures.get("order") for name, figures in PAPER.items()}),
            "fastest found": here["top1_ratio"],
            "AUC": here["auc_ratio"],
        }
    )
    machines = ", ".join(PAPER_MACHINES)
    text = (
        f"Only {machines}, the machines of Nichols et al.; 80/20, unseen configurations (the paper splits by sample, "
        "so that a held-out sample may have a sibling of the same configuration in training). The paper's data are not "
        "public: its figures are quoted. A method without a figure of the paper has a dash."
    )
    return [Part("Beside the paper: its four machines", text, [], {"Ours and the paper's": table})]


def growth_part(rows: pd.DataFrame) -> Part:
    """Part made of the rows of `eval_vector__growth`."""
    errors = grown(rows)
    most = errors[errors["shots"] == errors["shots"].max()].groupby("method", sort=False)["median_mape_ratio"].first()
    text = "; ".join(f"{GROWTH_NAMES[str(method)]} {error(value)}" for method, value in most.items())
    drawn = chart(
        "vectors-growth",
        "MAPE of the relative time of a new machine over its runs: medians, and a point for each machine and seed.",
        f"Error over the number of runs on the new machine, a line per method. With the most runs: {text}.",
        partial(vector_figures.growth, rows),
        errors,
    )
    return Part("A machine joins the fleet", "Every machine in turn is left out and joins with a few runs.", [drawn])


def orders_chart(rows: pd.DataFrame) -> Chart:
    """Shares of samples in the right order."""
    numbers = means_by_application(rows, "is_same_order").rename(columns={"is_same_order": "same_order_ratio"})
    return chart(
        "vectors-orders-by-application",
        "Figure 4 of Nichols et al.: machines all in the right order, by application.",
        f"Bars by application and method. Over {_over_all(numbers, 'same_order_ratio')}.",
        partial(vector_figures.orders_by_application, rows),
        numbers,
    )


def _distribution(vectors: pd.DataFrame) -> Chart:
    percentiles = relative_times_by_machine(vectors)
    medians = ", ".join(
        f"{m} {v:.2f}" for m, v in zip(percentiles["target_machine"], percentiles["percentile_50"], strict=True)
    )
    return chart(
        "vectors-relative-by-machine",
        "Figure 2 of Nichols et al.: distribution of relative performance by machine, over all configurations.",
        f"A box per machine from the first to the third quarter of relative times, whiskers from 5 to 95%. Medians: "
        f"{medians}.",
        partial(vector_figures.relative_by_machine, vectors),
        percentiles,
    )


def _application(vectors: pd.DataFrame, entries: pd.DataFrame) -> Chart:
    app = shown_app(vectors)
    vector = application_vector(vectors, entries, app)
    measured = vector[vector["origin"] == MEASURED]
    medians = ", ".join(
        f"{m} {v:.2f}" for m, v in zip(measured["target_machine"], measured["relative_time"], strict=True)
    )
    return chart(
        "vectors-one-application",
        f"Figure 3 of Nichols et al.: the vector of {app}, measured (median, 10 to 90%) and predicted (median), "
        "both of the same unseen configurations.",
        f"Bars by machine, measured and by method. Measured medians: {medians}.",
        partial(vector_figures.vector_of_application, vectors, entries, app),
        vector,
    )


def _errors(rows: pd.DataFrame) -> Chart:
    numbers = means_by_application(rows, "absolute_error")
    return chart(
        "vectors-errors-by-application",
        "Mean absolute error of relative times, by application.",
        f"Bars by application and method. Over {_over_all(numbers, 'absolute_error')}.",
        partial(vector_figures.errors_by_application, rows),
        numbers,
    )


def _entries(entries: pd.DataFrame) -> Chart:
    return chart(
        "vectors-predicted-against-true",
        "Predicted against true relative times of held-out samples.",
        "A row of panels for what was held out, a panel per method, a point per sample and machine.",
        partial(vector_figures.predicted_against_true, entries),
        drawn_entries(entries),
    )


def _roc(rows: pd.DataFrame) -> Chart:
    numbers = roc_curves(rows)
    names = ", ".join(_name(method) for method in dict.fromkeys(numbers["method"]))
    return chart(
        "vectors-majority-roc",
        "Figure 5 of Nichols et al.: ROC of how well each method recognises samples where the majority order holds; a "
        "curve per method, all seeds together.",
        f"ROC curves of {names or 'no method'}; the dashed line is chance.",
        partial(vector_figures.majority_roc, rows),
        numbers,
    )


def _over_all(numbers: pd.DataFrame, column: str) -> str:
    every = numbers[numbers["app"] == EVERY]
    return f"{EVERY}: " + "; ".join(
        f"{PROTOCOLS[str(protocol)]}, "
        + ", ".join(
            f"{_name(method)} {percent(value)}" for method, value in zip(here["method"], here[column], strict=True)
        )
        for protocol, here in every.groupby("protocol", sort=False)
    )


def _name(method: object) -> str:
    return NAMES.get(str(method), str(method))
