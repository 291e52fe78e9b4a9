"""From landed samples to configurations, features and pairs, on numbers small enough to check by hand."""

import json
from pathlib import Path

import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.tables.runs import COUNTERS_WIDE, DERIVED_TABLES, FEATURES, MERGED_COUNTERS, UNMATCHED
from perf_assets.features.counters.derivations import deriving, unmapped
from perf_assets.features.counters.quality import DOUBTS
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts
from tests.defs.conftest import land_perf_stat


def add(lake: Lake, machine: str, name: str, **columns: list[object]) -> None:
    """Land a table of samples; configurations are of `Kripke` on one rank unless columns say otherwise."""
    count = len(next(iter(columns.values())))
    given = {"app": ["Kripke"] * count, "args": ["-n 1"] * count, "ranks": [1] * count, "threads": [1] * count}
    frame = pd.DataFrame(given | {"wall_seconds": [1.0] * count} | columns)

    def write(folder: Path) -> None:
        frame.to_csv(folder / "samples.csv", index=False)

    facts = profile_facts(machine, kind="samples", target="wall_seconds", ranks=None, threads=None, wall_seconds=None)
    land(lake, facts, name, write)


def build(lake: Lake, *machines: str) -> Warehouse:
    warehouse = Warehouse(lake, deriving(lake.site_catalogues()))
    for machine in machines:
        ingest_machine(lake, machine, read_bundle)
        warehouse.load_machine(machine)
        warehouse.derive_machine(machine)
    return warehouse


def test_features_follow_from_counters(lake: Lake) -> None:
    add(
        lake,
        "quartz",
        "b",
        PAPI_TOT_INS=[1000],
        PAPI_BR_INS=[200],
        PAPI_LD_INS=[250],
        PAPI_L1_LDM=[50],
        PAPI_BR_MSP=[20],
    )
    warehouse = build(lake, "quartz")
    row = warehouse.frame(f"SELECT * FROM {FEATURES.name}").iloc[0]
    assert (row["branch_ratio"], row["load_ratio"], row["l1_load_misses_count"]) == (0.2, 0.25, 50)
    assert pd.isna(row["store_ratio"])
    assert row["missing_mask"] == 0b11111111111111 & ~0b1011
    assert json.loads(row["formulas"])["branches"] == ["PAPI_BR_INS"]
    vector = warehouse.frame("SELECT * FROM core_runs__vector_features").iloc[0]
    assert vector["cache_misses_to_hits_ratio"] == 50 / 200
    assert vector["branch_miss_ratio"] == pytest.approx(0.1)


def test_runs_of_one_configuration_are_merged_counter_by_counter(lake: Lake) -> None:
    add(lake, "quartz", "set1", PAPI_TOT_INS=[1000], PAPI_BR_INS=[200], wall_seconds=[1.0])
    add(lake, "quartz", "set2", PAPI_TOT_INS=[3000], PAPI_LD_INS=[900], wall_seconds=[3.0])
    warehouse = build(lake, "quartz")
    (row,) = warehouse.frame(f"SELECT * FROM {FEATURES.name}").to_dict("records")
    assert (row["runs_count"], row["wall_seconds"], row["wall_seconds_max"]) == (2, 2.0, 3.0)
    assert (row["branch_ratio"], row["load_ratio"]) == (0.2, 0.3), "each over the instructions of its own run"
    merged = warehouse.frame(f"SELECT counter, value, runs FROM {MERGED_COUNTERS.name}").set_index("counter")
    assert merged.loc["PAPI_TOT_INS", "value"] == 2000
    assert json.loads(merged.loc["PAPI_LD_INS", "runs"]) == ["set2/samples.csv#0"]


@pytest.mark.slow
def test_the_wide_table_has_a_machines_own_columns(lake: Lake) -> None:
    add(lake, "epyc-vm", "b", **{"odd name, 'quoted\"": [7], "cycles": [9]})
    add(lake, "quartz", "b", PAPI_TOT_INS=[5])
    warehouse = build(lake, "epyc-vm", "quartz")
    wide = warehouse.frame(f'SELECT * FROM {COUNTERS_WIDE}."epyc-vm"')
    assert list(wide.columns[7:]) == ["cycles", "odd name, 'quoted\""]
    assert wide.iloc[0, 7:].tolist() == [9, 7]
    assert wide.loc[0, "target_value"] == 1.0
    assert list(warehouse.frame(f"SELECT * FROM {COUNTERS_WIDE}.quartz").columns[7:]) == ["PAPI_TOT_INS"]


def test_spellings_of_one_counter_are_one(lake: Lake) -> None:
    add(lake, "quartz", "one", instructions=[1000], branches=[100], args=["-n 1"])
    add(lake, "quartz", "two", **{"perf::INSTRUCTIONS:u": [1000], "branches:u": [200]}, args=["-n 2"])
    rows = build(lake, "quartz").frame(f"SELECT args, branch_ratio FROM {FEATURES.name} ORDER BY args")
    assert rows.values.tolist() == [["-n 1", 0.1], ["-n 2", 0.2]]


@pytest.mark.parametrize(
    "args", ["-n 1 -d cuda --backend hip -x", "-n 1  -d  CUDA -x", "--arch raja-cuda -n 1 -x", "-n 1 -x --device=gpu"]
)
def test_arguments_of_the_back_end_are_removed(lake: Lake, args: str) -> None:
    add(lake, "quartz", "b", cycles=[1], args=[args])
    assert build(lake, "quartz").frame(f"SELECT args FROM {FEATURES.name}").iloc[0, 0] == "-n 1 -x"


