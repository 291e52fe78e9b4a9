"""Predicted reference values with tolerances, for acceptance tests of a machine: as ReFrame writes them."""

from collections.abc import Sequence
from typing import Any

from perf_assets.serving.answers import Prediction

_VARIABLE = "elapsed_seconds"


def references(machine: str, predictions: Sequence[Prediction]) -> dict[str, Any]:
    """One test a configuration: the predicted time, and how far below and above it a run may lie.

    Tolerances are shares of the value, the lower one negative: the ends of the 90% interval. Of a configuration that
    was measured several times on the source, the narrowest prediction is taken.
    """
    best: dict[tuple[str, str, int, int], Prediction] = {}
    for answer in predictions:
        key = (answer.app, answer.args, answer.ranks, answer.threads)
        if key not in best or _width(answer) < _width(best[key]):
            best[key] = answer
    chosen = [best[key] for key in sorted(best)]
    return {
        "machine": machine,
        "variable": _VARIABLE,
        "coverage": 0.9,
        "models": sorted({f"{answer.model} version {answer.model_version}" for answer in chosen}),
        "tests": [_test(machine, answer) for answer in chosen],
    }


def _test(machine: str, answer: Prediction) -> dict[str, Any]:
    lower, upper = (end / answer.predicted_seconds - 1 for end in (answer.lower_seconds, answer.upper_seconds))
    value = [float(f"{answer.predicted_seconds:.4g}"), round(lower, 3), round(upper, 3), "s"]
    return {
        "app": answer.app,
        "args": answer.args,
        "ranks": answer.ranks,
        "threads": answer.threads,
        "predicted_from": answer.source_machine,
        "warnings": list(answer.warnings),
        "reference": {f"{machine}:*": {_VARIABLE: value}},
    }


def _width(answer: Prediction) -> float:
    return answer.upper_seconds / answer.lower_seconds
