"""Pictures of relative-performance vectors: Figures 2 to 5 of Nichols et al., errors of ours, and a growing fleet."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perf_assets.reports.style import Target, colours, plain, written
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
    method_names,
    relative_times_by_machine,
    roc_curves,
    shown_app,
)


def relative_by_machine(vectors: pd.DataFrame, target: Target) -> Figure:
    """Figure 2: distribution of relative performance by machine; boxes from quarter to quarter, whiskers 5 to 95%."""
    percentiles = relative_times_by_machine(vectors)
    figure = Figure(figsize=(max(4.2, 0.8 * len(percentiles) + 1.2), 3.6), layout="constrained")
    axes = figure.subplots()
    boxes = [
        {
            "label": row["target_machine"],
            "whislo": row["percentile_5"],
            "q1": row["percentile_25"],
            "med": row["percentile_50"],
            "q3": row["percentile_75"],
            "whishi": row["percentile_95"],
            "fliers": [],
        }
        for row in percentiles.to_dict("records")
    ]
    axes.bxp(boxes, showfliers=False, medianprops={"color": "#333333"})
    axes.tick_params(axis="x", labelrotation=30, labelsize=8)
    axes.set_ylabel("time, relative to the reference", size=9)
    plain(axes)
    return written(figure, target)


def vector_of_application(vectors: pd.DataFrame, entries: pd.DataFrame, app: str, target: Target) -> Figure:
    """Figure 3: the vector of one application, measured (median, 10 to 90%) and predicted for unseen configurations."""
    vector = application_vector(vectors, entries, app)
    machines, origins = sorted(vector["target_machine"].unique()), list(dict.fromkeys(vector["origin"]))
    figure = Figure(figsize=(max(4.8, 0.9 * len(machines) + 1.5), 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.84 / len(origins)
    for number, (origin, colour) in enumerate(colours(origins).items()):
        here = vector[vector["origin"] == origin].set_index("target_machine").reindex(machines)
        places = np.arange(len(machines)) + (number - (len(origins) - 1) / 2) * width
        middle = here["relative_time"].to_numpy(float)
        axes.bar(places, middle, width, color=colour, label=origin)
        if origin == MEASURED:
            ends = [middle - here["lower_relative_time"], here["upper_relative_time"] - middle]
            axes.errorbar(places, middle, np.vstack(ends), fmt="none", ecolor="#333333", linewidth=1)
    axes.set_xticks(range(len(machines)), machines, rotation=30, ha="right", size=8)
    axes.set_ylabel(f"time of {app}, relative to the reference", size=9)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    plain(axes)
    return written(figure, target)


def predicted_against_true(entries: pd.DataFrame, target: Target) -> Figure:
    """Every entry of the held-out vectors; a row per protocol, a column per method."""
    drawn = drawn_entries(entries)
    methods, protocols = method_names(drawn), list(dict.fromkeys(drawn["protocol"]))
    figure = Figure(figsize=(3.5 * len(methods), 3.4 * len(protocols)), layout="constrained")
    grid = figure.subplots(len(protocols), len(methods), squeeze=False, sharex=True, sharey=True)
    machines = sorted(entries["target_machine"].unique())
    colour = colours(machines)
    for line, protocol in zip(grid, protocols, strict=True):
        for axes, method in zip(line, methods, strict=True):
            here = entries[(entries["protocol"] == protocol) & (entries["method"] == method)]
            error = ((here["predicted_relative_time"] - here["relative_time"]) ** 2).sum()
            spread = ((here["relative_time"] - here["relative_time"].mean()) ** 2).sum()
            shown = drawn[(drawn["protocol"] == protocol) & (drawn["method"] == method)]
            axes.scatter(
                shown["relative_time"],
                shown["predicted_relative_time"],
                5,
                color=[colour[name] for name in shown["target_machine"]],
                alpha=0.5,
                linewidths=0,
            )
            axes.axline((0.5, 0.5), slope=1, color="#333333", linewidth=1)
            low, high = (float(end) for end in here["relative_time"].quantile([0.002, 0.998]))
            axes.set(xlim=(0.9 * low, 1.05 * high), ylim=(0.9 * low, 1.05 * high))
            axes.set_title(f"{NAMES.get(method, method)}: R² {1 - error / spread:.2f}", size=10)
            plain(axes)
        line[0].set_ylabel(f"predicted, {PROTOCOLS[protocol]}", size=9)
    figure.supxlabel("true time, relative to the reference", size=9)
    for name in machines:
        grid[0][0].scatter([], [], 20, color=colour[name], label=name)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    return written(figure, target)


def majority_roc(rows: pd.DataFrame, target: Target) -> Figure:
    """Figure 5: does the majority order hold? A panel per protocol, a curve per method, all seeds together."""
    figure, panels = _panels(rows, 3.9)
    curves, colour = roc_curves(rows), colours(method_names(rows))
    for axes, protocol in panels:
        for method, curve in curves[curves["protocol"] == protocol].groupby("method", sort=False):
            name = str(method)
            misses, hits = curve["false_positive_ratio"].to_numpy(float), curve["true_positive_ratio"].to_numpy(float)
            area = float(np.trapezoid(hits, misses))
            axes.plot(misses, hits, color=colour[name], label=f"{NAMES.get(name, name)}: AUC {area:.2f}")
        axes.plot([0, 1], [0, 1], "--", color="#999999", linewidth=1)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        axes.set_xlabel("said to hold where it does not", size=9)
    panels[0][0].set_ylabel("said to hold where it does", size=9)
    return written(figure, target)


def errors_by_application(rows: pd.DataFrame, target: Target) -> Figure:
    """Mean absolute error of the vectors of each application, a bar per method."""
    return _bars_by_application(rows, "absolute_error", "mean absolute error of relative times", target)


def orders_by_application(rows: pd.DataFrame, target: Target) -> Figure:
    """Figure 4: share of samples whose machines are all in the right order, beside the majority order."""
    return _bars_by_application(rows, "is_same_order", "machines all in the right order", target, is_share=True)


def growth(rows: pd.DataFrame, target: Target) -> Figure:
    """Leave one machine out: error over the number of shots, median over machines and seeds; points are machines."""
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    errors = grown(rows)
    methods = [name for name in GROWTH_NAMES if (errors["method"] == name).any()]
    for method, colour in colours(methods).items():
        here = errors[errors["method"] == method]
        medians = here.groupby("shots")["median_mape_ratio"].first()
        axes.plot(range(len(medians)), 100 * medians.to_numpy(), "o-", color=colour, label=GROWTH_NAMES[method])
        places = {shots: place for place, shots in enumerate(medians.index)}
        axes.scatter([places[s] for s in here["shots"]], 100 * here["mape_ratio"], 10, color=colour, alpha=0.35)
        axes.set_xticks(range(len(medians)), [str(shots) for shots in medians.index])
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("runs on the new machine (shots)")
    axes.set_ylabel("MAPE of its relative time")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    plain(axes)
    return written(figure, target)


def draw_all(rows: pd.DataFrame, entries: pd.DataFrame, vectors: pd.DataFrame, folder: Path) -> list[Path]:
    """All pictures of an evaluation, as PNG files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    app = shown_app(vectors)
    for name, draw in (
        ("vector_figure2_relative_by_machine", partial(relative_by_machine, vectors)),
        ("vector_figure3_one_application", partial(vector_of_application, vectors, entries, app)),
        ("vector_figure4_orders_by_application", partial(orders_by_application, rows)),
        ("vector_figure5_majority_roc", partial(majority_roc, rows)),
        ("vector_predicted_against_true", partial(predicted_against_true, entries)),
        ("vector_errors_by_application", partial(errors_by_application, rows)),
    ):
        path = folder / f"{name}.png"
        draw(path)
        drawn.append(path)
    return drawn


