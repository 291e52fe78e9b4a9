"""Landing without typing: what files say of themselves, trees of many runs, and names that a site keeps."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import Manifest, parse_manifest
from perf_assets.readers.bundle import read_bundle
from perf_assets.serving.asked_runs import read_runs
from perf_assets.storage.aliases import known_applications, load_aliases, same_name
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts
from tests.readers.test_caliper_profile import _ONE_REGION, stream
from tests.readers.test_job_records import SACCT


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    root = tmp_path / "lake"
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(root))
    return Lake(root)


def run(*arguments: str | Path) -> Any:
    done = CliRunner().invoke(cli, ["land", *map(str, arguments), "--json"])
    if done.exception is not None:
        raise done.exception
    return json.loads(done.stdout)["bundles"]


def refused(*arguments: str | Path) -> str:
    with pytest.raises(BadInputError) as error:
        run(*arguments)
    return str(error.value)


def manifests(lake: Lake) -> list[Manifest]:
    return [parse_manifest(path.read_bytes()) for path in sorted(lake.landing.glob("*/*/manifest.json"))]


def campaign(tmp_path: Path, count: int = 3, **metadata: str) -> Path:
    """A tree of folders with one profile each."""
    folder = tmp_path / "campaign"
    for number in range(count):
        told = {"cluster": "Opal", "cmdline": f"[./kripke.exe,--size,{number}]", "jobsize": "4", "elapsed_time": "2.5"}
        (folder / f"run{number}" / "spot").mkdir(parents=True)
        pairs = " ".join(f"{key}={value}" for key, value in (told | metadata).items())
        stream(folder / f"run{number}" / "spot", _ONE_REGION, pairs)
    return folder


def test_lulesh_lands_without_a_flag(lake: Lake, shared_data: Path) -> None:
    folder = shared_data / "caliper" / "lulesh_opal"
    if not folder.is_dir():
        pytest.skip(f"no profiles at {folder}")
    rows = run(folder)
    assert [(row["machine"], row["kind"], row["state"]) for row in rows] == [("opal", "profile", "landed")] * 3
    assert [row["state"] for row in run(folder / "27ranks.cali")] == ["already there"]
    for manifest in manifests(lake):
        assert (manifest.app, manifest.collected_at.year) == ("lulesh2.0", 2021)
        assert manifest.tags["compiler"] == "intel"
        assert "problem_size=30" in manifest.args
        assert "Ted" not in manifest.model_dump_json()
    directory = next(lake.landing.glob("*/*"))
    manifest = parse_manifest((directory / "manifest.json").read_bytes())
    (row,) = read_bundle(directory, manifest, "digest", directory.name).rows["raw_profiles__runs"]
    assert (row["machine"], row["ranks"], row["nodes"], row["wall_seconds"]) in {
        ("opal", 27, 1, 47.231215),
        ("opal", 64, 2, 55.109814),
        ("opal", 125, 4, 56.218986),
    }
    assert "legendre" not in row["labels"]


def test_a_dry_run_says_where_each_fact_is_from_and_lands_nothing(lake: Lake, tmp_path: Path) -> None:
    bundles = run(campaign(tmp_path, 1), "--dry-run", "--threads", "2")
    facts = bundles[0]["facts"]
    assert facts["machine"] == {"value": "opal", "from": "cluster"}
    assert facts["app"] == {"value": "kripke.exe", "from": "program"}
    assert facts["args"] == {"value": "--size 0", "from": "command line"}
    assert facts["threads"] == {"value": "2", "from": "given"}
    assert facts["ranks"] == {"value": "4", "from": "jobsize"}
    assert facts["wall_seconds"] == {"value": "2.5", "from": "elapsed_time"}
    assert not lake.root.exists()


def test_a_tree_of_many_runs_becomes_many_bundles(lake: Lake, tmp_path: Path) -> None:
    rows = run(campaign(tmp_path, 12))
    assert len({row["bundle"] for row in rows}) == 12
    assert sorted(manifest.args for manifest in manifests(lake)) == sorted(f"--size {number}" for number in range(12))
    assert {entry.path for manifest in manifests(lake) for entry in manifest.files} == {"a.cali"}
    assert "holds 12: land that one alone" in refused(tmp_path / "campaign", "--wall-seconds", "3")
    assert "--name is for one bundle" in refused(tmp_path / "campaign", "--name", "x")


def test_of_a_workspace_only_profiles_are_taken(lake: Lake, tmp_path: Path) -> None:
    """As Benchpark leaves them: scripts, logs with names, core files, and links to what was installed."""
    tree = campaign(tmp_path, 2)
    (tree / "run0" / "execute_experiment").write_text("#!/bin/sh\ncd /g/ted\n")
    (tree / "run0" / "spot" / "core").write_bytes(bytes(1000))
    (tree / "run1" / "gcc").symlink_to("/usr/bin/gcc")
    (tree / "software").symlink_to("/usr")
    assert len(run(tree)) == 2
    assert [entry.path for manifest in manifests(lake) for entry in manifest.files] == ["a.cali", "a.cali"]
    shutil.rmtree(tree / "run0")
    assert "'software' is a symbolic link" in refused(tree)


def test_folders_with_a_manifest_are_taken_out_of_a_tree(lake: Lake, tmp_path: Path) -> None:
    elsewhere = Lake(tmp_path / "elsewhere")
    prepared = land(elsewhere, profile_facts(), "run-7", lambda folder: (folder / "f").write_text("x") and None)
    tree = campaign(tmp_path, 2)
    shutil.copytree(prepared.bundle.directory, tree / "run-7")
    rows = run(tree)
    assert [row["bundle"] for row in rows if row["machine"] == "quartz"] == ["run-7"]
    assert len(rows) == 3


def test_nothing_lands_where_one_of_many_is_bad(lake: Lake, tmp_path: Path) -> None:
    tree = campaign(tmp_path, 3)
    bad = tree / "run1" / "spot" / "a.cali"
    bad.write_text(bad.read_text()[:-40])
    assert "cut off" in refused(tree)
    assert not lake.landing.exists()


def test_two_clusters_in_one_folder_land_apart(lake: Lake, tmp_path: Path, shared_data: Path) -> None:
    tree = campaign(tmp_path, 1)
    stream(tree, _ONE_REGION, "cluster=ruby cmdline=[kripke]", "b.cali")
    assert {row["machine"] for row in run(tree)} == {"opal", "ruby"}
    both = tmp_path / "both"
    both.mkdir()
    for cluster, file in (("a", "quartz_cali/gcc_O3"), ("b", "lassen_cali/1048576")):
        shutil.copy(next((shared_data / "rajaperf" / file).glob("*.cali")), both / f"{cluster}.cali")
    assert {(row["machine"], row["kind"]) for row in run(both)} == {("quartz", "rajaperf"), ("lassen", "rajaperf")}
    assert [row["machine"] for row in run(both, "--machine", "mine")] == ["mine"]


def test_rajaperf_and_applications_of_one_tree_land_apart(lake: Lake, tmp_path: Path, shared_data: Path) -> None:
    tree = campaign(tmp_path, 1)
    shutil.copy(next((shared_data / "rajaperf" / "quartz_cali" / "gcc_O3").glob("*.cali")), tree / "r.cali")
    assert {(row["machine"], row["kind"]) for row in run(tree)} == {("quartz", "rajaperf"), ("opal", "profile")}


def test_rajaperf_says_when_and_with_what_it_was_made(lake: Lake, tmp_path: Path, shared_data: Path) -> None:
    for build in ("gcc_O3", "clang"):
        shutil.copy(next((shared_data / "rajaperf" / "quartz_cali" / build).glob("*.cali")), tmp_path / f"{build}.cali")
    for given in ([], ["--machine", "quartz"]):
        facts = run(tmp_path, "--dry-run", *given)[0]["facts"]
        assert facts["collected_at"]["value"].startswith("2023-12-2")
        assert facts["collected_at"]["from"] == "launch date in .cali"
        assert facts["environment"]["value"].startswith("2 different: clang++-14.0.6; -O3 ")
        assert "| g++-10.3.1; -Ofast -march=native -O3" in facts["environment"]["value"]
    facts = run(tmp_path, "--dry-run", "--environment", "gcc 12")[0]["facts"]
    assert facts["environment"] == {"value": "gcc 12", "from": "given"}


def test_a_simulated_run_says_its_command_without_folders(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "cachegrind.out"
    file.write_text("desc: D1 cache: 1\ncmd: /g/ted/work -n 3 /g/ted/deck.in\nevents: Ir\nfn=main\n1 7\nsummary: 7\n")
    facts = run(file, "--machine", "opal", "--wall-seconds", "2", "--dry-run")[0]["facts"]
    assert (facts["app"]["value"], facts["args"]["value"]) == ("work", "-n 3 deck.in")
    run(file, "--machine", "opal", "--wall-seconds", "2")
    directory = next(lake.landing.glob("*/*"))
    manifest = parse_manifest((directory / "manifest.json").read_bytes())
    (row,) = read_bundle(directory, manifest, "digest", directory.name).rows["raw_profiles__runs"]
    assert "/ted" not in json.dumps({key: str(value) for key, value in row.items() if key != "collected_at"})


def test_what_contradicts_the_files_is_refused(lake: Lake, tmp_path: Path) -> None:
    tree = campaign(tmp_path, 1)
    assert "--ranks 8 contradicts" in refused(tree, "--ranks", "8")
    long = campaign(tmp_path / "long", 1, cmdline="[app," + "x" * 2**20 + "]")
    message = refused(long)
    assert "1048576 characters" in message
    assert "--args" in message
    assert len(message) < 400
    assert run(long, "--args", "--big")[0]["state"] == "landed"


def test_nearly_the_same_name_is_the_same_application(lake: Lake, tmp_path: Path) -> None:
    tree = campaign(tmp_path, 1)
    run(tree, "--app", "Kripke")
    assert load_aliases(lake).file.applications == {"kripke.exe": "Kripke"}
    again = campaign(tmp_path / "again", 1, cmdline="[./kripke-1.2,--size,9]")
    facts = run(again, "--dry-run")[0]["facts"]
    assert facts["app"] == {"value": "Kripke", "from": "kripke-1.2, known as Kripke"}
    assert load_aliases(lake).file.applications == {"kripke.exe": "Kripke"}
    run(again)
    assert load_aliases(lake).file.applications == {"kripke.exe": "Kripke", "kripke-1.2": "Kripke"}
    assert {manifest.app for manifest in manifests(lake)} == {"Kripke"}


def ingested_apps(lake: Lake, machine: str) -> list[str]:
    """Applications of the runs in a machine's record, after ingestion."""
    ingest_machine(lake, machine, read_bundle)
    return sorted(known_applications(lake))


