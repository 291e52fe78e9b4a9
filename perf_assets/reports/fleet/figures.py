"""Pictures of a fleet. Every function writes a PNG and returns the drawn figure."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from perf_assets.reports.error_dots import dots, errors_axis
from perf_assets.reports.fleet.facts import MachineState
from perf_assets.reports.machine.numbers import times
from perf_assets.reports.style import BLUE, MOST_MAPE, ORANGE, Target, written


def judged(machines: Sequence[MachineState]) -> pd.DataFrame:
    """Machines whose champion's error is known: it, and that of the best target-only baseline."""
    rows = [
        (state.machine, state.champion.version, state.champion.mape, state.champion.target_only_mape)
        for state in machines
        if state.champion is not None and state.champion.mape is not None
    ]
    found = pd.DataFrame(rows, columns=["machine", "champion_version", "champion_mape_ratio", "target_only_mape_ratio"])
    return found.astype({"target_only_mape_ratio": float})


def champion_errors(machines: Sequence[MachineState], target: Target) -> Figure:
    """A row for each machine whose champion's error is known: it, and that of the best target-only baseline."""
    found = judged(machines)
    ours, alone = (found[f"{name}_mape_ratio"].tolist() for name in ("champion", "target_only"))
    figure = Figure(figsize=(8.6, 0.36 * len(found) + 1.4), layout="constrained")
    axes = figure.subplots()
    rows = range(len(found))
    for row, pair in enumerate(zip(ours, alone, strict=True)):
        axes.plot([100 * min(ratio, MOST_MAPE) for ratio in pair], [row, row], color="#9aa5b1", linewidth=2, zorder=1)
    known = [row for row in rows if not math.isnan(alone[row])]
    dots(axes, known, [alone[row] for row in known], color="white", markeredgecolor=ORANGE, markeredgewidth=2)
    dots(axes, rows, ours, color=BLUE, markersize=9)
    errors_axis(axes, [*ours, *(alone[row] for row in known)], found["machine"].tolist())
    for row in known:
        ratio = times(ours[row] / alone[row]) if alone[row] > 0 else times(math.nan)
        axes.annotate(
            ratio,
            (1, row),
            (6, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            size=9,
        )
    axes.plot([], [], "o", color=BLUE, markersize=9, label="champion")
    axes.plot(
        [],
        [],
        "o",
        color="white",
        markeredgecolor=ORANGE,
        markeredgewidth=2,
        markersize=8,
        label="best target-only baseline",
    )
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    figure.supxlabel("MAPE on held-out runs; at the right: champion / baseline, below 1 the champion is better", size=8)
    return written(figure, target)
