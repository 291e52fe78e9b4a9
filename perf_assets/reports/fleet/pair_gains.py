"""The page of all ordered pairs of machines: severity against what transfer gains."""

from functools import partial

import numpy as np
import pandas as pd

from perf_assets.reports.machine.figures import severity_against_gain
from perf_assets.reports.machine.numbers import GAIN_SHOTS, rank_correlation, transfer_gains
from perf_assets.reports.scores import origin
from perf_assets.reports.site import Chart, Part, chart, results_page

_TITLE = "All ordered pairs of machines"
_GAIN = (
    "Gain: MAPE of the best model of the target's runs alone / MAPE of the product. Severity: 0 as a machine "
    "to itself, 1 nothing in common."
)
_NO_GAIN = f"Nothing to show: no pair has a severity and scores at {GAIN_SHOTS} shots."


def gain_chart(matrix: pd.DataFrame) -> Chart:
    """Chart of the rows of `eval_transfer__matrix`."""
    gains = transfer_gains(matrix)
    correlation = rank_correlation(gains["severity_ratio"], gains["gain"])
    shown = "is not defined" if correlation is None else f"{correlation:+.2f}"
    harmed = int((gains["gain"] < 0).sum())
    return chart(
        "pairs-severity-against-gain",
        f"Severity against gain at {GAIN_SHOTS} shots; a point per pair.",
        f"{len(gains)} pairs, rank correlation {shown}; on {harmed} of them transfer is worse than the runs alone.",
        partial(severity_against_gain, matrix),
        gains.assign(gain_factor=np.exp(gains["gain"])).rename(columns={"gain": "log_gain"}),
    )


def pairs_page(matrix: pd.DataFrame, gains: Chart, medians: pd.DataFrame) -> str:
    """The page; `medians` of MAPE by method (first column) and number of shots."""
    pairs = len(matrix[["source", "target"]].drop_duplicates())
    parts = [
        Part("How hard, and what transfer gains", _GAIN, [gains])
        if len(gains.numbers)
        else Part("How hard, and what transfer gains", _NO_GAIN, []),
        Part("Errors", "", [], {"Median MAPE (as a ratio) over pairs and seeds, by number of shots": medians}),
    ]
    return results_page(
        _TITLE, origin(matrix), f"{pairs} pairs, the product beside its baselines on the same rows.", parts
    )
