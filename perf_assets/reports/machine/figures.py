"""Pictures of transfer to a machine. Every function writes a PNG and returns the drawn figure."""

from enum import Enum
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from perf_assets.reports.machine.numbers import (
    GAIN_SHOTS,
    METHODS,
    PRODUCT,
    candidate_tables,
    is_target_only,
    method_name,
    methods_of,
    over_seeds,
    rank_correlation,
    transfer_gains,
)
from perf_assets.reports.scores import error, origin
from perf_assets.reports.site import Chart, chart
from perf_assets.reports.style import BLUE, GREY, MOST_MAPE, ORANGE, Target, colours, dots, errors_axis, plain, written

_CHOSEN, _CANDIDATE, _BASELINE = "chosen", "other candidate", "baseline"
_STYLES = {
    _CHOSEN: {"color": BLUE, "markersize": 10},
    _CANDIDATE: {"color": "white", "markeredgecolor": BLUE, "markeredgewidth": 2},
    _BASELINE: {"color": "white", "markeredgecolor": ORANGE, "markeredgewidth": 2},
}


def candidate_figure(candidates: pd.DataFrame, target: Target) -> Figure:
    """Rows of `MachineFacts.candidates`: a panel per view, a dot per method, the smallest log error at the top."""
    tables = candidate_tables(candidates)
    heights = [0.3 * len(table["rows"]) + 0.6 for table in tables]
    figure = Figure(figsize=(8.2, sum(heights) + 0.8), layout="constrained")
    panels = figure.subplots(len(tables), 1, squeeze=False, sharex=False, height_ratios=heights)[:, 0]
    for axes, table in zip(panels, tables, strict=True):
        methods = table["rows"]
        for row, method in enumerate(methods):
            dots(axes, [row], [method["mape_ratio"]], is_labelled=True, **_STYLES[_kind(method)])
        errors_axis(
            axes, [method["mape_ratio"] for method in methods], [method_name(method["method"]) for method in methods]
        )
        axes.set_title(
            f"{table['view']}, from runs on {table['source']}, {table['shots']} shots".replace("$", r"\$"), size=10
        )
    for kind, style in _STYLES.items():
        panels[0].plot([], [], "o", label=kind, **style)
    figure.legend(loc="outside upper center", ncols=len(_STYLES), frameon=False, fontsize=9)
    figure.supxlabel(
        "MAPE on held-out shots, each predicted by a fit that did not see it; smallest log error first", size=8
    )
    return written(figure, target)


def _kind(method: dict[str, object]) -> str:
    if method["is_chosen"]:
        return _CHOSEN
    return _BASELINE if method["is_baseline"] else _CANDIDATE


_STORY = {PRODUCT: BLUE, "source_unchanged": GREY, "target_only": ORANGE}
NOMINAL = 0.90
GOAL = (0.85, 0.95)
"""Coverage that an interval of nominally 90% should have."""
MOST_COUNTERS = 60
"""Counters on each side of a heat map: more could not be read."""
_WIDE_RANGE = 8.0
"""Values that differ by more than this factor are drawn on a logarithmic axis."""
_NAME_LENGTH = 34
_FACTORS = [factor * 10.0**power for power in range(-4, 10) for factor in (1, 2, 5)]


def learning_curve(curve: pd.DataFrame, target: Target) -> Figure:
    """Rows of `eval_transfer__scores`: a panel per target, a line per method (median), bands from lowest to highest."""
    spreads = over_seeds(curve, "mape_ratio")
    figure, panels = _panels(spreads, 4.2)
    for axes, (_, here) in panels:
        _lines(axes, here, "median")
        _error_axis(axes, here)
    panels[0][0].set_ylabel("MAPE on the test rows")
    _legend(figure, panels[0][0])
    note = f"runs on the target (shots); lines: median, bands: lowest to highest of {_seeds(spreads)}; {origin(curve)}"
    figure.supxlabel(note, size=8)
    return written(figure, target)


