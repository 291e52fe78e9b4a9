"""Figures of the page of a machine: scores over the number of its runs, and weights of its counters."""

from enum import Enum
from functools import partial

import numpy as np
import pandas as pd

from perf_assets.reports.chart import Chart, chart
from perf_assets.reports.machine import figures as machine_figures
from perf_assets.reports.machine.numbers import PRODUCT, method_name, methods_of, over_seeds
from perf_assets.reports.scores import error


class Shown(Enum):
    """Which column of `eval_transfer__scores` a figure shows."""

    ERROR = "mape_ratio"
    COVERAGE = "coverage_90_ratio"

    @property
    def middle(self) -> str:
        """What stands for all seeds."""
        return "median" if self is Shown.ERROR else "mean"


_DRAWN = {
    Shown.ERROR: (
        "learning-curve",
        "MAPE on runs that were not shots, over the number of shots",
        machine_figures.learning_curve,
    ),
    Shown.COVERAGE: (
        "calibration",
        "Share of runs inside the 90% interval, over the number of shots",
        machine_figures.calibration,
    ),
}


def curve_chart(machine: str, curve: pd.DataFrame, shown: Shown) -> Chart:
    """A line per method over the number of shots, a panel per target."""
    found = over_seeds(curve, shown.value)
    name, title, draw = _DRAWN[shown]
    said = "; ".join(
        _ends(f"{target} from {source}", here, shown.middle)
        for (target, source), here in found.groupby(["target", "source"], sort=False)
    )
    words = f"{title}; lines: {'; '.join(method_name(method) for method in methods_of(found))}. {said}."
    return chart(f"{machine}-{name}", f"{title}.", words, partial(draw, curve), found)


def weights_chart(machine: str, source: str, weights: pd.DataFrame) -> Chart:
    """How much counters of the machine (columns) weigh in counters of the source (index)."""
    drawn = machine_figures.drawn_weights(weights)
    row, column = np.unravel_index(np.abs(drawn.to_numpy(float)).argmax(), drawn.shape)
    ours, theirs = str(drawn.columns[column]), str(drawn.index[row])
    return chart(
        f"{machine}-counter-weights",
        f"Weights of the counters of {machine} in the counters of {source}.",
        f"Heat map of the weights of {drawn.shape[1]} counters of {machine} in {drawn.shape[0]} counters of {source}. "
        f"The largest is that of {ours} in {theirs}: {drawn.to_numpy(float)[row, column]:.2f}.",
        partial(machine_figures.alignment_heat_map, weights),
        drawn.rename_axis(index="source_counter", columns=None).reset_index(),
    )


def _ends(where: str, here: pd.DataFrame, middle: str) -> str:
    """Of what is registered, with the fewest shots and with the most."""
    line = here[here["method"] == PRODUCT].sort_values("shots")
    if line.empty:
        return where
    first, last = line.iloc[0], line.iloc[-1]
    return (
        f"{where}: {method_name(PRODUCT)} has {error(first[middle])} with {first['shots']} shots and "
        f"{error(last[middle])} with {last['shots']}"
    )
