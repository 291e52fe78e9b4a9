"""The xAMM experiments as one HTML page without outside parts: tables, pictures, the paper's figures beside ours."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from perf_assets.reports import style as figures
from perf_assets.reports.names import PROTOCOLS, describe, full_name
from perf_assets.reports.scores import ALL, arrow, origin, over_seeds, percent, scenarios
from perf_assets.reports.site import Chart, chart, picture, template
from perf_assets.reports.xamm import maps
from perf_assets.reports.xamm.findings import EMBEDDINGS, INPUTS, MACHINES, OPTIONS, beside_the_paper, findings

_SMALL_DPI = 80
_TEMPLATE = "xamm.html.jinja"
_SECTIONS = (
    (INPUTS, "loao", "Experiment 1: the whole method, with four downstream models"),
    (EMBEDDINGS, "loao", "Experiment 2: which embedding"),
    (MACHINES, "loao", "Experiment 3: AMMs, and other ways to describe machines"),
    (OPTIONS, "loao", "Experiment 4: options of the AMM"),
    (MACHINES, "lomo", "Beyond the paper: how machines are described, unseen machine"),
)


def xamm_page(scores: pd.DataFrame, embeddings: pd.DataFrame) -> str:
    """The page from the rows of `eval_xamm__scores` and `eval_xamm__embeddings`."""
    page = template(_TEMPLATE, arrow=arrow, percent=percent, signed=partial(percent, signed=True))
    return page.render(
        origin=origin(scores),
        seeds=scores["seed"].nunique(),
        applications=sorted(scores.loc[scores["protocol"] == "loao", "held_out"].unique()),
        machines=sorted(scores.loc[scores["protocol"] == "lomo", "held_out"].unique()),
        findings=findings(scores),
        comparisons=beside_the_paper(scores),
        sections=[_section(scores, *section) for section in _SECTIONS if _has(scores, *section[:2])],
        pictures=[_scatter(embeddings, by) for by in ("machine", "app")],
        runs=embeddings.groupby("embedding").size().max(),
    )


def what_it_says(scores: pd.DataFrame) -> str:
    """The findings as a Markdown list."""
    return "\n".join(f"- **{finding.headline}** {finding.detail}" for finding in findings(scores))


def summary_picture(scores: pd.DataFrame) -> bytes:
    """A small picture: how machines are described, for unseen machines."""
    figure = figures.methods_by_scenario(scores, MACHINES, "lomo", io.BytesIO())
    return picture(partial(figures.save, figure, dpi=_SMALL_DPI))


def _section(scores: pd.DataFrame, experiment: str, protocol: str, title: str) -> dict[str, Any]:
    chosen = scores[(scores["experiment"] == experiment) & (scores["protocol"] == protocol)]
    name = full_name if experiment == INPUTS else describe
    means = over_seeds(chosen)
    columns = [*scenarios(chosen), ALL]
    draw: Callable[[figures.Target], object] = (
        partial(figures.trees_by_scenario, scores)
        if experiment == INPUTS
        else partial(figures.methods_by_scenario, scores, experiment, protocol)
    )
    by_fold = chosen[chosen["scenario"] == ALL].pivot_table(
        index="method", columns="held_out", values="mape_ratio", sort=False
    )
    return {
        "title": title,
        "chart": chart(
            f"xamm-{experiment}-{protocol}",
            f"MAPE by method and by kinds of machines, {PROTOCOLS[protocol]}.",
            _words(means, name),
            draw,
            means[means["scenario"].isin(columns[:-1] if experiment == INPUTS else columns)],
        ),
        "columns": columns,
        "rows": _rows(means, name),
        "folds": sorted(by_fold.columns),
        "by_fold": [(name(str(m)), by_fold.loc[m].to_dict()) for m in by_fold.index],
        "best_by_fold": by_fold.min().to_dict(),
    }


def _words(means: pd.DataFrame, name: Callable[[str], str]) -> str:
    ranked = means[means["scenario"] == ALL].sort_values("mape")
    first, last = (f"{percent(row['mape'])}, {name(row['method'])}" for row in (ranked.iloc[0], ranked.iloc[-1]))
    return (
        f"Bars of MAPE of {len(ranked)} methods, a panel for each kind of source and target. Over all pairs the "
        f"smallest is {first}; the largest {last}."
    )


def _scatter(embeddings: pd.DataFrame, by: str) -> Chart:
    names = sorted(embeddings[by].unique())
    what = {"machine": "machine", "app": "application"}[by]
    return chart(
        f"xamm-embeddings-by-{by}",
        f"Coloured by {what}.",
        f"A panel for each embedding, a point for each run, coloured by {what}: {', '.join(names)}.",
        partial(maps.embedding_scatter, embeddings, by),
        embeddings[["embedding", "machine", "app", "x", "y"]],
    )


def _rows(means: pd.DataFrame, name: Callable[[str], str]) -> list[dict[str, Any]]:
    """A row per method with a cell per scenario."""
    best = means.groupby("scenario")["mape"].min()
    rows = []
    for method in dict.fromkeys(means["method"]):
        of_method = means[means["method"] == method].set_index("scenario")
        cells = {
            scenario: {**values, "is_best": values["mape"] == best[scenario]}
            for scenario, values in of_method.to_dict("index").items()
        }
        rows.append({"method": method, "name": name(method), "cells": cells})
    return rows


def _has(scores: pd.DataFrame, experiment: str, protocol: str) -> bool:
    return bool(((scores["experiment"] == experiment) & (scores["protocol"] == protocol)).any())