def table(tmp_path: Path, *apps: str, name: str = "runs.csv") -> Path:
    rows = [f"{app},-n {number},{number + 1}.5" for number, app in enumerate(apps)]
    (tmp_path / name).write_text("\n".join(["app,args,wall_seconds", *rows]) + "\n")
    return tmp_path / name


SAMPLES = ("--machine", "opal")


def test_rows_of_a_table_are_called_as_the_site_calls_them(lake: Lake, tmp_path: Path) -> None:
    lake.root.mkdir()
    (lake.root / "aliases.yaml").write_text("applications: {lulesh2.0: LULESH}\n")
    file = table(tmp_path, "lulesh2.0", "Kripke", "lulesh2.0")
    facts = run(file, *SAMPLES, "--dry-run")[0]["facts"]
    assert facts["app_names"] == {"value": "lulesh2.0: LULESH", "from": "aliases.yaml"}
    assert facts["target"] == {"value": "wall_seconds", "from": "its column"}
    run(file, *SAMPLES)
    assert ingested_apps(lake, "opal") == ["Kripke", "LULESH"]
    assert [row["state"] for row in run(file, *SAMPLES)] == ["already there"]


def test_rows_of_nearly_the_same_name_are_of_the_same_application(lake: Lake, tmp_path: Path) -> None:
    """Known from the rows of an earlier table, which no manifest names; from then on by the site's file."""
    run(table(tmp_path, "Kripke", "amg"), *SAMPLES)
    assert ingested_apps(lake, "opal") == ["Kripke", "amg"]
    run(table(tmp_path, "kripke.exe", "AMG-2.1", "laghos", name="later.csv"), *SAMPLES)
    assert load_aliases(lake).file.applications == {"AMG-2.1": "amg", "kripke.exe": "Kripke"}
    assert ingested_apps(lake, "opal") == ["Kripke", "amg", "laghos"]


