"""Software as part of a run's identity: what files say of it, which of it counts, and what an upgrade is worth."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from perf_assets.api import open_lake
from perf_assets.cli.main import cli
from perf_assets.core.environment import check_environment, environment_digest, environment_of
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.landing import RUNS
from perf_assets.core.tables.runs import CURRENT_RUNS, ENVIRONMENTS, FEATURES
from perf_assets.features.samples import Floats
from perf_assets.readers.bundle import read_bundle
from perf_assets.readers.read import read
from perf_assets.serving.compare.upgrades import estimated
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.named_environments import ENVIRONMENTS_NAME, named_environments
from perf_assets.storage.record import MachineRecord
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import Fleet, open_warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts

OLD, NEW = "gcc 10.3; openmpi 4.1", "gcc 12.1; openmpi 4.1"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path / "lake"))
    return Lake(tmp_path / "lake")


def add(lake: Lake, environment: str | None, seconds: dict[str, list[float]], month: int = 1, gpus: int = 0) -> None:
    """Land runs of applications, whose arguments are their positions; a column of the table names a compiler."""
    rows = [
        f"{app},-n {number},1,1,{gpus},gcc-{number},{time}"
        for app, times in seconds.items()
        for number, time in enumerate(times)
    ]
    tags = {} if environment is None else {"environment": environment}
    facts = profile_facts("quartz", kind="samples", target="wall_seconds", ranks=None, threads=None, wall_seconds=None)
    facts = facts.model_copy(update={"tags": tags, "collected_at": facts.collected_at.replace(month=month)})

    def write(folder: Path) -> None:
        (folder / "samples.csv").write_text(
            "\n".join(["app,args,ranks,threads,gpus,compiler,wall_seconds", *rows]) + "\n"
        )

    land(lake, facts, None, write)


def build(lake: Lake) -> Warehouse:
    warehouse = open_warehouse(lake)
    ingest_machine(lake, "quartz", read_bundle)
    warehouse.load_machine("quartz")
    warehouse.derive_machine("quartz")
    return warehouse


def times(warehouse: Warehouse) -> dict[str, float]:
    rows = warehouse.frame(f"SELECT app || ' ' || args AS name, wall_seconds FROM {FEATURES.name}")
    return dict(zip(rows["name"], rows["wall_seconds"], strict=True))


def invoke(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    if done.exception is not None:
        raise done.exception
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_line_has_what_matters_and_nobodys_folders() -> None:
    said = {
        "rajaperf_compiler": "/usr/tce/bin/g++",
        "compiler": "/usr/tce/packages/gcc/bin/g++-10.3.1",
        "Compiler Version": "10.3.1",
        "rajaperf_compiler_options": "-O3 -march=native -I/home/ted/include; -Wall -g -O0",
        "mpi": "mvapich2",
        "version": "2.0.3",
        "user": "ted",
    }
    assert environment_of(said) == "g++-10.3.1; -O3 -march=native -O0; mvapich2; code 2.0.3"
    assert environment_of({"user": "ted"}) is None
    assert environment_of(said | {"environment": "stack  7;\tmpi\x1b[2J;"}) == "stack 7; mpi\\x1b[2J"
    assert environment_of({"environment": "unknown"}) is None
    modules = {"LOADEDMODULES": "gcc/12.1:/home/ted/modules/openmpi/4.1"}
    assert environment_of(modules) == "modules gcc/12.1 openmpi/4.1"
    long = environment_of({"compiler": "x" * 5000})
    assert long is not None
    assert len(long) <= 300
    assert long != environment_of({"compiler": "x" * 5001})
    assert environment_of({"compiler": "gcc\x1b[2J"}) == "gcc\\x1b[2J"
    with pytest.raises(BadInputError, match="printable"):
        check_environment("gcc\x07")
    with pytest.raises(BadInputError, match="1 to 300"):
        check_environment(" ; ")


def test_only_one_environment_of_an_application_counts(lake: Lake) -> None:
    add(lake, OLD, {"Kripke": [10, 20], "Laghos": [5]}, month=1)
    add(lake, NEW, {"Kripke": [8, 16]}, month=2)
    warehouse = build(lake)
    assert times(warehouse) == {"Kripke -n 0": 8, "Kripke -n 1": 16, "Laghos -n 0": 5}
    rows = warehouse.frame(f"SELECT * FROM {ENVIRONMENTS.name} WHERE is_default ORDER BY app")
    assert rows["environment"].tolist() == [NEW, OLD]
    assert rows["environment_digest"].tolist() == [environment_digest(NEW), environment_digest(OLD)]
    assert not warehouse.violations(ENVIRONMENTS, "quartz")


def test_runs_on_gpus_are_of_a_build_of_their_own(lake: Lake) -> None:
    add(lake, OLD, {"Kripke": [10, 20]}, month=1)
    add(lake, "cuda 12.4", {"Kripke": [1, 2, 3]}, month=2, gpus=4)
    warehouse = build(lake)
    rows = warehouse.frame(f"SELECT app, environment FROM {ENVIRONMENTS.name} WHERE is_default ORDER BY app")
    assert rows.to_numpy().tolist() == [["Kripke", OLD], ["Kripke on GPUs", "cuda 12.4"]]
    counted = warehouse.frame(f"SELECT wall_seconds FROM {CURRENT_RUNS} ORDER BY 1")
    assert counted["wall_seconds"].tolist() == [1, 2, 3, 10, 20]


def test_canaries_do_not_take_over(lake: Lake) -> None:
    add(lake, OLD, {"Kripke": [10, 20, 30]}, month=1)
    add(lake, NEW, {"Kripke": [8]}, month=2)
    assert times(build(lake)) == {"Kripke -n 0": 10, "Kripke -n 1": 20, "Kripke -n 2": 30}


@pytest.mark.slow
def test_a_named_default_counts_until_it_is_forgotten(lake: Lake) -> None:
    add(lake, OLD, {"Kripke": [10, 20]}, month=1)
    add(lake, NEW, {"Kripke": [8, 16]}, month=2)
    build(lake)
    for name in ("gcc 10.3", environment_digest(OLD)):
        rows = invoke("environments", "quartz", "--default", name)["environments"]
        assert isinstance(rows, list)
        assert {row["environment"]: row["counts"] for row in rows} == {OLD: "named", NEW: "no"}
        assert times(open_warehouse(lake))["Kripke -n 0"] == 10
    with pytest.raises(BadInputError, match=r"was made with 'clang 3'.*gcc 12"):
        invoke("environments", "quartz", "--default", "clang 3")
    assert named_environments(lake) == {"quartz": environment_digest(OLD)}
    assert times(open_warehouse(lake))["Kripke -n 0"] == 10
    invoke("environments", "quartz", "--default", "newest")
    assert times(open_warehouse(lake))["Kripke -n 0"] == 8
    assert not open_warehouse(lake).is_behind("quartz")


def test_a_wrong_file_of_names_is_one_line_with_its_place(lake: Lake) -> None:
    lake.root.mkdir()
    for text in ("quartz: ' ; '", "../up: gcc", "- quartz"):
        (lake.root / ENVIRONMENTS_NAME).write_text(text)
        with pytest.raises(BadInputError, match=rf"^{lake.root}/{ENVIRONMENTS_NAME}: "):
            named_environments(lake)


def test_runs_that_say_less_count_where_the_default_has_no_time(lake: Lake) -> None:
    add(lake, None, {"Kripke": [100, 50]}, month=1)
    add(lake, "gcc 12.1", {"Kripke": [70]}, month=2)
    add(lake, NEW, {"Kripke": [8]}, month=3)
    warehouse = build(lake)
    assert times(warehouse) == {"Kripke -n 0": 8, "Kripke -n 1": 50}
    invoke("environments", "quartz", "--default", "unknown")
    assert times(warehouse) == {"Kripke -n 0": 100, "Kripke -n 1": 50}


def test_a_record_of_an_older_release_is_read_on(lake: Lake) -> None:
    add(lake, None, {"Kripke": [10, 20]})
    build(lake)
    record = MachineRecord(lake.record, "quartz")
    for part in record.live_parts(RUNS):
        pq.write_table(pq.read_table(part, partitioning=None).drop_columns(["environment"]), part)
    warehouse = open_warehouse(lake)
    warehouse.rebuild()
    assert times(warehouse) == {"Kripke -n 0": 10, "Kripke -n 1": 20}
    assert warehouse.frame(f"SELECT environment FROM {ENVIRONMENTS.name}")["environment"].tolist() == ["unknown"]


@pytest.mark.slow
def test_software_of_rajaperf_makes_no_common_kernel_times(lake: Lake, shared_data: Path) -> None:
    """RAJAPerf of quartz under gcc with -O0 and -O3 (both with -Ofast, so that they hardly differ), and under clang."""
    folder = shared_data / "rajaperf" / "quartz_cali"
    if not folder.is_dir():
        pytest.skip(f"no profiles at {folder}")
    paths = [str(folder / name) for name in ("gcc_O0", "gcc_O3", "clang")]
    done = CliRunner().invoke(cli, ["land", *paths, "--json"])
    assert done.exit_code == 0, done.output
    build(lake)
    chosen = {name: benchmark(lake, name) for name in (*_BUILDS, "newest")}
    for name, build_folder in _BUILDS.items():
        timings = [row for row in read(folder / build_folder, "rajaperf").timings if row.is_valid]
        alone = pd.DataFrame([(row.kernel, row.seconds_per_rep) for row in timings]).groupby(0)[1].median()
        np.testing.assert_allclose(chosen[name], alone.sort_index())
    assert sum(np.array_equal(chosen["newest"], chosen[name]) for name in _BUILDS) == 1
    opened = open_lake(lake.root)
    level = opened.compare_environments({"RAJAPerf": 1}, "quartz", *list(_BUILDS)[:2]).relative_time
    assert 1.0 < level.lower < level.value < level.upper < 1.02
    clang = opened.compare_environments({"RAJAPerf": 1}, "quartz", "-Ofast -march=native -O3", "clang++-14.0.6")
    ratio = np.log(chosen["clang++-14.0.6"] / chosen["-Ofast -march=native -O3"])
    assert np.abs(ratio).max() > np.log(5)
    assert clang.applications[0].configurations == len(ratio)
    assert clang.relative_time.value == pytest.approx(np.exp(ratio.mean()), rel=0.01)


_BUILDS = {"-Ofast -march=native -O0": "gcc_O0", "-Ofast -march=native -O3": "gcc_O3", "clang++-14.0.6": "clang"}


def benchmark(lake: Lake, environment: str) -> Floats:
    """Kernel times that describe the machine in an environment, by kernel."""
    invoke("environments", "quartz", "--default", environment)
    kernels, _ = Fleet(lake).benchmark("quartz")
    return kernels.sort_values("kernel")["seconds_per_rep"].to_numpy()


def test_an_upgrade_is_judged_from_canaries(lake: Lake) -> None:
    add(lake, OLD, {"Kripke": [10, 20, 30, 40], "Laghos": [5, 6, 7], "AMG": [1, 2]}, month=1)
    add(lake, NEW, {"Kripke": [8, 16.2], "Laghos": [5.5]}, month=2)
    build(lake)
    found = invoke("compare", "Kripke=3", "Laghos=1", "AMG=1", "--environments", "quartz", "--to", "gcc 12.1")
    assert isinstance(found["applications"], list)
    of = {row["app"]: row for row in found["applications"]}
    assert of["Kripke"]["relative_time"]["value"] == pytest.approx(0.805, rel=0.01)
    assert of["Laghos"]["relative_time"]["value"] == pytest.approx(1.1, rel=0.01)
    assert [of[app]["configurations"] for app in ("Kripke", "Laghos", "AMG")] == [2, 1, 0]
    widths = {app: row["relative_time"]["upper"] / row["relative_time"]["lower"] for app, row in of.items()}
    assert widths["Kripke"] < widths["Laghos"] < widths["AMG"]
    assert of["Kripke"]["before"] == OLD
    assert of["AMG"]["after"] == ""
    for wrong, message in (
        (["Kripke", "--environments", "quartz", "--price", "a=1"], "--price does not go with"),
        (["Kripke"], "say --machines"),
        (["Nowhere", "--environments", "quartz"], "no run of Nowhere on quartz"),
        (["AMG", "Kripke", "--environments", "quartz", "--to", "clang"], "no two environments"),
    ):
        with pytest.raises(BadInputError, match=message):
            invoke("compare", *wrong)


def test_intervals_of_upgrades_hold_what_they_say() -> None:
    """Made-up applications: seven with three canaries each, one without any."""
    generator = np.random.default_rng(5)
    held = {"measured": 0, "other": 0}
    for _ in range(200):
        effects = generator.normal(-0.1, 0.1, 8)
        measured = {str(app): effects[app] + generator.normal(0, 0.05, 3) for app in range(7)}
        draws = estimated(measured, ["0", "other"])
        for name, truth in (("0", effects[0]), ("other", effects[7])):
            lower, upper = np.quantile(draws[name], (0.05, 0.95))
            held["measured" if name == "0" else name] += lower <= truth <= upper
    assert all(168 <= count <= 192 for count in held.values()), held


def test_landing_takes_the_line_as_given(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "perf.csv"
    file.write_text("5,,instructions,7,100.00,,\n")
    options = ["--machine", "quartz", "--app", "Kripke", "--wall-seconds", "2", "--tag", "CC=/usr/bin/gcc"]
    assert CliRunner().invoke(cli, ["land", str(file), *options, "--environment", " gcc  12 ; mpi"]).exit_code == 0
    build(lake)
    with duckdb.connect(str(lake.warehouse), read_only=True) as connection:
        assert connection.execute(f"SELECT environment FROM {RUNS.name}").fetchall() == [("gcc 12; mpi",)]
    with pytest.raises(BadInputError, match="printable"):
        invoke("land", str(file), *options, "--environment", "\x00")
