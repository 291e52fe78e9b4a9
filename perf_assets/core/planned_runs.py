"""Whether planned runs are worth their time, in one sentence for the shell, the page and HTTP alike."""

from collections.abc import Mapping, Sequence
from typing import Any

ENOUGH_RUNS = 20
"""Runs that a model must know before it calls none worth it: with fewer, it takes for noise what it could learn."""
_OF_TEN = 0.02
WORTH_IT = _OF_TEN / 10
"""Least share of the expected error by which a run must lower it: ten such runs by 2%, from 10.0% to 9.8%."""


def worth(view: str, runs: Sequence[Mapping[Any, Any]]) -> tuple[str, str]:
    """Gain of the planned runs of a view and whether any is worth it, and the reason, or the first run.

    Runs are in their order, with `is_worth_it`, expected errors before and after each, `shots` that the model knows,
    and node-hours (None or NaN where not known). Those that are not worth it come last.
    """
    chosen = [run for run in runs if run["is_worth_it"]]
    before = _percent(runs[0]["error_before_ratio"])
    rule = f"ten runs as useful as the best one would lower it by less than {_OF_TEN:.0%} of it"
    if not chosen:
        return f"{view}: no further run is worth it.", f"The expected error is {before}, and {rule}."
    after, shots = _percent(chosen[-1]["error_after_ratio"]), int(runs[0]["shots"])
    hours = [run["node_hours"] for run in chosen]
    is_priced = all(value is not None and value == value for value in hours)
    price = f" for {sum(hours):,.3g} node-hours" if is_priced else "; not all of their prices are known"
    which = "the next run is" if len(chosen) == 1 else f"the next {len(chosen)} runs are"
    first = f"First: {chosen[0]['configuration']}."
    if shots < ENOUGH_RUNS:
        rough = (
            f"With {shots} runs so far it is not well known how much they gain (expected error {before}, then {after})."
        )
        return f"{view}: {which} expected to tell most{price}.", f"{first} {rough}"
    end = "" if len(chosen) == len(runs) else f" After that no run is worth it: {rule}."
    return f"{view}: {which} expected to take the error from {before} to {after}{price}.", first + end


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f}%"
