"""The page of ModelX's table: errors side by side, severity against gain, learning curves."""

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from perf_assets.reports.machine.numbers import rank_correlation
from perf_assets.reports.scores import percent
from perf_assets.reports.site import Chart, Part, chart, results_page
from perf_assets.reports.style import Target, colours, plain, written

METHODS = {
    "product": "product",
    "zero_shot": "zero-shot",
    "linear_probe": "linear probing",
    "fine_tune": "fine-tuning",
    "target_best": "best target-only",
    "oracle_100x": "supervised, 100\N{MULTIPLICATION SIGN} the shots",
}
"""Words by column of errors."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Numbers of shots, from the smallest on; then they come again."""
_ACROSS = 3
"""Panels side by side."""
_TITLE_LENGTH = 44
_FINE = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
"""Marks of an axis that spans less than a factor of ten."""


def severity_against_gain(gains: pd.DataFrame, target: Target) -> Figure:
    """Columns target, shots, severity, gain: a point each; a colour per target, a shape per number of shots."""
    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    colour_of = colours(list(dict.fromkeys(gains["target"])))
    counts = sorted(gains["shots"].unique())
    for (name, shots), here in gains.groupby(["target", "shots"], sort=False):
        marker = _MARKERS[counts.index(shots) % len(_MARKERS)]
        axes.scatter(
            here["severity"], here["gain"], 46, color=colour_of[str(name)], marker=marker, alpha=0.85, linewidths=0,
            label=f"{name}, {shots} shots", zorder=3,
        )  # fmt: skip
    axes.axhline(1, color="#555555", linewidth=1)
    _log_factors(axes, gains["gain"])
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("severity, before any test row is seen: 0 as to itself, 1 nothing in common")
    axes.set_ylabel("gain: error of the best target-only model / of the product")
    plain(axes)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return written(figure, target)


def learning_curves(rows: pd.DataFrame, target: Target) -> Figure:
    """Columns transfer, shots and those of `METHODS`: a panel per transfer, a line per method."""
    parts = list(rows.groupby("transfer", sort=False))
    across = 2 if len(parts) == 4 else min(_ACROSS, len(parts))
    down = -(-len(parts) // across)
    figure = Figure(figsize=(7.6 if across == 1 else 4.4 * across, 3.3 * down + 0.6), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).ravel()
    colour_of = colours(list(METHODS))
    for axes, (transfer, here) in zip(grid, parts, strict=False):
        ordered = here.sort_values("shots")
        for method, words in METHODS.items():
            is_product = method == "product"
            axes.plot(
                ordered["shots"], ordered[method].where(ordered[method] > 0), marker="o", color=colour_of[method],
                markersize=5 if is_product else 3.5, linewidth=2.6 if is_product else 1.3,
                linestyle="--" if method == "oracle_100x" else "-", label=words, zorder=4 if is_product else 3,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(ordered["shots"].unique().tolist()))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_title(_short(str(transfer)), size=9)
        plain(axes)
    for axes in grid[len(parts) :]:
        axes.set_axis_off()
    figure.supylabel("mean squared log error", size=9)
    figure.supxlabel("rows of the target that are learned from (shots)", size=9)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return written(figure, target)


def _log_factors(axes: Axes, values: "pd.Series[float]") -> None:
    """A logarithmic axis of factors that holds 1 and all values."""
    low, high = min(float(values.min()), 1.0), max(float(values.max()), 1.0)
    room = max((high / low) ** 0.08, 1.1)
    axes.set_yscale("log")
    axes.set_ylim(low / room, high * room)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high / low >= 10 else _FINE))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}\N{MULTIPLICATION SIGN}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _short(title: str) -> str:
    return title if len(title) <= _TITLE_LENGTH else f"…{title[-_TITLE_LENGTH + 1 :]}"