def calibration(curve: pd.DataFrame, target: Target) -> Figure:
    """Share of test rows inside the 90% interval, of the methods that have one."""
    spreads = over_seeds(curve, "coverage_90_ratio")
    figure, panels = _panels(spreads, 3.6)
    for axes, (_, here) in panels:
        axes.axhspan(100 * GOAL[0], 100 * GOAL[1], color="#e4f2e7", zorder=0)
        axes.axhline(100 * NOMINAL, color="#14713d", linewidth=1, linestyle="--", label="nominal 90% (band: 85 to 95%)")
        _lines(axes, here, "mean")
        axes.set_ylim(max(0, 100 * min(here["lowest"].min(), GOAL[0]) - 5), 102)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
    panels[0][0].set_ylabel("test rows inside the interval")
    _legend(figure, panels[0][0])
    note = f"runs on the target (shots); lines: mean, bands: lowest to highest of {_seeds(spreads)}; {origin(curve)}"
    figure.supxlabel(note, size=8)
    return written(figure, target)


def alignment_heat_map(weights: pd.DataFrame, target: Target) -> Figure:
    """Source counters x target counters, as `drawn_weights` has them. A dot marks the largest weight of a row."""
    shown = drawn_weights(weights)
    height, width = shown.shape
    wide, high = (float(np.clip(8.4 / count, 0.14, 0.32)) for count in (width, height))
    names = [[_short(str(name)) for name in axis] for axis in (shown.index, shown.columns)]
    rooms = [0.065 * max(map(len, side)) for side in names]
    figure = Figure(figsize=(wide * width + rooms[0] + 1.2, high * height + rooms[1] + 0.6), layout="constrained")
    axes = figure.subplots()
    values = shown.to_numpy(float)
    most = float(np.abs(values).max()) or 1.0
    image = axes.imshow(values, aspect="auto", cmap="RdBu_r", vmin=-most, vmax=most)
    strongest = np.abs(values).argmax(axis=1)
    axes.scatter(strongest, range(height), 5, color="#111111", edgecolors="white", linewidths=0.5)
    axes.set_yticks(range(height), names[0], size=7)
    axes.set_xticks(range(width), names[1], size=7, rotation=90)
    axes.hlines(np.arange(1, height) - 0.5, -0.5, width - 0.5, color="#e6e6e6", linewidth=0.4)
    axes.vlines(np.arange(1, width) - 0.5, -0.5, height - 0.5, color="#e6e6e6", linewidth=0.4)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel(_counted("source counters", height, weights.shape[0]), size=9)
    axes.set_xlabel(_counted("target counters", width, weights.shape[1]), size=9)
    bar = figure.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    bar.set_label("weight", size=8)
    bar.ax.tick_params(labelsize=7)
    return written(figure, target)


def drawn_weights(weights: pd.DataFrame) -> pd.DataFrame:
    """Source counters x target counters; target counters stand in the order of the source counters they stand in for.

    Of more than 60 source counters the first, of more than 60 target counters those with the largest weights in these.
    """
    first = weights.iloc[:MOST_COUNTERS]
    largest = np.argsort(-first.abs().max(axis=0).to_numpy(float), kind="stable")[:MOST_COUNTERS]
    shown = first.iloc[:, np.sort(largest)]
    return shown.iloc[:, np.argsort(np.abs(shown.to_numpy(float)).argmax(axis=0), kind="stable")]