def _bars_by_application(
    rows: pd.DataFrame, column: str, title: str, target: Target, *, is_share: bool = False
) -> Figure:
    figure, panels = _panels(rows, 3.8, width=max(5.0, 0.9 * rows["app"].nunique() + 1.5))
    methods, every = method_names(rows), means_by_application(rows, column)
    width = 0.84 / len(methods)
    for axes, protocol in panels:
        means = every[every["protocol"] == protocol].pivot(index="app", columns="method", values=column)
        means = means.loc[[*(app for app in means.index if app != EVERY), EVERY]]
        for number, (method, colour) in enumerate(colours(methods).items()):
            places = np.arange(len(means)) + (number - (len(methods) - 1) / 2) * width
            axes.bar(places, means[method].to_numpy(), width, color=colour, label=NAMES.get(method, method))
        axes.set_xticks(range(len(means)), [str(app) for app in means.index], rotation=30, ha="right", size=8)
        axes.axvline(len(means) - 1.5, color="#bbbbbb", linewidth=1)
        if is_share:
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
        plain(axes)
    panels[0][0].set_ylabel(title, size=9)
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3 * len(panels), frameon=False, fontsize=8)
    return written(figure, target)


def _panels(rows: pd.DataFrame, height: float, width: float = 4.2) -> tuple[Figure, list[tuple[Axes, str]]]:
    protocols = list(dict.fromkeys(rows["protocol"]))
    figure = Figure(figsize=(width * len(protocols), height), layout="constrained")
    grid: Sequence[Axes] = figure.subplots(1, len(protocols), squeeze=False)[0]
    panels = []
    for axes, protocol in zip(grid, protocols, strict=True):
        axes.set_title(PROTOCOLS[protocol], size=10)
        panels.append((axes, protocol))
    return figure, panels
