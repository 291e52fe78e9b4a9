"""The plan of next runs on a machine of the fleet, as a table."""

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.models.target.planner import node_hours, plan


def next_runs(adapted: AdaptedTarget, budget: int, nodes: "pd.Series[float] | None" = None) -> pd.DataFrame:
    """Configurations to run next, best first, for each way programs see the machine.

    `nodes` gives the nodes of a configuration by its name, where they are known; then runs are priced in node-hours.
    """
    rows = []
    for name, view in adapted.views.items():
        samples = adapted.samples
        source, target = view.model.source, view.model.target
        open_runs = _not_run(samples, source, target)
        if not len(open_runs):
            continue
        names = [samples.configurations[row] for row in open_runs]
        cost = (
            _prices(adapted, name, open_runs, np.asarray(nodes.reindex(names), np.float64))
            if nodes is not None
            else None
        )
        for position, run in enumerate(plan(view.model, samples, open_runs, budget, cost), 1):
            rows.append(
                {
                    "seen_as": name,
                    "rank": position,
                    "configuration": run.configuration,
                    "app": run.app,
                    "error_before_ratio": run.error_before,
                    "error_after_ratio": run.error_after,
                    "node_hours": np.nan if run.node_hours is None else run.node_hours,
                }
            )
    if not rows:
        raise BadInputError(f"{adapted.machine}: every configuration of its reference machine has already run on it")
    return pd.DataFrame(rows)


def _not_run(samples: PairedSamples, source: int, target: int) -> Indices:
    """Configurations that ran on the source and in no way on the machine of the target."""
    here = samples.physical_machines == samples.physical_machines[target]
    done = np.isfinite(samples.log_seconds[here]).any(axis=0)
    return np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~done & ~samples.is_benchmark)


def _prices(adapted: AdaptedTarget, name: str, rows: Indices, nodes: Floats) -> Floats:
    known = np.where(np.isfinite(nodes), nodes, 1.0)
    return node_hours(adapted.views[name].model, adapted.samples, rows, known)
