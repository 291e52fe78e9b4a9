"""The page of the fleet as HTML without outside parts: how every machine is, and what to do next."""

from functools import partial

import pandas as pd

from perf_assets.reports.chart import Chart, chart
from perf_assets.reports.fleet_facts import FleetFacts, MachineState
from perf_assets.reports.fleet_figures import champion_errors, judged
from perf_assets.reports.fleet_findings import age, fleet_findings, next_actions, state_words
from perf_assets.reports.page import template
from perf_assets.reports.summary import error

_TEMPLATE = "fleet.html.jinja"
_ACTIONS = 10
"""That are shown at once; more are folded away."""
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
        stale_vectors=facts.vectors.problems(facts.made_at) if facts.vectors else [],
        age=lambda moment: age(moment, facts.made_at),
        version_address=partial(_version_address, facts.mlflow_url),
    )


def _version_address(mlflow_url: str, model: str, version: int) -> str:
    return f"{mlflow_url.rstrip('/')}/#/models/{model}/versions/{version}"


def _errors(machines: tuple[MachineState, ...]) -> Chart | None:
    numbers = judged(machines)
    if numbers.empty:
        return None
    return chart(
        "champion-errors",
        "Error of each champion, and of the best model of its runs alone.",
        _said(numbers),
        partial(champion_errors, machines),
        numbers,
    )


def _said(numbers: pd.DataFrame) -> str:
    """What the picture shows, for those who cannot see it."""
    columns = ["machine", "champion_mape_ratio", "target_only_mape_ratio"]
    found = list(numbers[columns].dropna().itertuples(index=False, name=None))
    smaller = sum(mape < alone for _, mape, alone in found)
    start = f"Error of the champion beside the best target-only baseline: smaller on {smaller} of {len(found)} machines"
    if not found or len(found) > _SAID:
        return f"{start}. The figures are in the table above."
    return f"{start}. " + "; ".join(f"{name} {error(mape)} against {error(alone)}" for name, mape, alone in found) + "."
