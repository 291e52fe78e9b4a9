"""Dispatch to clusters by what the champions of the registry say."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.cli.support.dispatch_models import TARGETS, VECTORS, registered_speeds
from perf_assets.core.errors import BadInputError
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.fleet.vectors import fleet_vectors
from perf_assets.models.vectors.model import train_vector
from perf_assets.registry.tables.vector import example_questions
from perf_assets.registry.vector import register_vector
from perf_assets.registry.versions import promote
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake
from tests.features.fleet_tables import fleet_tables, vector_rows
from tests.scheduling.traces import line, write
from tests.serving.conftest import MACHINE, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serving")]
OTHER = "elm"


def simulated(folder: Path, table: pd.DataFrame, machines: str, known: str) -> Result:
    table.to_csv(folder / "speeds.csv", index=False)
    log = write(folder / "log.swf", *(line(n, 20 * n, 30 + n % 7, 1 + n % 3, 100) for n in range(60)))
    wanted = ["simulate", str(log), "--speeds", str(folder / "speeds.csv"), "--machines", machines, "--known", known]
    return CliRunner().invoke(cli, [*wanted, "--models", "--load", "0.8", "--json"])


@pytest.mark.usefixtures("lake")
def test_target_models_answer_for_their_machines_and_source_models_for_others(fleet: Fleet, tmp_path: Path) -> None:
    rows = []
    for row in fleet.unseen()[:12]:
        run = fleet.run(row)
        key = {name: getattr(run, name) for name in ("app", "args", "ranks", "threads")}
        speeds = {
            name: float(np.exp(-fleet.samples.log_seconds[fleet.samples.machines.index(name), row]))
            for name in (MACHINE, OTHER)
        }
        rows.append({**key, fleet.reference: 1 / run.wall_seconds, **speeds, **run.counters})
    table = pd.DataFrame(rows).dropna(subset=[MACHINE, OTHER])
    done = simulated(tmp_path, table, f"{MACHINE}=4,{OTHER}=4", fleet.reference)
    assert done.exit_code == 0, done.output
    assert f"{TARGETS}: perf-source version" in done.stderr
    assert "perf-target-cedar version 1" in done.stderr
    assert f"{VECTORS}: left out" in done.stderr
    kept = {row["prediction"]: row for row in json.loads(done.stdout)["policies"] if row["rule"] == "turnaround"}
    assert set(kept) == {"ideal", TARGETS}
    strange = simulated(tmp_path, table.rename(columns={OTHER: "nowhere"}), "nowhere=4", fleet.reference)
    assert isinstance(strange.exception, BadInputError)
    assert "no champion of the registry knows nowhere" in str(strange.exception)


@pytest.mark.usefixtures("own_registry")
def test_the_vector_model_answers_for_all_clusters_at_once(tmp_path: Path) -> None:
    tables = fleet_tables()
    samples = fleet_vectors(vector_rows(tables), tables)
    settings = VectorSettings(components=["random_forest"], trees=5)
    registered = register_vector(train_vector(samples, "max", 0, settings), samples, {"manifests_digest": "abc"})
    promote(registered.name, registered.version)
    source = samples.machines[0]
    asked = example_questions(samples, 40)
    table = asked[asked["source_machine"] == source].assign(**{source: lambda rows: 1 / rows["wall_seconds"]})
    ways = [name for name in samples.machines if name != source][:2]
    found = registered_speeds(Predictor(Lake(tmp_path)), table, ways, source)
    assert set(found) == {VECTORS}
    assert found[VECTORS].shape == (len(table), 2)
    assert (found[VECTORS] > 0).all()
