from pathlib import Path

import pandas as pd
import pytest

from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.late import KNOWN_MACHINES, LATE_MACHINES, RUNS_AT_A_TIME, LateMachine

MACHINES = load_machines()
SCALE = 0.1


def late(machine: str) -> LateMachine:
    return LateMachine.of(MACHINES[machine], SCALE, 0)


def test_twelve_machines_are_known_and_four_of_another_kind_arrive_late() -> None:
    assert len(set(KNOWN_MACHINES)) == 12
    assert len(set(LATE_MACHINES) - set(KNOWN_MACHINES)) == 4
    gpus = {MACHINES[machine].gpu.model for machine in KNOWN_MACHINES if MACHINES[machine].gpu}  # type: ignore[union-attr]
    cores = {MACHINES[machine].microarchitecture for machine in KNOWN_MACHINES}
    bandwidth = max(MACHINES[machine].memory.bandwidth_bytes_per_second for machine in KNOWN_MACHINES)
    for machine in LATE_MACHINES:
        spec = MACHINES[machine]
        is_new_gpu = spec.gpu is not None and spec.gpu.model not in gpus
        has_fast_memory = spec.memory.bandwidth_bytes_per_second > 2 * bandwidth
        assert is_new_gpu or has_fast_memory or spec.microarchitecture not in cores


@pytest.mark.parametrize("machine", LATE_MACHINES)
def test_runs_kept_aside_never_land(machine: str) -> None:
    plan = late(machine)
    landing = {execution.configuration.key for execution in plan.landing}
    aside = {execution.configuration.key for execution in plan.kept_aside}
    assert not landing & aside
    assert len(aside) >= len(landing) > RUNS_AT_A_TIME
    assert len(plan.truth()) == len(aside)


def test_the_first_ten_runs_are_two_of_each_application() -> None:
    apps = pd.Series([bundle.facts.app for bundle in late("xeonmax").batch(0)])
    assert len(apps) == RUNS_AT_A_TIME
    assert set(apps.value_counts()) <= {1, 2, 3}
    assert apps.nunique() == 5


def test_batches_have_bundles_of_their_own_until_all_runs_landed(tmp_path: Path) -> None:
    for machine in ("tioga", "grace"):
        plan, names, number = late(machine), [], 0
        while batch := plan.batch(number):
            names += [bundle.name for bundle in batch]
            number += 1
        assert len(names) == len(set(names))
        assert number == -(-len(plan.landing) // RUNS_AT_A_TIME)
    rows = 0
    for bundle in late("tioga").batch(0):
        (tmp_path / bundle.name).mkdir()
        bundle.write(tmp_path / bundle.name)
        rows += len(pd.read_csv(tmp_path / bundle.name / "samples.csv"))
    assert rows == RUNS_AT_A_TIME


def test_the_same_seed_keeps_the_same_runs_aside() -> None:
    assert late("grace").truth().equals(late("grace").truth())
    other = LateMachine.of(MACHINES["grace"], SCALE, 1).truth()
    assert not other.equals(late("grace").truth())
