"""A folder of public measurements as bundles: files as they are, tables as samples, relative times as such."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.measurements import RELATIVE_TIME
from perf_assets.core.tables.landing import COUNTERS, RUNS
from perf_assets.features.fleet.samples import NODE
from perf_assets.models.source.methods import MethodFactory
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.aliases import load_aliases
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.landing.ingest import ingest_machine
from perf_assets.workflows.landing.real_lake import RealBundle, machines_of, real_bundles
from tests.described import described_fleet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Small tables with the columns of the public ones."""
    tables = {
        "llnl_relative/relative_speed.csv": {
            "app": ["amg", "amg"], "args": ["-n1", "-n2"], "ranks": [1, 32],
            "quartz": [1.0, 1.0], "ruby": [2.0, None], "dane": [0.5, 0.01],
        },
        "spechpc/Icelake.csv": {
            "app": ["pot3d"], "ranks": [4], "runtime_s": [8.0], "ev_CAS_COUNT_RD": [12.0], "ev_PWR_PKG_ENERGY": [3.0],
            "mean_CPI": [1.1],
        },
        "nvprof_gpus/K40.csv": {
            "AppName": ["matMul"], "Input.Size": [256], "Block.X": [8], "Block.Y": [4], "Duration": [0.5], "loads": [9],
        },
    }  # fmt: skip
    for name, columns in tables.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True)
        pd.DataFrame(columns).to_csv(tmp_path / "data" / name, index=False)
    return tmp_path / "data"


def recorded(lake: Lake, bundles: list[RealBundle], machine: str, table: Any) -> list[dict[str, Any]]:
    """Rows of a machine after its bundles were landed and ingested."""
    for bundle in bundles:
        if bundle.facts.machine == machine:
            land(lake, bundle.facts, None, bundle.write)
    outcome = ingest_machine(lake, machine, read_bundle)
    assert outcome.quarantined_count == 0
    parts = MachineRecord(lake.record, machine).live_parts(table)
    return pd.concat([pd.read_parquet(part) for part in parts]).sort_values("run").to_dict("records")


def test_relative_times_say_so_and_campaigns_are_never_compared(folder: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    bundles = real_bundles(folder, load_aliases(lake))
    assert machines_of(bundles) == ["dane", "icelake", "k40", "quartz", "ruby"]
    (ruby,) = recorded(lake, bundles, "ruby", RUNS)
    (dane,) = recorded(lake, bundles, "dane", RUNS)
    assert (ruby["args"], ruby["wall_seconds"], dane["args"], dane["wall_seconds"]) == (
        "-n1 campaign=1", 0.5, "-n1 campaign=2", 2.0,
    )  # fmt: skip
    assert json.loads(ruby["labels"])[RELATIVE_TIME] == "to quartz"
    assert not ruby["is_simulated"]
    recorded(lake, bundles, "icelake", RUNS)
    fleet = Fleet(lake)
    fleet.warehouse.rebuild()
    assert fleet.relative_times() == {"dane": "relative to quartz", "ruby": "relative to quartz"}


def test_what_holds_the_answer_is_left_out(folder: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    bundles = real_bundles(folder, load_aliases(lake))
    (counter,) = recorded(lake, bundles, "icelake", COUNTERS)
    assert (counter["counter"], counter["value_sum"], counter["value_mean_over_ranks"]) == (
        "ev_CAS_COUNT_RD",
        12.0,
        3.0,
    )
    (run,) = recorded(lake, bundles, "k40", RUNS)
    assert (run["app"], run["args"], run["gpus"], run["wall_seconds"]) == ("matMul", "256 8 4", 1, 0.5)


def test_a_folder_without_anything_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(BadInputError, match="there is no such folder"):
        real_bundles(tmp_path / "nowhere", load_aliases(lake))
    with pytest.raises(BadInputError, match="nothing there is known; it has folders like caliper, jobs, rajaperf"):
        real_bundles(tmp_path, load_aliases(lake))
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(lake.root))
    done = CliRunner().invoke(cli, ["demo", "--real", str(tmp_path), "--next"])
    assert "--real lands measurements, --next simulated ones" in str(done.exception)


@pytest.mark.slow
def test_all_public_measurements_are_bundles(shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / "nvprof_gpus").is_dir() or not (shared_data / "llnl_relative").is_dir():
        pytest.skip(f"no measurements at {shared_data}")
    lake = Lake(tmp_path / "lake")
    bundles = real_bundles(shared_data, load_aliases(lake))
    described = {bundle.facts.machine for bundle in bundles if bundle.facts.kind == "rajaperf"}
    by_tables = {"dane", "cas-a100", "tioga-gpu"}
    assert described == {"quartz", "lassen", "poodle", "rzadams", "h100", "epyc-vm"} | by_tables
    assert {"dane", "tioga-gpu", "icelake-8360y", "gtx-980", "opal", "eagle"} < set(machines_of(bundles))
    assert len(recorded(lake, bundles, "opal", RUNS)) == 3
    assert len(recorded(lake, bundles, "dane", RUNS)) == 390


def test_machines_that_ran_rajaperf_at_sizes_of_their_own_are_described_per_element(
    shared_data: Path, tmp_path: Path
) -> None:
    for name in ("rajaperf", "llnl_relative"):
        if not (shared_data / name).is_dir():
            pytest.skip(f"no {name} at {shared_data}")
    source, lake, machines = tmp_path / "data", Lake(tmp_path / "lake"), ("dane", "lassen", "quartz", "tioga-gpu")
    gcc = Path("rajaperf") / "quartz_cali" / "gcc_O3"
    shutil.copytree(shared_data / gcc, source / gcc)
    (source / "rajaperf" / "llnl_fleet").symlink_to(shared_data / "rajaperf" / "llnl_fleet")
    (source / "llnl_relative").symlink_to(shared_data / "llnl_relative")
    for bundle in real_bundles(source, load_aliases(lake)):
        if bundle.facts.machine in machines:
            land(lake, bundle.facts, None, bundle.write)
    for machine in machines:
        assert ingest_machine(lake, machine, read_bundle).quarantined_count == 0
    fleet = Fleet(lake)
    fleet.warehouse.rebuild()
    tables = fleet.tables()
    assert set(tables.kernels["placement"]) == {NODE}
    described = described_fleet(tables)
    samples = described.samples
    assert samples.machines == machines
    assert samples.is_benchmark.sum() > 40
    other_work = ("GEMM", "2MM", "3MM", "MAT_MAT", "FLOYD", "HALO")
    assert not [app for app in samples.apps[samples.is_benchmark] if any(name in app for name in other_work)]
    assert {"quartz", "lassen"} < {samples.machines[machine] for machine in samples.training_machines}
    triad = samples.log_seconds[:, samples.configurations.index("Stream_TRIAD 33554432 node")]
    assert np.exp(triad[1] - triad[2]) < 0.05, "four V100 move data many times as fast as one core of Quartz"
    assert "kripke.exe groups" in samples.counter_names
    fitted = MethodFactory().fit("mixture", samples, "machine").predict(samples, samples.examples())
    assert np.isfinite(fitted).all()
