"""A machine joins a running site: its benchmark lands, then the same again, then some runs; nobody gives a command."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perf_assets.core.tables.runs import CONFIGURATION, FEATURES
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.installation import Installation, Up, bundles_of, land_bundles, run_script, wait_for
from tests.trained_site import MACHINES

MACHINE, JOB, SHOTS = "dane", "refresh_machine", 5
RUN_SECONDS = 400.0
"""A sensor interval and a run, on a machine that is busy with other tests."""


@dataclass(frozen=True)
class Joined:
    """What was seen at each step."""

    champions: tuple[int | None, ...]
    """Version in use after the benchmark, and after the runs."""
    errors: tuple[float, ...]
    """Median |predicted / true - 1| at the same moments, over configurations that never landed."""
    runs: tuple[tuple[str, ...], ...]
    """Ids of the machine's runs after the benchmark, after the same content again, and after the runs; newest first."""
    sources: tuple[set[int], ...]
    """Versions of source models before and afterwards."""
    tags: dict[str, str]
    """Of the newest target model."""
    page: str


def join(up: Up, site: Installation, folder: Path) -> Joined:
    """Let it join, with a folder for files of its own."""
    true = _true_times(folder / "everything")
    benchmark, runs = bundles_of(MACHINE)
    chosen = [runs[position] for position in np.random.default_rng(0).permutation(len(runs))]
    held_out = {
        (bundle.facts.app, bundle.facts.args, bundle.facts.ranks, bundle.facts.threads) for bundle in chosen[SHOTS:]
    }
    sources = [_source_versions(site)]

    land_at_once(site, MACHINE, benchmark, folder / "first")
    wait_for(lambda: _has_ended(up, 1), "the end of the run", RUN_SECONDS)
    champions = [_champion(site)]
    errors = [_error(_predicted(site, folder), true, held_out)]
    seen = [_run_ids(up)]

    land_bundles(site, benchmark)
    ticks = _count_ticks(up)
    wait_for(lambda: _count_ticks(up) >= ticks + 2, "two ticks of the sensor", RUN_SECONDS)
    seen.append(_run_ids(up))

    land_at_once(site, MACHINE, chosen[:SHOTS], folder / "second")
    wait_for(lambda: _has_ended(up, 2), "a second run", RUN_SECONDS)
    champions.append(_champion(site))
    errors.append(_error(_predicted(site, folder), true, held_out))
    seen.append(_run_ids(up))
    sources.append(_source_versions(site))
    newest = site.json("models", f"perf-target-{MACHINE}")["models"][0]
    page = (site.lake.reports / f"machine-{MACHINE}.html").read_text()
    return Joined(tuple(champions), tuple(errors), tuple(seen), tuple(sources), newest["tags"], page)


def land_at_once(site: Installation, machine: str, bundles: Iterable[SimulatedBundle], folder: Path) -> None:
    """Land bundles of a machine by renaming folders: a tick of the sensor sees nothing of it, or all."""
    staged = Lake(folder)
    for bundle in bundles:
        land(staged, bundle.facts, bundle.name, bundle.write)
    own = site.lake.landing / machine
    own.mkdir(parents=True, exist_ok=True)
    for landed in sorted((staged.landing / machine).iterdir()):
        landed.rename(own / landed.name)


def runs_of_machine(up: Up) -> list[dict[str, Any]]:
    """Runs of this machine, newest first."""
    return [run for run in up.runs(JOB) if {"key": "dagster/partition", "value": MACHINE} in run["tags"]]


def _run_ids(up: Up) -> tuple[str, ...]:
    return tuple(run["runId"] for run in runs_of_machine(up))


def _has_ended(up: Up, count: int) -> bool:
    """Whether there are so many runs, and the newest succeeded."""
    runs = runs_of_machine(up)
    assert not any(run["status"] == "FAILURE" for run in runs), runs
    return len(runs) == count and runs[0]["status"] == "SUCCESS"


def _source_versions(site: Installation) -> set[int]:
    return {row["version"] for row in site.json("models", "perf-source")["models"]}


def _champion(site: Installation) -> int | None:
    models = site.json("models")["models"]
    numbers = [
        row["version"] for row in models if row["name"] == f"perf-target-{MACHINE}" and "champion" in row["aliases"]
    ]
    return numbers[0] if numbers else None


def _true_times(folder: Path) -> pd.DataFrame:
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


def _predicted(site: Installation, folder: Path) -> pd.DataFrame:
    """Predictions of the champion by MLflow alone, from raw counters of its reference machine."""
    script = folder / "predicted.py"
    script.write_text("""
import sys
import mlflow, pandas as pd
model = mlflow.pyfunc.load_model(f"models:/perf-target-{sys.argv[1]}@champion")
asked = pd.read_parquet(sys.argv[2])
source = model.input_example["source_machine"][0]
asked = asked[asked["source_machine"] == source].reset_index(drop=True)
found = model.predict(asked.assign(an_extra_column=1.0))
found[["app", "args", "ranks", "threads"]] = asked[["app", "args", "ranks", "threads"]]
found.to_parquet(sys.argv[3])
""")
    warehouse = Warehouse(site.lake)
    tables = [
        warehouse.frame(f'SELECT * EXCLUDE (labels, target_value) FROM core_runs__counters_wide."{machine}"').assign(
            source_machine=machine
        )
        for machine in MACHINES
    ]
    pd.concat(tables, ignore_index=True).to_parquet(folder / "asked.parquet")
    tracking = f"sqlite:///{site.lake.root / 'mlflow' / 'mlflow.db'}"
    arguments = [MACHINE, str(folder / "asked.parquet"), str(folder / "found.parquet")]
    done = run_script(script, arguments, site.environment() | {"MLFLOW_TRACKING_URI": tracking}, folder)
    assert done.returncode == 0, done.stderr
    return pd.read_parquet(folder / "found.parquet")


def _error(predicted: pd.DataFrame, true: pd.DataFrame, held_out: set[tuple[object, ...]]) -> float:
    both = predicted.merge(true, on=list(CONFIGURATION))
    both = both[[key in held_out for key in both[list(CONFIGURATION)].itertuples(index=False, name=None)]]
    assert len(both) > 20
    assert (both["lower_seconds"] < both["predicted_seconds"]).all()
    return float(np.median(np.abs(both["predicted_seconds"] / both["wall_seconds"] - 1)))


def _count_ticks(up: Up) -> int:
    question = (
        '{ sensorsOrError(repositorySelector: {repositoryName: "__repository__", '
        'repositoryLocationName: "perf_assets.definitions"}) '
        "{ ... on Sensors { results { name sensorState { ticks(limit: 1000) { id } } } } } }"
    )
    sensors = up.ask(question)["sensorsOrError"]["results"]
    return next(len(sensor["sensorState"]["ticks"]) for sensor in sensors if sensor["name"] == "landing_sensor")
