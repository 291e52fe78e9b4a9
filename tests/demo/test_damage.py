from pathlib import Path

import pytest

from perf_assets.demo.tools.damage import is_damaged, with_damage

SEQUENCES = {"Laghos": 154, "Kripke": 106, "miniVite": 289, "SW4lite": 15, "TESTDFFT": 85}


@pytest.mark.parametrize("machine", ["quartz", "ruby", "corona", "lassen", "dane"])
def test_a_few_runs_fail(machine: str) -> None:
    failed = [1 for app, count in SEQUENCES.items() for index in range(count) if is_damaged(machine, app, index)]
    assert 2 <= len(failed) <= 7


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
