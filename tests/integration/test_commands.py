"""The command line as a person uses it: real files in, tables out; wrong input is one line and exit code 2."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from perf_assets.core.tables.landing import TABLES
from perf_assets.demo.fleet_machines import machine_text
from perf_assets.storage.warehouse import Warehouse
from tests.defs.conftest import land_perf_stat, spoil
from tests.installation import PROGRAM, Installation, bundles_of, land_bundles, run_command, wait_for
from tests.reports.site_checks import check_site

pytestmark = pytest.mark.integration


def tables(installation: Installation) -> dict[str, pd.DataFrame]:
    warehouse = Warehouse(installation.lake)
    return {table.name: warehouse.frame(f'SELECT * FROM "{table.name}" ORDER BY ALL') for table in TABLES}


def test_real_outputs_land_and_become_rows(installation: Installation, shared_data: Path) -> None:
    kripke = str(shared_data / "hpctoolkit" / "kripke")
    landed = installation.json("land", kripke, "--machine", "quartz")["bundles"][0]
    assert (landed["kind"], landed["state"]) == ("profile", "landed")
    assert installation.json("land", kripke, "--machine", "quartz")["bundles"][0]["state"] == "already there"
    reports = str(shared_data / "rajaperf" / "epyc-vm_2024" / "t2_s100000_quiet")
    assert installation.json("land", reports, "--machine", "epyc-vm")["bundles"][0]["kind"] == "rajaperf"
    rows = installation.json("ingest")["machines"]
    assert [(row["machine"], row["bundles"], row["quarantined"]) for row in rows] == [
        ("epyc-vm", 1, 0),
        ("quartz", 1, 0),
    ]
    found = tables(installation)
    run = found["raw_profiles__runs"].iloc[0]
    assert (run["app"], run["ranks"], run["threads"], run["is_simulated"]) == ("kripke", 64, 1, False)
    counters = found["raw_profiles__counters"].set_index("counter")
    assert counters.loc["CPUTIME (usec)", "value_sum"] == 12_278_697_513
    timings = found["raw_rajaperf__timings"]
    assert set(timings["threads"].dropna()) <= {1, 2}
    assert timings["is_valid"].sum() > 250


def test_a_data_sheet_lands_beside_the_benchmark(installation: Installation, tmp_path: Path) -> None:
    sheet = tmp_path / "machine.yaml"
    sheet.write_text(machine_text("epyc-vm"))
    (tmp_path / "perf.csv").write_text("5,,instructions,7,100.00,,\n")
    given = ["land", str(tmp_path / "perf.csv"), "--app", "Kripke", "--wall-seconds", "2", "--tag", "who=me"]
    other = installation.run(*given, "--machine", "quartz", "--spec", str(sheet))
    assert (other.returncode, "is of machine 'epyc-vm'" in other.stderr) == (2, True)
    installation.json(*given, "--machine", "epyc-vm", "--spec", str(sheet))
    installation.json("ingest")
    found = tables(installation)
    assert found["core_machines__specs"]["cpu_cores_per_socket"].tolist() == [2]
    assert found["raw_profiles__runs"]["wall_seconds"].tolist() == [2.0]


def test_a_bundle_with_a_manifest_of_its_own_lands_as_it_is(installation: Installation, tmp_path: Path) -> None:
    elsewhere = Installation(tmp_path / "elsewhere")
    prepared = str(land_perf_stat(elsewhere.lake, "quartz", "run-7", 5).bundle.directory)
    landed = installation.json("land", prepared)["bundles"][0]
    assert (landed["bundle"], landed["state"]) == ("run-7", "landed")
    assert installation.json("land", prepared)["bundles"][0]["state"] == "already there"
    refused = installation.run("land", prepared, "--machine", "ruby")
    assert (refused.returncode, "leave out --machine" in refused.stderr) == (2, True)


def test_reading_prints_documented_fields(installation: Installation, shared_data: Path) -> None:
    database = installation.json("read", str(shared_data / "hpctoolkit" / "osu_allgather"))
    assert database["format"] == "hpctoolkit-xml-metricdb"
    (profile,) = database["profiles"]
    assert (profile["ranks"], profile["threads_per_rank"]) == (10, 2)
    time_total = profile["metrics"]["CPUTIME (usec)"]
    assert (time_total["sum"], time_total["mean_over_ranks"]) == (26_158_368, 2_615_836.8)
    assert (time_total["min"], time_total["max"], time_total["unit"]) == (0, 2_616_218, "usec")
    reports = installation.json("read", str(shared_data / "rajaperf" / "epyc-vm_2024" / "t2_s100000_quiet"))
    first = next(timing for timing in reports["timings"] if timing["variant"] == "Base_OpenMP")
    assert (first["kernel"], first["reps"], first["threads"], first["valid"]) == ("Basic_ARRAY_OF_PTRS", 5, 2, True)
    assert first["seconds_per_rep"] == pytest.approx(0.0019554, rel=1e-9)
    table = installation.run("read", str(shared_data / "papi" / "perf_stat.csv"))
    assert table.returncode == 0
    assert "task-clock" in table.stdout


def test_counters_are_listed_with_their_meaning(installation: Installation) -> None:
    land_perf_stat(installation.lake, "quartz", "b1", 7)
    installation.json("ingest")
    rows = {row["counter"]: row for row in installation.json("counters")["counters"]}
    assert (rows["instructions"]["quantities"], rows["instructions"]["meaning"]) == ("instructions", "retired")
    unknown = installation.json("counters", "--unmapped")["counters"]
    assert [row["counter"] for row in unknown] == ["task-clock"]


def test_ingesting_again_and_rebuilding_change_nothing(installation: Installation) -> None:
    for number in range(3):
        land_perf_stat(installation.lake, "quartz", f"b{number}", number)
    installation.json("ingest")
    before = tables(installation)
    again = installation.json("ingest")["machines"]
    assert [(row["bundles"], row["seconds"]) for row in again] == [(3, 0.0)]
    rebuilt = installation.json("ingest", "--rebuild")["rows"]
    assert rebuilt["raw_profiles__runs"] == 3
    for name, frame in tables(installation).items():
        pd.testing.assert_frame_equal(frame, before[name])


def test_a_bad_bundle_does_not_stop_the_good_ones(installation: Installation) -> None:
    land_perf_stat(installation.lake, "quartz", "good", 1)
    spoil(land_perf_stat(installation.lake, "quartz", "bad", 2))
    (installation.lake.landing / "Not A Machine").mkdir()
    done = installation.run("ingest", "--json")
    assert done.returncode == 0
    assert "is not named by a machine id" in done.stderr
    assert '"quarantined": 1' in done.stdout


def test_a_failing_machine_does_not_stop_the_others(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "perf.csv").write_text("1000,,instructions,5,100.00,,\n2000,,branches,5,100.00,,\n")
    installation.json("land", str(tmp_path / "perf.csv"), "--machine", "aaa", "--app", "Kripke", "--wall-seconds", "1")
    land_perf_stat(installation.lake, "zzz", "good", 1)
    done = installation.run("ingest", "--json")
    assert done.returncode == 2
    result = json.loads(done.stdout)
    assert result["failures"].keys() == {"aaa"}
    assert [(row["machine"], row["runs"]) for row in result["machines"]] == [("aaa", 1), ("zzz", 1)]
    assert "ingestion of aaa failed" in done.stderr


def test_every_row_of_a_table_of_samples_is_kept(installation: Installation, shared_data: Path) -> None:
    table = str(shared_data / "nvprof_gpus" / "GTX-980.csv")
    landed = installation.json("land", table, "--machine", "gtx-980", "--target", "Duration")["bundles"][0]
    assert landed["kind"] == "samples"
    (row,) = installation.json("ingest")["machines"]
    assert row["runs"] == row["configurations"] > 1000
    wide = Warehouse(installation.lake).frame('SELECT * FROM core_runs__counters_wide."gtx-980"')
    assert len(wide) == row["runs"]
    assert wide["target_value"].min() > 0
    assert "Duration" not in wide.columns


def _unknown(folder: Path) -> list[str]:
    (folder / "notes.txt").write_text("nothing a tool would write\n")
    return ["land", str(folder / "notes.txt"), "--machine", "quartz"]


def _illegal_machine(folder: Path) -> list[str]:
    return [*_unknown(folder)[:-1], "Quartz", "--kind", "profile"]


def _truncated(folder: Path) -> list[str]:
    (folder / "meta.db").write_bytes(b"HPCTOOLKITmeta\x04\x00" + bytes(20))
    (folder / "profile.db").write_bytes(b"HPCTOOLKITprof\x04\x00")
    return ["land", str(folder), "--machine", "quartz", "--app", "Kripke"]


def _link(folder: Path) -> list[str]:
    (folder / "data.csv").symlink_to("/etc/hostname")
    return ["land", str(folder), "--machine", "quartz"]


def _not_utf8(folder: Path) -> list[str]:
    (folder / "perf.csv").write_text("1,,instructions,5,100.00,,\n")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.csv")).write_text("1,,instructions,5,100.00,,\n")
    return ["land", str(folder), "--machine", "quartz", "--app", "Kripke", "--wall-seconds", "1"]


def _samples_without_target(folder: Path) -> list[str]:
    (folder / "table.csv").write_text("app,ranks,PAPI_TOT_INS,seconds\nKripke,1,5,0.5\n")
    return ["land", str(folder / "table.csv"), "--machine", "quartz", "--kind", "samples"]


def _perf_stat_of_nowhere(folder: Path) -> list[str]:
    (folder / "perf.csv").write_text("1,,instructions,5,100.00,,\n")
    return ["land", str(folder), "--app", "Kripke", "--wall-seconds", "1"]


def _without_its_target(folder: Path) -> list[str]:
    (folder / "table.csv").write_text("app,ranks,PAPI_TOT_INS\nKripke,1,5\n")
    return ["land", str(folder / "table.csv"), "--machine", "quartz", "--target", "wall_seconds"]


def _wrong_manifest(folder: Path) -> list[str]:
    (folder / "manifest.json").write_text('{"version": 1, "machine": "quartz"}')
    return ["land", str(folder)]


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (_unknown, "notes.txt"),
        (_illegal_machine, "notes.txt|is not allowed"),
        (_truncated, "meta.db|profile.db"),
        (_link, "symbolic link"),
        (_not_utf8, "not UTF-8"),
        (_samples_without_target, "target is missing"),
        (_wrong_manifest, "kind is missing"),
        (lambda folder: ["land", str(folder / "nowhere"), "--machine", "quartz"], "does not exist"),
        (lambda folder: ["land", str(folder), "--machine", "quartz"], "nothing|no file|empty"),
        (lambda folder: ["land", str(folder)], "empty"),
        (_perf_stat_of_nowhere, "--machine"),
        (_without_its_target, "no row has a number in the column 'wall_seconds'"),
        (lambda folder: ["land"], "Missing argument"),
        (lambda folder: ["ingest"], "nothing has landed"),
        (lambda folder: ["ingest", "--machine", "nowhere"], "land something first"),
        (lambda folder: ["demo", "--scale", "-1"], "--scale -1 is out of range"),
        (lambda folder: ["demo", "--machine", "nowhere"], "is not in the simulated fleet"),
        (lambda folder: ["fly"], "there is no command 'fly': there are init, demo, up"),
        (lambda folder: ["read", str(folder / "nowhere")], "does not exist"),
        (lambda folder: ["read", *_truncated(folder)[1:2]], "meta.db|profile.db"),
        (lambda folder: ["counters"], "nothing has landed"),
        (lambda folder: ["ingest", "--machien", "x"], "No such option"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    installation: Installation, tmp_path: Path, prepare: Callable[[Path], list[str]], message: str
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    done = installation.run(*prepare(folder))
    assert done.returncode == 2, done.stderr
    assert re.search(message, done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stdout == ""
    assert not list(installation.lake.landing.glob("*")), "something landed"


@pytest.mark.parametrize(
    ("lake", "message"),
    [
        ("relative/lake", "not an absolute path"),
        ("/dev/null/lake", "Not a directory"),
        ("/proc/lake", "nothing has landed"),
    ],
)
def test_a_lake_that_cannot_be_is_said(installation: Installation, lake: str, message: str) -> None:
    environment = installation.environment() | {"PERF_ASSETS_LAKE": lake}
    done = run_command(["ingest"], environment, installation.root)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_site_without_models_is_whole_and_says_what_to_run(installation: Installation) -> None:
    reports = installation.lake.reports
    done = installation.run("report")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(reports / "index.html")
    assert (
        done.stderr.splitlines()[-1] == "no machine has a page yet: run 'perf-assets train', then 'perf-assets adapt'"
    )
    assert "No machine is known yet: run" in (reports / "index.html").read_text()
    land_bundles(installation, bundles_of("cloud-skylake-96")[0])
    (reports / "of mine #1.html").write_text(
        "<title>Mine &amp; yours</title><h1>Mine</h1><a href='index.html'>Fleet</a>"
    )
    (reports / "fleet.html").write_text("as it was called before")
    assert installation.json("report") == {
        "index": str(reports / "index.html"),
        "machines": {},
        "others": ["of mine #1.html"],
        "failures": [],
    }
    index = check_site(reports)["index.html"].text
    assert '<a href="of%20mine%20%231.html">Mine &amp; yours</a>' in index
    assert "No machine has a page of its own yet: run <code>perf-assets train</code>" in index
    wrong = installation.run("report", "--json", "fleet")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--json goes after 'fleet'" in wrong.stderr


def test_doctor_finds_what_waits_and_what_is_held(installation: Installation) -> None:
    land_perf_stat(installation.lake, "quartz", "b1", 1)
    findings = {finding["check"]: finding for finding in installation.json("doctor")["findings"]}
    assert findings["landing zone"]["found"] == "quartz 1"
    assert findings["landing zone"]["advice"] == "run 'perf-assets ingest'"
    assert findings["Python"]["state"] == "ok"
    installation.json("ingest")
    findings = {finding["check"]: finding for finding in installation.json("doctor")["findings"]}
    assert findings["landing zone"]["state"] == "ok"
    assert findings["warehouse"]["found"] == "holds the record"


@pytest.mark.timeout(900)
def test_two_ingestions_at_once_both_succeed(installation: Installation) -> None:
    for machine in ("quartz", "ruby"):
        for number in range(10):
            land_perf_stat(installation.lake, machine, f"b{number}", number)
    processes = [
        subprocess.Popen(
            [PROGRAM, "ingest", "--machine", machine, "--json"],
            env=installation.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for machine in ("quartz", "ruby")
    ]
    for process in processes:
        assert process.wait(800) == 0, process.communicate()[1]
    assert len(tables(installation)["raw_profiles__runs"]) == 20


def test_killed_the_next_ingestion_repairs(installation: Installation, tmp_path: Path) -> None:
    """Once, by a signal from outside; tests/storage/test_killed.py kills at many points."""
    undisturbed = Installation(tmp_path / "undisturbed")
    undisturbed.home.mkdir(parents=True)
    (undisturbed.home / "dagster.yaml").write_bytes((installation.home / "dagster.yaml").read_bytes())
    for one in (installation, undisturbed):
        for machine in ("quartz", "ruby"):
            for number in range(4):
                land_perf_stat(one.lake, machine, f"b{number}", number)
    undisturbed.json("ingest")
    process = subprocess.Popen(
        [PROGRAM, "ingest"],
        env=installation.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(lambda: any(installation.lake.record.rglob("*.parquet")), "the first rows", 500)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    installation.json("ingest")
    expected, found = tables(undisturbed), tables(installation)
    for name, frame in expected.items():
        pd.testing.assert_frame_equal(
            frame.drop(columns="record_part", errors="ignore"), found[name].drop(columns="record_part", errors="ignore")
        )


def test_runs_of_commands_belong_to_the_code_location(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "perf.csv").write_text("5,,instructions,7,100.00,,\n")
    given = [str(tmp_path / "perf.csv"), "--app", "Kripke", "--wall-seconds", "2", "--machine", "quartz"]
    installation.json("land", *given)
    installation.json("ingest")
    with dg.DagsterInstance.from_config(str(installation.home)) as instance:
        (run,) = instance.get_runs(
            dg.RunsFilter(tags={".dagster/repository": "__repository__@perf_assets.definitions"})
        )
    # What the timeline groups runs by, what a job's list of runs asks for, and what "Re-execute" starts from.
    assert run.remote_job_origin is not None
    assert run.remote_job_origin.repository_origin.get_label() == "__repository__@perf_assets.definitions"
    assert (run.status, run.job_name, run.tags["dagster/partition"]) == (
        dg.DagsterRunStatus.SUCCESS,
        "ingest_machine",
        "quartz",
    )
