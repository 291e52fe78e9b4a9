"""New machine data lands, and without another command its model is the champion in MLflow."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.tables.runs import CONFIGURATION, FEATURES
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.ingest import ingest_machine
from tests.installation import Installation, Up, bundles_of, land_bundles, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1500), pytest.mark.xdist_group("live")]

MACHINE, JOB, SHOTS = "dane", "refresh_machine", 5
RUN_SECONDS = 400.0
"""A sensor interval and a run, on a machine that is busy with other tests."""


def runs_of_machine(up: Up) -> list[dict[str, Any]]:
    """Of this machine, newest first."""
    return [run for run in up.runs(JOB) if {"key": "dagster/partition", "value": MACHINE} in run["tags"]]


def has_ended(up: Up, count: int) -> bool:
    """Whether there are so many runs, and the newest succeeded."""
    found = runs_of_machine(up)
    assert not any(run["status"] == "FAILURE" for run in found), found
    return len(found) == count and found[0]["status"] == "SUCCESS"


def champion(installation: Installation) -> int | None:
    found = installation.json("models")["models"]
    numbers = [
        row["version"] for row in found if row["name"] == f"perf-target-{MACHINE}" and "champion" in row["aliases"]
    ]
    return numbers[0] if numbers else None


def true_times(folder: Path) -> pd.DataFrame:
    """What the machine takes for all configurations, from a lake where everything landed."""
    lake = Lake(folder)
    for part in bundles_of(MACHINE):
        for bundle in part:
            land(lake, bundle.facts, bundle.name, bundle.write)
    ingest_machine(lake, MACHINE, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(MACHINE)
    warehouse.derive_machine(MACHINE)
    return warehouse.frame(f"SELECT {', '.join(CONFIGURATION)}, wall_seconds FROM {FEATURES.name}")


def predicted(installation: Installation, folder: Path) -> pd.DataFrame:
    """Predictions of the champion in a plain Python process, from raw counters of its reference machine."""
    script = """
import json, sys
import mlflow, pandas as pd
model = mlflow.pyfunc.load_model(f"models:/perf-target-{sys.argv[1]}@champion")
asked = pd.read_parquet(sys.argv[2])
source = model.input_example["source_machine"][0]
asked = asked[asked["source_machine"] == source].reset_index(drop=True)
found = model.predict(asked.assign(an_extra_column=1.0))
found[["app", "args", "ranks", "threads"]] = asked[["app", "args", "ranks", "threads"]]
found.to_parquet(sys.argv[3])
"""
    warehouse = Warehouse(installation.lake)
    tables = [
        warehouse.frame(f'SELECT * EXCLUDE (labels, target_value) FROM core_runs__counters_wide."{machine}"').assign(
            source_machine=machine
        )
        for machine in ("quartz", "ruby", "lassen")
    ]
    pd.concat(tables, ignore_index=True).to_parquet(folder / "asked.parquet")
    tracking = f"sqlite:///{installation.lake.root / 'mlflow' / 'mlflow.db'}"
    done = subprocess.run(
        [sys.executable, "-c", script, MACHINE, folder / "asked.parquet", folder / "found.parquet"],
        env=installation.environment() | {"MLFLOW_TRACKING_URI": tracking},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return pd.read_parquet(folder / "found.parquet")


def error(found: pd.DataFrame, true: pd.DataFrame, held_out: set[tuple[object, ...]]) -> float:
    """Median |predicted / true - 1| over configurations that never landed."""
    both = found.merge(true, on=list(CONFIGURATION))
    both = both[[key in held_out for key in both[list(CONFIGURATION)].itertuples(index=False, name=None)]]
    assert len(both) > 20
    assert (both["lower_seconds"] < both["predicted_seconds"]).all()
    return float(np.median(np.abs(both["predicted_seconds"] / both["wall_seconds"] - 1)))


def test_a_new_machine_gets_its_champion_by_itself(live: Up, trained: Installation, tmp_path: Path) -> None:
    true = true_times(tmp_path / "everything")
    benchmark, runs = bundles_of(MACHINE)
    chosen = [runs[position] for position in np.random.default_rng(0).permutation(len(runs))]
    sources = {row["version"] for row in trained.json("models", "perf-source")["models"]}

    land_bundles(trained, benchmark)
    wait_for(lambda: has_ended(live, 1), "the end of the run", RUN_SECONDS)
    assert champion(trained) == 1
    landed = {bundle.name for bundle in chosen[:SHOTS]}
    held_out = {
        (bundle.facts.app, bundle.facts.args, bundle.facts.ranks, bundle.facts.threads)
        for bundle in chosen
        if bundle.name not in landed
    }
    first = error(predicted(trained, tmp_path), true, held_out)

    before = [run["runId"] for run in runs_of_machine(live)]
    assert len(before) == 1
    land_bundles(trained, benchmark)
    ticks = count_ticks(live)
    wait_for(lambda: count_ticks(live) >= ticks + 2, "two ticks of the sensor", RUN_SECONDS)
    assert [run["runId"] for run in runs_of_machine(live)] == before, "the same content starts nothing"

    land_bundles(trained, chosen[:SHOTS])
    wait_for(lambda: has_ended(live, 2), "a second run", RUN_SECONDS)
    assert champion(trained) == 2
    second = error(predicted(trained, tmp_path), true, held_out)
    assert second < first, (second, first)
    assert {row["version"] for row in trained.json("models", "perf-source")["models"]} == sources, "sources stay"
    (version, _) = trained.json("models", f"perf-target-{MACHINE}")["models"]
    assert version["tags"]["dagster_run_id"] == runs_of_machine(live)[0]["runId"]
    for tag in ("machine", "source_version", "amm_version", "manifests_digest", "severity", "code_version"):
        assert tag in version["tags"], tag
    page = (trained.lake.reports / f"machine-{MACHINE}.html").read_text()
    assert "version 2" in page


def count_ticks(up: Up) -> int:
    question = (
        '{ sensorsOrError(repositorySelector: {repositoryName: "__repository__", '
        'repositoryLocationName: "perf_assets.definitions"}) '
        "{ ... on Sensors { results { name sensorState { ticks(limit: 1000) { id } } } } } }"
    )
    sensors = up.ask(question)["sensorsOrError"]["results"]
    return next(len(sensor["sensorState"]["ticks"]) for sensor in sensors if sensor["name"] == "landing_sensor")
