"""Backup and restore of Dagster's and MLflow's state: SQLite files and PostgreSQL, while others write."""

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.defs.operate.dead_runs import PROCESS_TAG, own_process
from perf_assets.defs.operate.launch import ingest_machines, open_instance
from perf_assets.infra.leases import leased
from perf_assets.storage.record import MachineRecord
from tests.defs.conftest import land_perf_stat
from tests.installation import Installation, wait_for
from tests.integration.test_carry_over import carry, models, original, runs, use, used
from tests.postgres import Server

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("postgres")]
__all__ = ["original", "used"]


def done(*arguments: str) -> None:
    ended = CliRunner().invoke(cli, [*arguments])
    assert ended.exit_code == 0, (ended.output, ended.exception)


def refused(*arguments: str) -> str:
    ended = CliRunner().invoke(cli, [*arguments])
    assert isinstance(ended.exception, BadInputError), ended.output
    return str(ended.exception)


def restored(root: Path, patch: pytest.MonkeyPatch) -> Installation:
    """The home that was restored, in use."""
    (root / "data_lake").rename(root / "lake")
    use(Installation(root), patch)
    return Installation(root)


def test_sqlite_files_come_back_and_go_on(used: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = models(), runs(), MachineRecord(used.lake.record, "quartz").digest()
    done("backup", str(tmp_path / "saved"))
    shutil.rmtree(used.root)
    done("restore", str(tmp_path / "saved"), str(tmp_path / "again"))
    again = restored(tmp_path / "again", monkeypatch)
    assert (models(), runs(), MachineRecord(again.lake.record, "quartz").digest()) == before
    land_perf_stat(again.lake, "quartz", "b2", 54321)
    (outcome,) = ingest_machines(["quartz"], lambda machine: None)
    assert outcome.failure is None


def test_postgresql_comes_back_in_another_database(
    used: Installation, tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry(postgres.database())
    before = models(), runs()
    done("backup", str(tmp_path / "saved"))
    place = str(tmp_path / "again")
    assert "name an empty database" in refused("restore", str(tmp_path / "saved"), place)
    full = (used.lake.root / "mlflow" / "tracking_uri").read_text().split("?")[0].replace("+psycopg2", "")
    assert "has tables already" in refused("restore", str(tmp_path / "saved"), place, "--database", full)
    assert not (tmp_path / "again").exists()
    done("restore", str(tmp_path / "saved"), place, "--database", postgres.database())
    again = restored(tmp_path / "again", monkeypatch)
    assert (models(), runs()) == before
    land_perf_stat(again.lake, "quartz", "b2", 54321)
    (outcome,) = ingest_machines(["quartz"], lambda machine: None)
    assert outcome.failure is None
    use(used, monkeypatch)
    assert len(runs()["runs"]) == len(before[1]["runs"]), "the saved one goes its own way"


def test_a_backup_waits_for_runs_and_holds_up_writers(
    used: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = "11111111-2222-3333-4444-555555555555"
    with open_instance() as instance:
        (like,) = instance.get_runs(limit=1)
        mine = {PROCESS_TAG: own_process()}
        instance.add_run(like._replace(run_id=number, status=dg.DagsterRunStatus.STARTED, tags=mine))
    ended = CliRunner().invoke(cli, ["backup", str(tmp_path / "saved"), "--wait", "0"])
    assert isinstance(ended.exception, BusyError)
    assert number[:8] in str(ended.exception)
    with open_instance() as instance:
        instance.delete_run(number)
    begun, let_go = threading.Event(), threading.Event()

    def ingestion() -> None:
        with leased(used.lake.locks / "quartz.lock", "ingestion", 0):
            begun.set()
            let_go.wait(60)

    writer = threading.Thread(target=ingestion)
    writer.start()
    begun.wait(60)
    saving = threading.Thread(target=done, args=("backup", str(tmp_path / "saved")))
    saving.start()
    saving.join(2)
    assert saving.is_alive(), "it waits for the writer of quartz"
    let_go.set()
    saving.join(60)
    writer.join()
    assert (tmp_path / "saved" / "backup.json").is_file()


def test_a_backup_beside_a_training_is_what_a_stopped_training_leaves(used: Installation, tmp_path: Path) -> None:
    """Rows that name a version are stored after it: a copy may have a version without its rows, never the reverse."""
    scores, unfinished = used.lake.record / "model_source__scores" / "rows.parquet", tmp_path / ".saved.tmp"
    scores.parent.mkdir()
    scores.write_text("of version 2")
    registry = sqlite3.connect(used.lake.root / "mlflow" / "mlflow.db", isolation_level=None)
    with open_instance() as instance:
        (like,) = instance.get_runs(limit=1)
        begun = like._replace(run_id="11111111-2222-3333-4444-555555555555", status=dg.DagsterRunStatus.STARTED)
        with closing(registry):
            with leased(used.lake.locks / "quartz.lock", "ingestion", 0):
                saving = threading.Thread(target=done, args=("backup", str(tmp_path / "saved")))
                saving.start()
                wait_for(unfinished.is_dir, "the begin of the backup", 60)
                instance.add_run(begun)
                registry.execute("BEGIN EXCLUSIVE")
            copied = unfinished / "dagster_home" / "history" / "runs.db"
            wait_for(copied.is_file, "the copy of Dagster's runs, which follows that of the record", 60)
            registry.execute("UPDATE registered_models SET description = 'has version 3'")
            registry.execute("COMMIT")
            scores.write_text("of version 3")
        saving.join(120)
        assert instance.get_run_by_id(begun.run_id) == begun
    done("restore", str(tmp_path / "saved"), str(tmp_path / "again"))
    lake = tmp_path / "again" / "data_lake"
    with closing(sqlite3.connect(lake / "mlflow" / "mlflow.db")) as copy:
        assert copy.execute("SELECT description FROM registered_models").fetchall() == [("has version 3",)]
    assert (lake / "record" / scores.parent.name / scores.name).read_text() == "of version 2"
    with dg.DagsterInstance.from_config(str(tmp_path / "again" / "dagster_home")) as instance:
        ended = instance.get_run_by_id(begun.run_id)
    assert ended is not None
    assert ended.status == dg.DagsterRunStatus.FAILURE, "nobody is at work on it there"