def severity_against_gain(matrix: pd.DataFrame, target: Target) -> Figure:
    """Rows of `eval_transfer__matrix`: a point per ordered pair of machines, with their rank correlation."""
    gains = transfer_gains(matrix)
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.scatter(gains["severity_ratio"], gains["gain"], 26, alpha=0.7, linewidths=0, zorder=3)
    axes.axhline(0, color="#555555", linewidth=1)
    reach = float(gains["gain"].abs().max()) if len(gains) else 1.0
    ticks = [factor for factor in _FACTORS if reach < np.log(50) or f"{factor:e}".startswith("1.")]
    axes.yaxis.set_major_locator(FixedLocator([float(np.log(factor)) for factor in ticks]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{np.exp(value):,.4g}\N{MULTIPLICATION SIGN}"))
    low, high = (float(end) for end in (gains["gain"].min(), gains["gain"].max())) if len(gains) else (-1.0, 1.0)
    room = 0.08 * max(high - low, 1.0)
    axes.set_ylim(min(low, 0) - room, max(high, 0) + room)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("severity, 0 at the floor and 1 at the ceiling")
    axes.set_ylabel(
        "gain: best target-only MAPE / MAPE of the product\n(log scale; below 1\N{MULTIPLICATION SIGN} transfer harms)"
    )
    plain(axes)
    correlation = rank_correlation(gains["severity_ratio"], gains["gain"])
    shown = "not defined" if correlation is None else f"{correlation:+.2f}".replace("-", "\N{MINUS SIGN}")
    axes.set_title(
        f"Severity against gain at {GAIN_SHOTS} shots, {len(gains)} pairs: rank correlation {shown} ({origin(matrix)})",
        size=10,
    )
    return written(figure, target)


def _panels(spreads: pd.DataFrame, height: float) -> tuple[Figure, list[tuple[Axes, tuple[str, pd.DataFrame]]]]:
    """A panel per target and source, side by side, with their rows."""
    parts = [
        (f"{name} from {source}", here) for (name, source), here in spreads.groupby(["target", "source"], sort=False)
    ]
    width = 7.6 if len(parts) == 1 else 4.9 * len(parts)
    figure = Figure(figsize=(width, height), layout="constrained")
    rows = figure.subplots(1, len(parts), squeeze=False)[0]
    for axes, (title, here) in zip(rows, parts, strict=True):
        axes.set_title(title, size=10)
        plain(axes)
        shots = sorted(here["shots"].unique())
        smallest = min((count for count in shots if count > 0), default=1)
        axes.set_xscale("symlog", linthresh=smallest, linscale=0.7)
        axes.xaxis.set_major_locator(FixedLocator(shots))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return figure, list(zip(rows, parts, strict=True))


def _lines(axes: Axes, here: pd.DataFrame, middle: str) -> None:
    names = methods_of(here)
    colour_of = _colours(names)
    for name in names:
        rows = here[here["method"] == name].sort_values("shots")
        is_product = name == PRODUCT
        axes.plot(
            rows["shots"],
            100 * rows[middle],
            marker="o",
            markersize=5 if is_product else 3.5,
            linewidth=2.6 if is_product else 1.3,
            color=colour_of[name],
            label=method_name(name),
            zorder=4 if is_product else 3,
        )
        shade = 0.22 if is_product else 0.1
        low, high = 100 * rows["lowest"], 100 * rows["highest"]
        axes.fill_between(rows["shots"], low, high, color=colour_of[name], alpha=shade, linewidth=0)


def _colours(names: list[str]) -> dict[str, str]:
    """A colour per method, the same in all figures; of three lines those that the page of the fleet has, too."""
    lines = {name: "target_only" if is_target_only(name) else name for name in names}
    if len(set(lines.values())) == len(names) and set(lines.values()) <= set(_STORY):
        return {name: _STORY[line] for name, line in lines.items()}
    return colours([*METHODS, *(name for name in names if name not in METHODS)])


def _error_axis(axes: Axes, here: pd.DataFrame) -> None:
    """Percentages; logarithmic where values differ widely; values far beyond the product's are cut off, with a note."""
    product = here.loc[here["method"] == PRODUCT, "highest"].max()
    end = max(MOST_MAPE, 1.3 * product) if product == product else MOST_MAPE
    low, high = here["lowest"].min(), here["highest"].max()
    if high > _WIDE_RANGE * low > 0:
        axes.set_yscale("log")
        axes.set_ylim(100 * low / 1.4, 100 * min(1.3 * high, end))
        axes.yaxis.set_major_locator(FixedLocator([100 * factor for factor in _ticks(min(high, end) / low)]))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 100 * min(1.1 * high, end))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}%"))
    if here["median"].max() > end:
        axes.set_title(f"{axes.get_title()} (medians above {end:,.0%} are not shown)", size=9)


