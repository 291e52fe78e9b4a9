"""Features from raw counters are those that the warehouse derives."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.core.tables.runs import COUNTERS_WIDE, FEATURES
from perf_assets.demo.fleet import fleet_bundles
from perf_assets.features.counters.derivations import deriving
from perf_assets.features.counters.raw import counters_in, features_from_counters, load_formulas, save_formulas
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine

NAMES = [feature.name for feature in XAMM_FEATURES]
SHARES = [feature.name for feature in XAMM_FEATURES if feature.is_share]


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["ruby", "lassen"])
def test_they_are_those_of_the_warehouse(lake: Lake, tmp_path: Path, machine: str) -> None:
    for bundle in fleet_bundles(0.05, 0, [machine]):
        land(lake, bundle.facts, bundle.name, bundle.write)
    ingest_machine(lake, machine, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(machine)
    warehouse.derive_machine(machine)
    formulas = load_catalogue().resolve(*warehouse.counters_of(machine))
    save_formulas(tmp_path / "counters.json", formulas)
    assert load_formulas(tmp_path / "counters.json") == formulas
    raw = warehouse.frame(f'SELECT * FROM {COUNTERS_WIDE}."{machine}" ORDER BY app, args, ranks, threads')
    derived = warehouse.frame(
        f"SELECT * FROM {FEATURES.name} WHERE machine = '{machine}' ORDER BY app, args, ranks, threads"
    )
    found = features_from_counters(raw, formulas)
    assert found.notna().any().sum() >= 5
    pd.testing.assert_frame_equal(found.isna(), derived[NAMES].isna())
    counts = [name for name in NAMES if name not in SHARES]
    np.testing.assert_allclose(found[counts], derived[counts])
    # A share is the median over runs there and a ratio of medians here: a disturbed run moves some.
    off = (found[SHARES] / derived[SHARES] - 1).abs().stack()
    assert (off < 0.05).mean() > 0.9
    assert set(counters_in(formulas)) <= set(raw.columns)


def test_a_counter_that_was_not_measured_is_missing() -> None:
    formulas = load_catalogue().resolve(["PAPI_TOT_INS", "PAPI_BR_INS"], None)
    found = features_from_counters(
        pd.DataFrame({"PAPI_TOT_INS": [10.0, 0.0, 5.0], "PAPI_BR_INS": [2.0, 1.0, np.nan]}), formulas
    )
    assert found["branch_ratio"].tolist()[0] == pytest.approx(0.2)
    assert found["branch_ratio"].isna().tolist() == [False, True, True]
    assert found["load_ratio"].isna().all()
