"""The page of ModelX's table: errors side by side, severity against gain, learning curves."""

from functools import partial

import pandas as pd

from perf_assets.reports.chart import Chart, chart
from perf_assets.reports.machine.numbers import rank_correlation
from perf_assets.reports.modelx.figures import METHODS, learning_curves, severity_against_gain
from perf_assets.reports.results_page import Part, results_page
from perf_assets.reports.scores import percent

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
    said = "is not defined" if correlation is None else f"{correlation:+.2f}"
    harmed = int((numbers["gain"] < 1).sum())
    return [
        chart(
            "modelx-severity-against-gain",
            "Severity against gain; a point per transfer and number of shots.",
            f"{len(numbers)} points, rank correlation {said}; at {harmed} of them the sources did harm.",
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