def test_names_that_a_table_tells_apart_are_two_applications(lake: Lake, tmp_path: Path) -> None:
    run(table(tmp_path, "ft"), *SAMPLES)
    ingested_apps(lake, "opal")
    run(table(tmp_path, "ft-1", "ft-2", name="later.csv"), *SAMPLES)
    assert ingested_apps(lake, "opal") == ["ft", "ft-1", "ft-2"]
    assert load_aliases(lake).file.applications == {}


def test_jobs_are_called_as_the_site_calls_them(lake: Lake, tmp_path: Path) -> None:
    run(campaign(tmp_path, 1, cluster="ruby"), "--app", "Kripke")
    assert ingested_apps(lake, "ruby") == ["Kripke"]
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(SACCT)
    facts = run(jobs, "--dry-run")[0]["facts"]
    assert facts["app_names"] == {"value": "kripke: Kripke", "from": "aliases.yaml"}
    run(jobs)
    assert ingested_apps(lake, "ruby") == ["Kripke", "laghos"]


def test_a_slip_in_a_table_is_pointed_out(lake: Lake, tmp_path: Path) -> None:
    run(table(tmp_path, "Laghos"), *SAMPLES)
    ingested_apps(lake, "opal")
    file = table(tmp_path, "Lahgos", name="later.csv")
    done = CliRunner().invoke(cli, ["land", str(file), *SAMPLES, "--dry-run"])
    assert "the application Lahgos is new; if it is Laghos, name it so in aliases.yaml" in done.stderr


