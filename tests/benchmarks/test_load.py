"""What benchmarks/load.py computes from measurements, and that it lands what it says."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from perf_assets.storage.lake import Lake, landed_digests

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_FOLDER)
    return import_module("load_figures")


def _load(figures: Any, bundles: int, peak: float = 500.0) -> Any:
    """38 s without bundles; a bundle lands in 1 ms and is ingested in 2 + 3 + 4, in 5 files of 100 kB together."""
    stages = {"landing": 0.001, "record": 0.002, "warehouse": 0.003, "features": 0.004}
    found = [
        figures.Stage(name, 0.25 + each * bundles, 0.25 + each * bundles, peak / 2) for name, each in stages.items()
    ]
    found += [figures.Stage(figures.REST, 1.0, 1.0, peak), figures.Stage("source models", 36.0, 36.0, peak / 2)]
    return figures.Load(1.0, bundles, bundles, 5 * bundles, 0.1 * bundles, 0.01 * bundles + 3.0, tuple(found))


def test_growth_is_of_all_stages_and_of_the_largest_peak(figures: Any) -> None:
    small, large = _load(figures, 0, 400.0), _load(figures, 3800, 600.0)
    assert small.seconds == pytest.approx(38.0)
    assert large.seconds == pytest.approx(76.0)
    found = figures.growth(small, large)
    assert found == {"time_growth_10_to_100": 2.0, "memory_growth_10_to_100": 1.5, "cpu_growth_10_to_100": 2.0}


def test_a_profile_more_costs_the_slope_and_a_machine_the_rest(figures: Any) -> None:
    costs = figures.profile_costs(_load(figures, 100), _load(figures, 600))
    assert list(costs.seconds.values()) == pytest.approx([0.001, 0.002, 0.003, 0.004])
    assert costs.fixed_seconds == pytest.approx(38.0)
    assert (costs.files, costs.landed_mb, costs.stored_mb) == pytest.approx((5.0, 0.1, 0.01))


def test_larger_lakes_follow_from_the_constants(figures: Any) -> None:
    costs = figures.profile_costs(_load(figures, 100), _load(figures, 600))
    found = figures.extrapolate(costs, profiles=360_000, machines=10)
    assert found.hours == pytest.approx(
        {"landing": 0.1, "record": 0.2, "warehouse": 0.3, "features": 0.4, figures.REST: 380 / 3600}
    )
    assert found.slowest == "features"
    assert (found.landed_gb, found.stored_gb, found.files) == pytest.approx((36.0, 3.6, 1.8e6))
    assert figures.training_hours(_load(figures, 0), folds=6, more_folds=60) == pytest.approx(0.1)
    assert figures.training_gb(machines=3, configurations=1000, columns=10) == pytest.approx(
        (2 * 3 * 1000 * 10 * 8 + 3 * 2 * 1000 * 3 * 8) / 1e9
    )


def test_the_last_line_is_the_growth_between_the_two_largest_scales(
    figures: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is measured is made up here; all else is as it runs."""
    load = import_module("load")
    sizes = {1.0: 0, 10.0: 380, 100.0: 3800}
    monkeypatch.setattr(load, "measure", lambda scale, machines: _load(figures, sizes[scale], 400 + scale))
    monkeypatch.setattr(load, "profiles_only", lambda scale, machine: _load(figures, round(500 * scale)))
    monkeypatch.setattr(sys, "argv", ["load.py"])
    assert load.main() == 0
    lines = capsys.readouterr().out.splitlines()
    found = json.loads(lines[-1])
    assert found["time_growth_10_to_100"] == pytest.approx(76.0 / 41.8, abs=1e-3)
    assert found["memory_growth_10_to_100"] == pytest.approx(500 / 410, abs=1e-3)
    assert sum("a million profiles of 100 machines" in line for line in lines) == len(load.FORMATS)


@pytest.mark.slow
def test_all_bundles_of_a_kind_land(tmp_path: Path) -> None:
    environment = os.environ | {"PERF_ASSETS_LAKE": str(tmp_path / "lake")}
    command = [sys.executable, str(_FOLDER / "load.py"), "--machines", "epyc-vm", "--scales", "0.05"]
    result = subprocess.run(
        [*command, "--task", "land profile"], env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(result.stdout)
    landed = [name for name, _ in landed_digests(Lake(tmp_path / "lake"), "epyc-vm")]
    assert found["bundles"] == len(landed) > 0
    assert not any(name.startswith("rajaperf") for name in landed)
    assert 0 < found["seconds"] < 60
