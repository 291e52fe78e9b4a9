"""Registered models and planned runs, as people list them."""

import math
from dataclasses import fields
from typing import Any

from perf_assets.features.fleet.samples import NODES_QUERY, nodes_by_configuration
from perf_assets.models.target.next_runs import next_runs
from perf_assets.registry.target import shown_of
from perf_assets.registry.versions import registered
from perf_assets.serving.answers import PlannedRun, RegisteredModel
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse


def listed_models() -> list[RegisteredModel]:
    """Versions that an alias points to."""
    return [
        RegisteredModel(
            found.name,
            found.version,
            found.aliases,
            found.created_at.isoformat(timespec="seconds"),
            found.tags.get("is_simulated") == "true",
        )
        for found in registered()
        if found.aliases
    ]


def planned_runs(lake: Lake, machine: str, budget: int) -> list[PlannedRun]:
    """Runs to do next on a machine that has a target model, priced by the nodes that its configurations use."""
    _, _, adapted = shown_of(machine)
    rows = next_runs(adapted, budget, nodes_by_configuration(Warehouse(lake).frame(NODES_QUERY)))
    names = [field.name for field in fields(PlannedRun)]
    found = []
    for values in rows[names].itertuples(index=False, name=None):
        run: dict[str, Any] = dict(zip(names, values, strict=True))
        found.append(PlannedRun(**{**run, "node_hours": _or_none(run["node_hours"])}))
    return found


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
