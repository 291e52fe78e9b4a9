"""Registered models, planned runs and predicted reference values, as people list them."""

import math
from collections.abc import Sequence
from typing import Any

from perf_assets.core.errors import UnknownError
from perf_assets.core.planned_runs import worth
from perf_assets.features.fleet.samples import NODES_QUERY, configuration_of, nodes_by_configuration
from perf_assets.models.target.planner import next_runs
from perf_assets.registry.target import shown_of
from perf_assets.registry.versions import registered
from perf_assets.serving.answers import PlannedRun, Prediction, RegisteredModel
from perf_assets.storage.lake import Lake
from perf_assets.workflows.fleet import Fleet, open_warehouse
from perf_assets.workflows.machines.readiness import Readiness


def listed_models() -> list[RegisteredModel]:
    """Versions that an alias points to."""
    return [
        RegisteredModel(
            version.name,
            version.version,
            version.aliases,
            version.created_at.isoformat(timespec="seconds"),
            version.tags.get("is_simulated") == "true",
        )
        for version in registered()
        if version.aliases
    ]


def planned_runs(lake: Lake, machine: str, budget: int) -> tuple[list[PlannedRun], list[str]]:
    """Runs to do next on a machine that has a target model, priced by the nodes that its configurations use; and
    whether any is worth it, one text for each way programs see the machine.
    """
    try:
        _, _, adapted = shown_of(machine)
    except UnknownError:
        missing = Readiness.of(Fleet(lake), machine).next_step
        raise UnknownError(f"there is no target model of {machine!r}: {missing}") from None
    is_ingested = lake.warehouse.is_file()
    nodes = nodes_by_configuration(open_warehouse(lake).frame(NODES_QUERY)) if is_ingested else None
    table = next_runs(adapted, budget, nodes)
    plans = []
    for run in table.to_dict("records"):
        args, ranks, threads = configuration_of(run["configuration"], run["app"])
        plans.append(
            PlannedRun(
                **run | {"node_hours": None if math.isnan(run["node_hours"]) else run["node_hours"]},
                args=args,
                ranks=ranks,
                threads=threads,
                nodes=1 if nodes is None else int(nodes.get(run["configuration"], 1)),
            )
        )
    views = table.groupby("seen_as", sort=False)
    return plans, [" ".join(worth(str(name), part.to_dict("records"))) for name, part in views]


_VARIABLE = "elapsed_seconds"


def references(machine: str, predictions: Sequence[Prediction]) -> dict[str, Any]:
    """One test per configuration: the predicted time, and how far below and above it a run may lie.

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
        "reference": {machine: {_VARIABLE: value}},
    }


def _width(answer: Prediction) -> float:
    return answer.upper_seconds / answer.lower_seconds
