"""`perf-assets predict`, `observe` and `plan` on files as people have them."""

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from fastapi.testclient import TestClient

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.serving.conftest import MACHINE, Fleet
from tests.serving.test_compare import QUARTZ, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serving")]
LIMITS = Limits(body_bytes=200_000, rows=100, seconds=60.0)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def refused(*arguments: str) -> str:
    """The line that the command ends with."""
    done = run(*arguments)
    assert isinstance(done.exception, BadInputError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)


@pytest.fixture
def table(fleet: Fleet, tmp_path: Path) -> Path:
    """Two runs on the reference machine with counters under its own names."""
    rows = []
    for row in fleet.unseen()[:2]:
        asked = fleet.run(row)
        ratios = {"PAPI_LD_INS": "load_ratio", "PAPI_SR_INS": "store_ratio", "PAPI_BR_INS": "branch_ratio"}
        counted = {name: 1e9 * (asked.counters[ratio] or 0.0) for name, ratio in ratios.items()}
        kept = {name: getattr(asked, name) for name in ("app", "args", "ranks", "threads", "wall_seconds")}
        rows.append({**kept, "PAPI_TOT_INS": 1e9, **counted})
    path = tmp_path / "runs.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_files_and_the_warehouse_give_the_same_answers(fleet: Fleet, lake: Lake, table: Path, tmp_path: Path) -> None:
    given = ("predict", "--from", fleet.reference, "--to", MACHINE)
    done = run(*given, str(table), "--json")
    assert done.exit_code == 0, done.output
    answers = json.loads(done.stdout)["predictions"]
    assert [answer["source_machine"] for answer in answers] == [fleet.reference] * 2
    assert all(answer["lower_seconds"] < answer["predicted_seconds"] < answer["upper_seconds"] for answer in answers)
    assert all("counters missing for" in answer["warnings"][0] for answer in answers)
    landed = run("land", str(table), "--machine", fleet.reference, "--kind", "samples", "--target", "wall_seconds")
    assert landed.exit_code == 0, landed.output
    ingest_machine(lake, fleet.reference, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(fleet.reference)
    warehouse.derive_machine(fleet.reference)
    first = answers[0]
    stored = run(*given, "--app", first["app"], "--args", first["args"], "--ranks", "1", "--json")
    assert json.loads(stored.stdout)["predictions"][0]["predicted_seconds"] == pytest.approx(
        first["predicted_seconds"], rel=1e-6
    )
    bundle = next((lake.landing / fleet.reference).iterdir())
    as_csv = run(*given, str(bundle), "--csv").stdout
    assert len(list(csv.DictReader(io.StringIO(as_csv)))) == 2
    run(*given, str(table), "--out", str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text())["predictions"] == answers
    shown = run(*given, str(table))
    assert "champion v1" in shown.stdout
    assert "note (2 of 2): cedar: counters missing for" in shown.stderr
    assert "no run of" in refused(*given, "--app", "Nonesuch")


def test_what_was_measured_there_is_said_and_not_predicted(
    fleet: Fleet, lake: Lake, table: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there.csv"
    pd.read_csv(table).assign(wall_seconds=77.0).to_csv(there, index=False)
    landed = run("land", str(there), "--machine", MACHINE, "--kind", "samples", "--target", "wall_seconds")
    assert landed.exit_code == 0, landed.output
    ingest_machine(lake, MACHINE, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(MACHINE)
    warehouse.derive_machine(MACHINE)
    given = ("predict", "--from", fleet.reference, "--to", MACHINE, str(table))
    answers = json.loads(run(*given, "--json").stdout)["predictions"]
    assert [(answer["model"], answer["predicted_seconds"]) for answer in answers] == [("measured", 77.0)] * 2
    assert answers[0]["warnings"][0].startswith("measured on cedar itself, 20")
    assert "measured there" in run(*given).stdout
    predicted = json.loads(run(*given, "--no-measured", "--json").stdout)["predictions"]
    assert {answer["model"] for answer in predicted} == {"perf-target-cedar"}
    asked = {"target": MACHINE, "runs": [fleet.run(row).model_dump() for row in fleet.unseen()[:2]]}
    with TestClient(create_app(Predictor(lake), LIMITS, None), "http://127.0.0.1") as client:
        for _ in range(2):
            over_http = client.post("/predict", json=asked).json()["predictions"]
            assert [(answer["model"], answer["warnings"]) for answer in over_http] == [
                ("measured", answer["warnings"]) for answer in answers
            ]
        unmeasured = client.post("/predict", json={**asked, "with_measured": False}).json()["predictions"]
        assert {answer["model"] for answer in unmeasured} == {"perf-target-cedar"}


def test_names_that_are_nearly_right_are_guessed(fleet: Fleet, lake: Lake, table: Path) -> None:
    given = (str(table), "--to", MACHINE)
    assert "did you mean" in refused("predict", "--from", f"{fleet.reference}x", *given)
    assert "did you mean cedar?" in refused("predict", "--from", fleet.reference, "--to", "ceder", str(table))


def test_bad_files_and_machines_are_one_line(fleet: Fleet, lake: Lake, table: Path, tmp_path: Path) -> None:
    given = ("predict", "--from", fleet.reference, "--to", MACHINE)
    empty, poor, typed, nan = (tmp_path / name for name in ("empty.csv", "perf.csv", "typed.csv", "nan.csv"))
    empty.write_text("")
    poor.write_text("5,,context-switches,7,100.00,,\n")
    typed.write_text("app,ranks,wall_seconds,PAPI_TOT_INS\nKripke,four,1.5,7\n")
    nan.write_text("app,args,ranks,wall_seconds,PAPI_TOT_INS\nKripke,-n 1,1,1.5,nan\n")
    cases = {
        (*given, str(empty)): "empty.csv",
        (*given, str(tmp_path / "nothing")): "does not exist",
        (
            *given,
            str(poor),
            "--app",
            "Kripke",
            "--wall-seconds",
            "2",
        ): "has none of the counters that the model of cedar",
        (*given, str(poor), "--app", "Kripke"): "says nothing of the run time: give --wall-seconds",
        (*given, str(typed)): "column 'ranks' must hold numbers",
        (*given, str(nan)): "has none of the counters that the model of cedar needs",
        ("predict", "--from", "nowhere", "--to", MACHINE, str(table)): "machine 'nowhere' is not known: nothing of it",
        ("predict", "--from", fleet.reference, "--to", "nowhere", str(table)): "machine 'nowhere' is not known",
        ("predict", "--from", "No/Where", "--to", MACHINE): "machine id 'No/Where' is not allowed",
        (*given, "--threads", "2"): "--threads is for a PROFILE: name one",
        (*given, str(table), "--csv", "--json"): "exclude each other",
        (*given, str(table), "--out", str(tmp_path / "no" / "out.csv")): "make the folder first",
    }
    for arguments, reason in cases.items():
        assert reason in refused(*arguments)


def test_runs_are_handed_in_and_planned(fleet: Fleet, lake: Lake, tmp_path: Path) -> None:
    row = fleet.unseen()[0]
    asked = fleet.run(row)
    told = ("observe", "--machine", MACHINE, "--app", asked.app, "--args", asked.args, "--ranks", "1")
    done = run(*told, "--threads", "1", "--wall-seconds", str(2 * fleet.seconds(row)), "--json")
    assert done.exit_code == 0, done.output
    noted = json.loads(done.stdout)["observed"][0]
    assert noted["is_new"]
    assert (lake.landing / MACHINE / noted["bundle"] / "manifest.json").is_file()
    again = run(*told, "--threads", "1", "--wall-seconds", str(2 * fleet.seconds(row)), "--json")
    assert not json.loads(again.stdout)["observed"][0]["is_new"]
    assert refused(*told) == "name a PROFILE, or give --wall-seconds"
    assert "wall_seconds: Input should be greater than 0" in refused(*told, "--wall-seconds", "-3")
    assert "has no champion" in refused(
        "observe", "--machine", "fir", "--app", "x", "--ranks", "1", "--wall-seconds", "1"
    )
    elsewhere = tmp_path / "there.csv"
    elsewhere.write_text("app,args,ranks,threads,wall_seconds,load_ratio\nNew,-n 1,1,1,3.0,0.2\n")
    new = ("observe", "--machine", MACHINE, "--app", "New", "--args=-n 1", "--ranks", "1", "--wall-seconds", "2")
    assert "give that run as reference" in refused(*new)
    assert json.loads(run(*new, "--reference", str(elsewhere), "--json").stdout)["observed"][0]["observed_count"] == 2
    assert "no target model of 'fir'" in refused("plan", "fir")
    plan = json.loads(run("plan", MACHINE, "--budget", "3", "--json").stdout)
    worth_it = [one["configuration"] for one in plan["runs"] if one["is_worth_it"]]
    shown = run("plan", MACHINE, "--budget", "3").stdout
    assert plan["verdicts"][0] in shown
    assert shown.count("\n") > 3
    assert worth_it == [one["configuration"] for one in plan["runs"]][: len(worth_it)]


def test_serving_refuses_what_is_unsafe(lake: Lake, tmp_path: Path) -> None:
    assert "lets others in: give a token" in refused("serve", "--host", "0.0.0.0", "--port", "0")
    assert "cannot be read" in refused("serve", "--token-file", str(tmp_path / "none"))
    (tmp_path / "token").touch(0o600)
    assert "must hold one word" in refused("serve", "--token-file", str(tmp_path / "token"))


def test_reference_values_are_predictions_with_tolerances(
    fleet: Fleet, lake: Lake, table: Path, tmp_path: Path
) -> None:
    run("land", str(table), "--machine", fleet.reference, "--kind", "samples", "--target", "wall_seconds")
    ingest_machine(lake, fleet.reference, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(fleet.reference)
    warehouse.derive_machine(fleet.reference)
    done = run("predict", "--from", fleet.reference, "--to", MACHINE, "--json")
    predicted = {answer["args"]: answer for answer in json.loads(done.stdout)["predictions"]}
    out = tmp_path / "references.yaml"
    assert run("reference", MACHINE, "--out", str(out)).exit_code == 0
    found = yaml.safe_load(out.read_text())
    assert "not measured there" in out.read_text()
    assert {test["args"] for test in found["tests"]} == set(predicted)
    for test in found["tests"]:
        value, lower, upper, unit = test["reference"][MACHINE]["elapsed_seconds"]
        answer = predicted[test["args"]]
        assert unit == "s"
        assert value == pytest.approx(answer["predicted_seconds"], rel=1e-3)
        assert value * (1 + lower) == pytest.approx(answer["lower_seconds"], rel=2e-3)
        assert value * (1 + upper) == pytest.approx(answer["upper_seconds"], rel=2e-3)
    assert json.loads(run("reference", MACHINE, "--json").stdout)["tests"] == found["tests"]
    assert "nowhere" in refused("reference", "nowhere")


def test_a_host_with_a_warehouse_of_its_own_answers_from_the_record_as_it_is_now(
    fleet: Fleet, lake: Lake, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host ingested; nobody has brought this host's warehouse up to date by hand."""
    monkeypatch.setenv("PERF_ASSETS_WAREHOUSE", str(tmp_path / "host" / "warehouse.duckdb"))
    run("land", str(table), "--machine", fleet.reference, "--kind", "samples", "--target", "wall_seconds")
    ingest_machine(lake, fleet.reference, read_bundle)
    done = run("predict", "--from", fleet.reference, "--to", MACHINE, "--json")
    assert len(json.loads(done.stdout)["predictions"]) == 2
    planned = json.loads(run("plan", MACHINE, "--budget", "2", "--json").stdout)["runs"][0]
    assert planned["configuration"] == "{app} {args} ({ranks} x {threads})".format(**planned)
    script = run("plan", MACHINE, "--budget", "2", "--script", "--slurm").stdout
    assert f"--machine {MACHINE} --app {planned['app']} --ranks {planned['ranks']}" in script
    assert "give one of them" in refused("plan", MACHINE, "--script", "--json")
    assert "give --script too" in refused("plan", MACHINE, "--flux")
    assert run("reference", MACHINE, "--json").exit_code == 0
    more = pd.read_csv(table).assign(args="-n 123456")
    more.to_csv(table, index=False)
    run(
        "land", str(table), "--machine", fleet.reference, "--kind", "samples", "--target", "wall_seconds", "--name", "2"
    )
    ingest_machine(lake, fleet.reference, read_bundle)
    assert run("predict", "--from", fleet.reference, "--to", MACHINE, "--args", "-n 123456", "--json").exit_code == 0


def test_compare_on_a_host_with_a_warehouse_of_its_own_knows_what_another_host_ingested(
    fleet: Fleet, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERF_ASSETS_WAREHOUSE", str(tmp_path / "host" / "warehouse.duckdb"))
    asked = ("compare", "Kripke", "--machines", MACHINE, "--from", fleet.reference, "--predicted", "--json")
    for sizes in (2, 3):
        rows = rows_of(fleet, fleet.reference, sizes, ("Kripke",))
        rows.to_csv(tmp_path / "rows.csv", index=False)
        land_samples(tmp_path / "rows.csv", fleet.reference, str(sizes))
        ingest_machine(lake, fleet.reference, read_bundle)
        done = run(*asked)
        assert done.exit_code == 0, done.output
        (cedar,) = json.loads(done.stdout)["machines"]
        assert cedar["configurations"]["champion"] == sizes


def test_a_service_on_a_host_with_a_warehouse_of_its_own_reads_data_sheets_that_land_while_it_runs(
    fleet: Fleet, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERF_ASSETS_WAREHOUSE", str(tmp_path / "host" / "warehouse.duckdb"))
    asked = fleet.run(fleet.unseen()[0]).model_copy(
        update={"machine": "elm", "counters": {"ex_ret_instr": 1e9, "ex_ret_brn": 1e8, "PAPI_LD_INS": 3e8}}
    )
    rows, path, sheet = rows_of(fleet, "elm", 2, ("Kripke",)), tmp_path / "rows.csv", tmp_path / "sheet.yaml"
    text = QUARTZ.read_text().replace("machine: quartz", "machine: elm")
    sheet.write_text(re.sub(r"microarchitecture: .*", "microarchitecture: zen2", text))
    with TestClient(create_app(Predictor(lake), LIMITS, None), "http://127.0.0.1") as client:
        answers = []
        for name, options in (("runs", ()), ("runs-and-sheet", ("--spec", str(sheet)))):
            rows.assign(args=name).to_csv(path, index=False)
            land_samples(path, "elm", name, *options)
            ingest_machine(lake, "elm", read_bundle)
            answers.append(client.post("/predict", json={"target": "fir", "runs": [asked.model_dump()]}))
    assert "has none of the counters" in answers[0].text, "without a data sheet they mean nothing"
    assert answers[1].status_code == 200, answers[1].text
    (prediction,) = answers[1].json()["predictions"]
    assert "branch_ratio" not in " ".join(prediction["warnings"])


def land_samples(path: Path, machine: str, name: str, *options: str) -> None:
    given = ("land", str(path), "--machine", machine, "--kind", "samples", "--target", "wall_seconds", "--name", name)
    assert run(*given, *options).exit_code == 0
