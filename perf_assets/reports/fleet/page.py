"""Page of the fleet: status of every machine, what to do next, and its figures; HTML without outside parts."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from perf_assets.core.addresses import Addresses
from perf_assets.reports.fleet.facts import FleetFacts, MachineState, Story
from perf_assets.reports.fleet.findings import age, fleet_findings, next_actions, state_words
from perf_assets.reports.fleet.story import story_charts, story_finding
from perf_assets.reports.machine.numbers import records, times
from perf_assets.reports.scores import error
from perf_assets.reports.site import Chart, chart, template
from perf_assets.reports.style import BLUE, MOST_MAPE, ORANGE, Target, dots, errors_axis, written


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


_TEMPLATE = "fleet.html.jinja"
_ACTIONS = 10
"""Actions that are shown at once; more are folded away."""
_SAID = 8
"""Machines that the text in place of the picture can name; of more it says how many."""


def fleet_page(facts: FleetFacts) -> str:
    """The home page of the platform."""
    actions = next_actions(facts.machines)
    return template(_TEMPLATE).render(
        facts=facts,
        findings=fleet_findings(facts),
        first_actions=actions[:_ACTIONS],
        more_actions=actions[_ACTIONS:],
        words={state.machine: state_words(state) for state in facts.machines},
        simulated_count=sum(state.is_simulated for state in facts.machines),
        quarantined=[
            (state, bundle, reason) for state in facts.machines for bundle, reason in state.quarantined.items()
        ],
        errors=_errors(facts.machines),
        story=_story(facts.story),
        pages_of={state.machine: state.page for state in facts.machines},
        stale_vectors=facts.vectors.problems(facts.made_at) if facts.vectors else [],
        age=lambda moment: age(moment, facts.made_at),
        version_address=partial(_version_address, facts.mlflow_url),
    )


def _story(story: Story | None) -> dict[str, Any] | None:
    """What a few runs are worth: a sentence, a table, figures."""
    if story is None or story.curve.empty:
        return None
    return {
        "finding": story_finding(story),
        "rows": records(story.last),
        "charts": story_charts(story),
        "test_runs": story.test_runs,
        "are_kept_aside": story.are_kept_aside,
        "is_simulated": story.is_simulated,
    }


def _version_address(mlflow_url: str, model: str, version: int) -> str:
    return Addresses(mlflow=mlflow_url.rstrip("/")).version(model, version)


def _errors(machines: tuple[MachineState, ...]) -> Chart | None:
    numbers = judged(machines)
    if numbers.empty:
        return None
    return chart(
        "champion-errors",
        "Error of each champion, and of the best model of its runs alone.",
        _in_words(numbers),
        partial(champion_errors, machines),
        numbers,
    )


def _in_words(numbers: pd.DataFrame) -> str:
    """What the picture shows, for those who cannot see it."""
    columns = ["machine", "champion_mape_ratio", "target_only_mape_ratio"]
    found = list(numbers[columns].dropna().itertuples(index=False, name=None))
    smaller = sum(mape < alone for _, mape, alone in found)
    start = f"Error of the champion beside the best target-only baseline: smaller on {smaller} of {len(found)} machines"
    if not found or len(found) > _SAID:
        return f"{start}. The figures are in the table above."
    return f"{start}. " + "; ".join(f"{name} {error(mape)} against {error(alone)}" for name, mape, alone in found) + "."
