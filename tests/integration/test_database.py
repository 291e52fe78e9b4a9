"""PostgreSQL keeps the state of Dagster and MLflow: switching, losing it, two that start at once."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster_postgres.utils import wait_for_connection

from perf_assets.cli import main
from perf_assets.core.errors import BadInputError, BusyError, DatabaseError
from perf_assets.defs.operate.dead_runs import end_dead_runs, note_launcher
from perf_assets.infra.postgres import Address, LeaseClaim
from perf_assets.storage.record import MachineRecord
from tests.dagster_events import note_process
from tests.defs.conftest import land_perf_stat
from tests.installation import Installation, install, running, wait_for
from tests.postgres import PASSWORD, Server

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.xdist_group("postgres")]


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """What a refused command says."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("perf-assets: "))
    return line


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://perf@127.0.0.1:1/perf", "start the server"),
        ("postgresql://perf:a-secret-of-many-letters@127.0.0.1/perf", "PGPASSWORD"),
        ("postgresql://127.0.0.1/perf", "name user and database"),
        ("mysql://perf@127.0.0.1/perf", "no PostgreSQL"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_changes_nothing(
    installation: Installation, address: str, told: str
) -> None:
    before = (installation.home / "dagster.yaml").read_bytes()
    line = one_line(installation.run("database", address))
    assert told in line
    assert "a-secret" not in line
    assert (installation.home / "dagster.yaml").read_bytes() == before
    assert not (installation.lake.root / "mlflow").exists()


def test_wrong_password_and_missing_database(postgres: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = Address.given(postgres.database())
    with pytest.raises(DatabaseError, match=r"does not exist.*createdb"):
        Address(f"{address.text}nope").check()
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(DatabaseError, match="PGPASSWORD"):
        address.check()
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(DatabaseError, match=r"authentication failed.*pgpass"):
        address.check()


def test_an_address_is_shown_without_its_password() -> None:
    address = Address(
        "postgresql://perf:a-secret-of-many-letters@db.example.org/perf?sslmode=require&options=-csearch_path%3Dmlflow"
    )
    assert str(address) == "postgresql://perf@db.example.org/perf"
    assert "sslmode=require" in Address.given("postgresql://perf@db/perf?sslmode=require").in_schema("dagster")
    with pytest.raises(BadInputError, match="no address"):
        Address.given("somewhere")
    with pytest.raises(BadInputError, match="to be written as %40"):
        str(Address("postgresql://perf:pa:ss@w/ord@db.example.org/perf"))


def test_a_loss_half_way_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def lose() -> None:
        wait_for_connection("postgresql+psycopg2://perf:a-secret-of-many-letters@127.0.0.1:1/perf", retry_limit=0)

    monkeypatch.setattr(main, "_run", lose)
    monkeypatch.setattr(os, "_exit", lambda code: sys.exit(code))
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("perf-assets: PostgreSQL went away")
    assert line.endswith("start the server, or look at host, port and network; then do this again")


def test_a_claim_outlives_the_server(postgres: Server) -> None:
    address = Address.given(postgres.database())
    first, second = LeaseClaim(address, "work"), LeaseClaim(address, "work")
    first.hold()
    with pytest.raises(BusyError, match="another host"):
        second.hold()
    postgres.stop()
    with pytest.raises(DatabaseError):
        first.hold()
    postgres.start()
    first.hold()
    with pytest.raises(BusyError, match="another host"):
        second.hold()
    first.release()
    second.hold()
    second.release()


def test_two_hosts_make_the_tables_once(postgres: Server, tmp_path: Path) -> None:
    address = Address.given(postgres.database())
    address.make_schemas("mlflow")
    code = (
        "from perf_assets.registry.store import open_store;"
        "print(*(experiment.name for experiment in open_store().search_experiments()))"
    )
    hosts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        own = {
            "TMPDIR": str(tmp_path / name),
            "MLFLOW_TRACKING_URI": address.in_schema("mlflow"),
            "PERF_ASSETS_LAKE": str(tmp_path / "lake"),
        }
        hosts.append(
            subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, **own},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    answers = [host.communicate(timeout=800) for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], answers
    assert [out.strip() for out, _ in answers] == ["Default", "Default"]


def test_runs_that_died_on_this_host_are_ended(
    postgres: Server, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address.given(postgres.database())
    address.make_schemas("dagster")
    storage = {"storage": {"postgres": {"postgres_url": address.in_schema("dagster")}}}
    (installation.home / "dagster.yaml").write_text(json.dumps(storage))
    dead = subprocess.Popen(["true"])
    dead.wait()
    with dg.DagsterInstance.from_config(str(installation.home)) as instance:

        def launched() -> str:
            run = instance.create_run_for_job(dg.GraphDefinition("work").to_job())
            instance.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, "work"), run.run_id)
            note_process(instance, run, dead.pid)
            return str(run.run_id)

        launched()
        assert end_dead_runs(instance) == [], "nobody knows where it ran"
        note_launcher(instance)
        run = launched()
        note_launcher(instance)
        assert end_dead_runs(instance) == [run]
        host = socket.gethostname()
        monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
        left = launched()
        assert end_dead_runs(instance) == []
        told = note_launcher(instance)
        assert told is not None
        assert left[:8] in told
        assert f"while {host} launched runs" in told
        assert note_launcher(instance) is None


def test_one_command_switches_and_services_survive_a_loss(postgres: Server, installation: Installation) -> None:
    configuration = installation.home / "dagster.yaml"
    before = configuration.read_text()
    address = postgres.database()
    assert {store["where"] for store in installation.json("database", address)["stores"]} == {address}
    assert configuration.read_text().startswith(before)

    _live_through_a_loss(postgres, installation)

    with Address(address).connected() as connection:
        runs = connection.exec_driver_sql("SELECT DISTINCT status FROM dagster.runs").scalars().all()
        partitions = connection.exec_driver_sql("SELECT partition FROM dagster.dynamic_partitions").scalars().all()
        experiments = connection.exec_driver_sql("SELECT name FROM mlflow.experiments").scalars().all()
    assert runs
    assert (partitions, sorted(experiments)) == (["quartz"], ["Default"])
    assert not list(installation.root.rglob("*.db")), "a SQLite file was written"
    for path in installation.root.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path

    postgres.stop()
    told = one_line(installation.run("ingest", "--reread"))
    assert address in told
    assert "start the server" in told
    doctor = installation.run("doctor", "--json")
    found = {finding["check"]: finding for finding in json.loads(doctor.stdout)["findings"]}
    assert doctor.returncode == 1
    assert found["Dagster state"]["state"] == found["MLflow state"]["state"] == "problem"
    postgres.start()

    dagster, mlflow = installation.json("database", "sqlite")["stores"]
    assert dagster["where"].startswith("SQLite")
    assert mlflow["where"].startswith("sqlite:///")
    assert configuration.read_text() == before


def _live_through_a_loss(postgres: Server, installation: Installation) -> None:
    """Let services ingest by themselves, before and after their database was away."""
    other = install(installation.root / "other")
    shutil.copyfile(installation.home / "dagster.yaml", other.home / "dagster.yaml")

    def ingested() -> int:
        return len(MachineRecord(installation.lake.record, "quartz").ledger())

    told = installation.root / "told"
    with told.open("w") as file, running(installation, file) as up:
        land_perf_stat(installation.lake, "quartz", "b1", 12345)
        wait_for(lambda: ingested() == 1, "the first bundle in the record", 600)
        assert "on another host" in one_line(other.run("up", "--port", "0", "--mlflow-port", "0"))
        assert "stop it first" in one_line(installation.run("database", "sqlite"))
        daemon = installation.home / "service_logs" / "dagster-daemon.log"
        before = len(daemon.read_text())
        postgres.stop()
        wait_for(lambda: "What runs goes on when it is back" in told.read_text(), "that up tells of the loss", 300)
        wait_for(lambda: "onnection" in daemon.read_text()[before:], "that the daemon feels the loss", 300)
        postgres.start()
        land_perf_stat(installation.lake, "quartz", "b2", 54321)
        wait_for(lambda: ingested() == 2, "the second bundle in the record", 600)
        assert up.process.poll() is None
        assert up.ask("{ version }")["version"]
        processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert PASSWORD not in processes