def _ticks(factor: float) -> list[float]:
    """Powers of ten, with 2 and 5 between them unless the axis is long."""
    return [value for value in _FACTORS if factor < 2000 or f"{value:e}".startswith("1.")]


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(3, len(labels)), frameon=False, fontsize=8)


def _seeds(spreads: pd.DataFrame) -> str:
    fewest, most = int(spreads["seeds"].min()), int(spreads["seeds"].max())
    counted = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{counted} {'draw' if most == 1 else 'draws'}"


def _counted(what: str, shown: int, every: int) -> str:
    return what if shown == every else f"{what}: {shown} of {every}"


def _short(name: str) -> str:
    """Long names without their middle: counters often differ at their ends."""
    half = (_NAME_LENGTH - 1) // 2
    shown = name if len(name) <= _NAME_LENGTH else f"{name[:half]}…{name[-half:]}"
    return shown.replace("$", r"\$")  # Not the start of a formula.


class Shown(Enum):
    """Column of `eval_transfer__scores` that a figure shows."""

    ERROR = "mape_ratio"
    COVERAGE = "coverage_90_ratio"

    @property
    def middle(self) -> str:
        """Statistic over seeds that the figure shows."""
        return "median" if self is Shown.ERROR else "mean"


_DRAWN = {
    Shown.ERROR: (
        "learning-curve",
        "MAPE on runs that were not shots, over the number of shots",
        learning_curve,
    ),
    Shown.COVERAGE: (
        "calibration",
        "Share of runs inside the 90% interval, over the number of shots",
        calibration,
    ),
}


def curve_chart(machine: str, curve: pd.DataFrame, shown: Shown) -> Chart:
    """A line per method over the number of shots, a panel per target."""
    spreads = over_seeds(curve, shown.value)
    name, title, draw = _DRAWN[shown]
    text = "; ".join(
        _ends(f"{target} from {source}", here, shown.middle)
        for (target, source), here in spreads.groupby(["target", "source"], sort=False)
    )
    words = f"{title}; lines: {'; '.join(method_name(method) for method in methods_of(spreads))}. {text}."
    return chart(f"{machine}-{name}", f"{title}.", words, partial(draw, curve), spreads)


def weights_chart(machine: str, source: str, weights: pd.DataFrame) -> Chart:
    """Heat map of the weights of the machine's counters (columns) in counters of the source (index)."""
    drawn = drawn_weights(weights)
    row, column = np.unravel_index(np.abs(drawn.to_numpy(float)).argmax(), drawn.shape)
    ours, theirs = str(drawn.columns[column]), str(drawn.index[row])
    return chart(
        f"{machine}-counter-weights",
        f"Weights of the counters of {machine} in the counters of {source}.",
        f"Heat map of the weights of {drawn.shape[1]} counters of {machine} in {drawn.shape[0]} counters of {source}. "
        f"The largest is that of {ours} in {theirs}: {drawn.to_numpy(float)[row, column]:.2f}.",
        partial(alignment_heat_map, weights),
        drawn.rename_axis(index="source_counter", columns=None).reset_index(),
    )


def _ends(where: str, here: pd.DataFrame, middle: str) -> str:
    """Errors of the registered model with the fewest shots and with the most."""
    line = here[here["method"] == PRODUCT].sort_values("shots")
    if line.empty:
        return where
    first, last = line.iloc[0], line.iloc[-1]
    return (
        f"{where}: {method_name(PRODUCT)} has {error(first[middle])} with {first['shots']} shots and "
        f"{error(last[middle])} with {last['shots']}"
    )
