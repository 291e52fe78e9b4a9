"""Runs that need no prediction: their configuration was measured on the machine that is asked about."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.tables.runs import CONFIGURATION, CURRENT_RUNS, FEATURES
from perf_assets.serving.answers import Prediction
from perf_assets.serving.requests import Run
from perf_assets.storage.lake import Lake
from perf_assets.workflows.fleet import open_warehouse

MEASURED = "measured"
"""Stands where the name of a model does in other answers."""

_TIMES = f"""
    SELECT {", ".join(CONFIGURATION)}, coalesce(gpus, 0) AS gpus, runs_count,
        wall_seconds, wall_seconds_min, wall_seconds_max
    FROM {FEATURES.name} WHERE machine = $machine AND wall_seconds IS NOT NULL
"""
_DATES = f"""
    SELECT {", ".join(CONFIGURATION)}, max(collected_at) AS measured_at FROM {CURRENT_RUNS} WHERE machine = $machine
    GROUP BY ALL
"""


def measured_there(lake: Lake, runs: Sequence[Run], target: str) -> dict[int, Prediction]:
    """Answers by the position of a run, of those whose configuration was measured on the target."""
    if not lake.warehouse.is_file():
        return {}
    catalogue = load_catalogue(lake.site_catalogues())
    warehouse = open_warehouse(lake)
    machine: dict[str, object] = {"machine": target}
    known = {tuple(row[n] for n in CONFIGURATION): row for row in warehouse.frame(_TIMES, machine).to_dict("records")}
    dates = {
        (row["app"], catalogue.comparable_args(str(row["args"])), row["ranks"], row["threads"]): row["measured_at"]
        for row in warehouse.frame(_DATES, machine).to_dict("records")
    }
    found = {}
    for position, run in enumerate(runs):
        key = (run.app, catalogue.comparable_args(run.args), run.ranks, run.threads)
        row = known.get(key)
        if row is not None and run.uses_gpus in (None, bool(row["gpus"])):
            found[position] = _answer(run, target, {str(name): value for name, value in row.items()}, dates[key])
    return found


def _answer(run: Run, target: str, row: dict[str, Any], measured_at: datetime) -> Prediction:
    seconds, least, most = (float(row[name]) for name in ("wall_seconds", "wall_seconds_min", "wall_seconds_max"))
    count = int(row["runs_count"])
    spread = "one run" if count == 1 else f"{count} runs, {least:.4g} to {most:.4g} s"
    return Prediction(
        source_machine=run.machine,
        target_machine=target,
        app=run.app,
        args=run.args,
        ranks=run.ranks,
        threads=run.threads,
        source_seconds=run.wall_seconds,
        relative_time=seconds / run.wall_seconds,
        predicted_seconds=seconds,
        lower_seconds=least,
        upper_seconds=most,
        model=MEASURED,
        model_version=0,
        is_with_amm=False,
        observed_count=count,
        warnings=(f"measured on {target} itself, {measured_at:%Y-%m-%d} ({spread}): no prediction",),
    )