def test_a_table_with_an_impossible_name_does_not_land(lake: Lake, tmp_path: Path) -> None:
    assert "must have 1 to 200 characters: correct the column app" in refused(table(tmp_path, "a" * 201), *SAMPLES)
    assert not lake.landing.exists()


def test_a_site_names_its_machines(lake: Lake, tmp_path: Path) -> None:
    lake.root.mkdir()
    (lake.root / "aliases.yaml").write_text("machines: {Opal: opal-2}\n")
    assert run(campaign(tmp_path, 1))[0]["machine"] == "opal-2"
    (lake.root / "aliases.yaml").write_text("machines: {Opal: Not allowed}\n")
    assert "machine id 'Not allowed' is not allowed" in refused(tmp_path / "campaign")


def test_a_slip_of_a_name_is_pointed_out(lake: Lake, tmp_path: Path) -> None:
    tree = campaign(tmp_path, 1)
    run(tree)
    done = CliRunner().invoke(cli, ["land", str(tree), "--machine", "opla", "--dry-run"])
    assert "the machine opla is new; if it is opal, say --machine opal" in done.stderr
    assert "is new" not in CliRunner().invoke(cli, ["land", str(tree), "--machine", "ruby", "--dry-run"]).stderr


def test_names_are_compared_without_case_ending_and_version() -> None:
    assert same_name("Kripke.exe") == same_name("kripke") == same_name("KRIPKE-1.2.4") == "kripke"
    assert same_name("lulesh2.0") == same_name("LULESH")
    assert same_name("app1") != same_name("app2")


def test_threads_of_a_command_file_that_holds_nothing_else(lake: Lake, tmp_path: Path, shared_data: Path) -> None:
    """As docs/get_started.md has it."""
    reports = shared_data / "rajaperf" / "epyc-vm_2024" / "t2_s100000_quiet"
    folder = tmp_path / "reports"
    folder.mkdir()
    for file in reports.iterdir():
        if file.suffix in (".csv", ".txt") and file.name != "cmd.txt":
            shutil.copy(file, folder)
    done = CliRunner().invoke(cli, ["land", str(folder), "--machine", "epyc-vm", "--json"])
    assert "OpenMP timings lack a thread count" in done.stderr
    (folder / "cmd.txt").write_text("OMP_NUM_THREADS=112\n")
    done = CliRunner().invoke(cli, ["land", str(folder), "--machine", "epyc-vm", "--json"])
    assert done.stderr == ""
    read = CliRunner().invoke(cli, ["read", str(folder), "--json"])
    threads = {row["threads"] for row in json.loads(read.stdout)["timings"] if "OpenMP" in row["variant"]}
    assert threads == {112}
    shown = CliRunner().invoke(cli, ["read", str(folder)]).stdout
    assert "timings by setting (--json has each)" in shown
    assert len(shown.splitlines()) < 60, "settings, not a line per kernel"


def test_asking_about_files_calls_runs_as_landing_them_does(lake: Lake, tmp_path: Path) -> None:
    """Else a run that was measured elsewhere under the same name would not be found."""
    tree = campaign(tmp_path, 2)
    run(tree, "--app", "Kripke")
    found = read_runs(lake, tree, "opal", {})
    assert [(row.app, row.args, row.ranks) for row in found] == [("Kripke", "--size 0", 4), ("Kripke", "--size 1", 4)]
    (named,) = read_runs(lake, tree / "run1", "opal", {"app": "AMG", "args": "-n 3"})
    assert (named.app, named.args) == ("AMG", "-n 3")
    rows = read_runs(lake, table(tmp_path, "kripke.exe", "amg"), "opal", {})
    assert [row.app for row in rows] == ["Kripke", "amg"]