_TITLE = "ModelX's table"
_ORIGIN = "tables as given"
_ARROW = " \N{RIGHTWARDS ARROW} "
_ERRORS = (
    "Mean squared errors of the logarithm on test rows, means over seeds; all methods see the same shots and the same "
    "test rows. A dash: cannot be, for example zero-shot without a shared feature. Improvement: how much smaller the "
    "error of the product is than that of the best of zero-shot, linear probing and fine-tuning."
)
_VERDICTS = (
    "Ratio: error of the product / of the best target-only model in hindsight. As supervised: the error of the "
    "product is at most that of the supervised model on 100 times the shots and its spread over seeds."
)
_GAIN = "Gain: error of the best target-only model in hindsight / error of the product; below 1 the sources did harm."


def modelx_page(rows: pd.DataFrame, *, origin: str = _ORIGIN, is_in_site: bool = True) -> str:
    """The page of at least one row, columns as `perf-assets evaluate modelx --json` has them; sources are one text."""
    shown = rows.assign(transfer=rows["sources"] + _ARROW + rows["target"], ratio=rows["product"] / rows["target_best"])
    gains = _gain_chart(shown)
    parts = [
        Part("Errors", _ERRORS, [], {"Squared log errors by transfer and number of shots": _errors(shown)}),
        Part("Verdicts", _VERDICTS, [], {"What the product is worth, and how sure it is": _verdicts(shown)}),
        Part("Does severity tell what transfer gains?", _GAIN if gains else "No transfer has a severity.", gains),
        Part("Learning curves", "Errors over the number of shots.", [_curves(shown)]),
    ]
    seeds = int(rows["seeds"].min())
    lead = f"{shown['transfer'].nunique()} transfers, {seeds} {'draw' if seeds == 1 else 'draws'} of shots each."
    return results_page(_TITLE, origin, lead, parts, is_in_site=is_in_site)


def _errors(rows: pd.DataFrame) -> pd.DataFrame:
    table = rows[["transfer", "shots", "severity", *METHODS, "improvement", "winner"]]
    return table.assign(
        winner=[METHODS.get(str(name), str(name)) for name in rows["winner"]],
        improvement=[_percent(value) for value in rows["improvement"] / 100],
    ).rename(columns=METHODS)


def _verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "transfer": rows["transfer"],
            "shots": rows["shots"],
            "features": rows["features"],
            "ratio": rows["ratio"],
            "best target-only": rows["target_best_method"],
            "as supervised": ["yes" if matches else "no" for matches in rows["matches_oracle"]],
            "MAPE": [_percent(value) for value in rows["mape"]],
            "inside the 90% interval": [_percent(value) for value in rows["coverage_90"]],
            "leans on": rows["chosen"],
        }
    )


def _percent(ratio: float) -> str:
    return "\N{EN DASH}" if ratio != ratio else percent(ratio)


def _gain_chart(rows: pd.DataFrame) -> list[Chart]:
    """One, or none where no transfer has a severity."""
    known = rows[rows["severity"].notna() & (rows["ratio"] > 0)]
    if known.empty:
        return []
    numbers = known[["sources", "target", "shots", "severity"]].assign(gain=1 / known["ratio"])
    correlation = rank_correlation(numbers["severity"], numbers["gain"])
    correlation_text = "is not defined" if correlation is None else f"{correlation:+.2f}"
    harmed = int((numbers["gain"] < 1).sum())
    return [
        chart(
            "modelx-severity-against-gain",
            "Severity against gain; a point per transfer and number of shots.",
            f"{len(numbers)} points, rank correlation {correlation_text}; at {harmed} of them the sources did harm.",
            partial(severity_against_gain, numbers),
            numbers,
        )
    ]


def _curves(rows: pd.DataFrame) -> Chart:
    numbers = rows[["transfer", "sources", "target", "shots", *METHODS]]
    return chart(
        "modelx-learning-curves",
        "Squared log error over shots; a panel per transfer.",
        f"A panel for each of {rows['transfer'].nunique()} transfers, a line per method; the figures are in the table.",
        partial(learning_curves, numbers),
        numbers.drop(columns="transfer"),
    )