@pytest.mark.slow
def test_configurations_are_compared_without_the_back_end(lake: Lake) -> None:
    add(lake, "quartz", "b", args=["-n 1  -pa", "-n 2"], wall_seconds=[4.0, 1.0])
    add(lake, "lassen", "b", args=["-n 1 -d cuda -pa", "-n 3"], wall_seconds=[1.0, 1.0])
    warehouse = build(lake, "quartz", "lassen")
    unmatched = warehouse.frame(f"SELECT machine, args, reason FROM {UNMATCHED.name} ORDER BY machine")
    assert unmatched.values.tolist() == [
        ["lassen", "-n 3", "run there with other arguments only"],
        ["quartz", "-n 2", "run there with other arguments only"],
    ]


@pytest.mark.slow
def test_reasons_for_no_pair(lake: Lake) -> None:
    add(lake, "quartz", "b", app=["A", "B", "C"], ranks=[1, 2, 1], wall_seconds=[1.0, 1.0, 1.0])
    add(lake, "ruby", "b", app=["B", "C"], ranks=[4, 1], wall_seconds=[1.0, None])
    warehouse = build(lake, "quartz", "ruby")
    rows = warehouse.frame(f"SELECT app, reason FROM {UNMATCHED.name} WHERE machine = 'quartz' ORDER BY app")
    assert rows.values.tolist() == [
        ["A", "application not run there"],
        ["B", "run there with other ranks or threads only"],
        ["C", "the run time there is not known"],
    ]


@pytest.mark.slow
def test_a_new_catalogue_makes_the_warehouse_behind(lake: Lake) -> None:
    # The run time, as HPCToolkit calls it, needs no meaning.
    add(lake, "quartz", "b", MYSTERY=[500], PAPI_TOT_INS=[1000], **{"REALTIME (sec)": [3.0]})
    warehouse = build(lake, "quartz")
    assert not warehouse.is_behind("quartz")
    assert unmapped(load_catalogue(), *warehouse.counters_of("quartz")) == ["MYSTERY"]
    (lake.root / "catalogue").mkdir()
    (lake.root / "catalogue" / "own.yaml").write_text(
        "version: 1\nformulas: [{quantity: branches, counters: {MYSTERY: 1}, meaning: guessed}]\n"
    )
    assert Warehouse(lake, deriving(lake.site_catalogues())).is_behind("quartz")
    again = build(lake, "quartz")
    assert again.frame(f"SELECT branch_ratio FROM {FEATURES.name}").iloc[0, 0] == 0.5
    assert not again.is_behind("quartz")


@pytest.mark.slow
def test_rebuilding_gives_the_same_derived_tables(lake: Lake) -> None:
    add(lake, "quartz", "b", PAPI_TOT_INS=[1000, 2000], args=["-n 1", "-n 2"])
    add(lake, "lassen", "b", **{"perf::INSTRUCTIONS": [1000]})
    warehouse = build(lake, "quartz", "lassen")
    names = [*(table.name for table in DERIVED_TABLES), f"{COUNTERS_WIDE}.quartz", f"{COUNTERS_WIDE}.lassen"]
    before = {name: warehouse.frame(f"SELECT * FROM {name} ORDER BY ALL") for name in names}
    lake.warehouse.unlink()
    warehouse.rebuild()
    for name, frame in before.items():
        assert len(frame)
        pd.testing.assert_frame_equal(frame, warehouse.frame(f"SELECT * FROM {name} ORDER BY ALL"))


def test_an_impossible_intensity_is_a_violation(lake: Lake) -> None:
    add(lake, "quartz", "b", PAPI_TOT_INS=[1000], PAPI_BR_INS=[2000])
    found = build(lake, "quartz").violations(FEATURES, "quartz")
    assert [(violation.rule, violation.row_count) for violation in found] == [
        ("branch_ratio: at least 0, at most 1, finite", 1)
    ]


@pytest.mark.slow
def test_what_looks_odd_is_found(lake: Lake) -> None:
    branches = [100, 101, 99, 100, 102, 98, 100, 101, 99, 600]
    add(lake, "quartz", "b", PAPI_TOT_INS=[1000] * 10, PAPI_BR_INS=branches, args=[f"-n {n}" for n in range(10)])
    add(lake, "quartz", "again", PAPI_LD_INS=[1], args=["-n 3"], wall_seconds=[1.5])
    warehouse = build(lake, "quartz")
    found = {
        doubt.name: warehouse.frame(doubt.query, {"machine": "quartz", "threshold": doubt.threshold})
        for doubt in DOUBTS
    }
    assert found["no_outliers"][["args", "feature"]].values.tolist() == [["-n 9", "branch_ratio"]]
    assert found["small_spread"][["args", "value"]].values.tolist() == [["-n 3", 1.5]]
    assert found["little_multiplexing"].empty
    doubt = next(doubt for doubt in DOUBTS if doubt.name == "little_multiplexing")
    run = land_perf_stat(lake, "ruby", "b1", 7, running_percent=55.0)
    assert run.is_new
    shared = build(lake, "ruby").frame(doubt.query, {"machine": "ruby", "threshold": doubt.threshold})
    assert shared[["counter", "value"]].values.tolist() == [["instructions", pytest.approx(0.55)]]
