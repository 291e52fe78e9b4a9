from pathlib import Path

import pytest

from perf_assets.core.manifest import DAMAGED_ON_PURPOSE
from perf_assets.demo.fleet import LATER_MACHINES, SOURCE_MACHINES, fleet_bundles, is_damaged, with_damage

SEQUENCES = {"Laghos": 154, "Kripke": 106, "miniVite": 289, "SW4lite": 15, "TESTDFFT": 85}


@pytest.mark.slow
def test_few_runs_are_damaged_and_their_bundles_say_that_it_is_on_purpose() -> None:
    machines = (*SOURCE_MACHINES, *LATER_MACHINES)
    damaged = [
        (machine, app, index)
        for machine in machines
        for app, count in SEQUENCES.items()
        for index in range(count)
        if is_damaged(machine, app, index)
    ]
    named = [b.name for b in fleet_bundles(0.25, 0, machines, benchmark_scale=0.1) if DAMAGED_ON_PURPOSE in b.name]
    assert len(named) == len(damaged) == 2


def test_a_file_ends_early_or_is_missing(tmp_path: Path) -> None:
    def write(directory: Path) -> None:
        (directory / "set1").mkdir()
        (directory / "set1" / "profile.db").write_bytes(bytes(100))
        (directory / "set1" / "meta.db").write_bytes(bytes(50))

    for index in (0, 1):
        (tmp_path / str(index)).mkdir()
        with_damage(write, "ruby", index)(tmp_path / str(index))
    assert (tmp_path / "0/set1/profile.db").stat().st_size == 60
    assert (tmp_path / "0/set1/meta.db").stat().st_size == 50
    assert not (tmp_path / "1/set1/meta.db").exists()
