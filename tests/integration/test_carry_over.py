"""What SQLite files hold is carried over to PostgreSQL: everything, or nothing."""

import os
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from perf_assets.cli.commands.operate.database import command
from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.core.paths import mlflow_tracking_uri
from perf_assets.defs.operate.dead_runs import PROCESS_TAG, own_process
from perf_assets.defs.operate.launch import ingest_machines, open_instance
from perf_assets.infra.postgres import Address
from perf_assets.registry.store import open_store
from tests.defs.conftest import land_perf_stat, spoil
from tests.installation import Installation, install
from tests.postgres import Server

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("postgres")]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation whose SQLite files hold runs of Dagster, and models and runs of MLflow."""
    made = install(tmp_path_factory.mktemp("original") / "installation")
    land_perf_stat(made.lake, "quartz", "b1", 12345)
    spoil(land_perf_stat(made.lake, "ruby", "b1", 12345))
    with pytest.MonkeyPatch.context() as patch:
        use(made, patch)
        outcomes = list(ingest_machines(["quartz", "ruby"], lambda machine: None))
        assert [outcome.failure for outcome in outcomes] == [None, None]
        with open_instance() as instance:
            instance.run_storage.set_cursor_values({"a cursor": "its value"})
        _register()
    return made


def use(installation: Installation, patch: pytest.MonkeyPatch) -> None:
    # Opening a store sets it.
    patch.setenv("MLFLOW_TRACKING_URI", "")
    patch.setenv("PERF_ASSETS_LAKE", str(installation.lake.root))
    patch.setenv("DAGSTER_HOME", str(installation.home))


@pytest.fixture
def used(original: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A copy of it that is in use."""
    shutil.copytree(original.root, tmp_path / "installation")
    use(Installation(tmp_path / "installation"), monkeypatch)
    return Installation(tmp_path / "installation")


def _register() -> None:
    client = open_store()
    experiment = client.create_experiment("perf-target", artifact_location="file:///nowhere")
    run = client.create_run(experiment, tags={"made of": "tests"})
    client.log_metric(run.info.run_id, "mape", 0.25)
    client.log_metric(run.info.run_id, "undefined", float("nan"))
    client.log_param(run.info.run_id, "seed", 3)
    client.set_terminated(run.info.run_id)
    client.create_registered_model("perf-target-quartz")
    for number in ("1", "2"):
        client.create_model_version(
            "perf-target-quartz", f"file:///nowhere/{number}", run.info.run_id, tags={"number": number}
        )
    client.set_registered_model_alias("perf-target-quartz", "champion", "2")


def models() -> dict[str, Any]:
    """What MLflow says."""
    os.environ["MLFLOW_TRACKING_URI"] = ""
    client = open_store()
    (run,) = client.search_runs([e.experiment_id for e in client.search_experiments()])
    version = client.get_model_version_by_alias("perf-target-quartz", "champion")
    return {
        "metrics": repr(sorted(run.data.metrics.items())),
        "params": run.data.params,
        "tags": run.data.tags,
        "artifacts": run.info.artifact_uri,
        "versions": sorted((v.version, v.source, str(v.tags)) for v in client.search_model_versions()),
        "champion": (version.version, version.tags, version.creation_timestamp),
    }


def runs() -> dict[str, Any]:
    """What Dagster says."""
    with open_instance() as instance:
        records = instance.get_run_records()
        ids = [record.dagster_run.run_id for record in records]
        keys = sorted(instance.all_asset_keys())
        return {
            "runs": [(r.dagster_run.run_id, r.dagster_run.status, r.dagster_run.tags, r.start_time) for r in records],
            "events": {i: Counter((e.timestamp, e.message, e.step_key) for e in instance.all_logs(i)) for i in ids},
            "machines": sorted(instance.get_dynamic_partitions("machines")),
            "materialized": {key: sorted(instance.get_materialized_partitions(key)) for key in keys},
            "numbers": {
                key: [(r.storage_id, r.run_id) for r in instance.fetch_materializations(key, limit=9).records]
                for key in keys
            },
            "cursors": instance.run_storage.get_cursor_values({"a cursor"}),
        }


def carry(address: str) -> None:
    os.environ["MLFLOW_TRACKING_URI"] = ""
    command.main([address, "--carry-over"], standalone_mode=False)


def test_everything_is_carried_over_and_goes_on(used: Installation, postgres: Server) -> None:
    before = models(), runs()
    address = postgres.database()
    carry(address)
    assert (models(), runs()) == before
    land_perf_stat(used.lake, "quartz", "b2", 54321)
    (outcome,) = ingest_machines(["quartz"], lambda machine: None)
    assert outcome.failure is None, "new numbers follow those that were carried over"
    assert len(runs()["runs"]) == len(before[1]["runs"]) + 1
    os.environ["MLFLOW_TRACKING_URI"] = ""
    client = open_store()
    assert client.create_model_version("perf-target-quartz", "file:///nowhere/3").version == 3
    with pytest.raises(BadInputError, match="from SQLite files only"):
        carry(postgres.database())
    os.environ["MLFLOW_TRACKING_URI"] = ""
    command.main(["sqlite"], standalone_mode=False)
    assert (models(), runs()) == before
    with pytest.raises(BadInputError, match=r"already holds 3 rows of dagster\.runs"):
        carry(address)


def test_what_cannot_be_carried_over_leaves_everything_as_it_was(used: Installation, postgres: Server) -> None:
    with sqlite3.connect(used.lake.root / "mlflow" / "mlflow.db") as connection:
        connection.execute("UPDATE tags SET value = 'no text' || char(0)")
    before = (used.home / "dagster.yaml").read_bytes()
    address = postgres.database()
    with pytest.raises(BadInputError, match="nothing was carried over"):
        carry(address)
    assert (used.home / "dagster.yaml").read_bytes() == before
    os.environ["MLFLOW_TRACKING_URI"] = ""
    assert mlflow_tracking_uri().startswith("sqlite:")
    with Address(address).connected() as target:
        for table in ("dagster.runs", "dagster.event_logs", "mlflow.runs", "mlflow.registered_models"):
            assert target.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 0, table


def test_runs_at_work_are_waited_for(used: Installation, postgres: Server) -> None:
    with open_instance() as instance:
        work = instance.create_run_for_job(dg.GraphDefinition("work").to_job(), tags={PROCESS_TAG: own_process()})
        instance.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, "work"), work.run_id)
    with pytest.raises(BusyError, match="runs are at work"):
        carry(postgres.database())
    assert not (used.lake.root / "mlflow" / "tracking_uri").exists()
