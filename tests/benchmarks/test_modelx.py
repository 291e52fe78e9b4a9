"""What benchmarks/modelx.py says of its goals, and that it runs on the measured data."""

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.installation import run_script
from tests.models.transfers import table

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def modelx(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_FOLDER)
    return import_module("modelx")


def _row(part: str, sources: str, target: str, asked: str, **found: float) -> dict[str, Any]:
    errors = {"product": 0.05, "ratio": 1.0, "mape": 0.05, "improvement": 60.0, "paper_improvement": None}
    return {"part": part, "sources": sources.split("+"), "target": target, "asked": asked, **errors, **found}


def test_goals_are_those_of_the_parts_that_were_run(modelx: Any) -> None:
    rows = [
        _row("apps", "comd+ft+kripke", "cg", "5%", ratio=0.5, mape=0.1, paper_improvement=69),
        _row("apps", "cg+ft+kripke", "comd", "5%", ratio=2.0),
        _row("inputs", "kripke_2000", "kripke_12000", "50"),
        _row("power", "comd+cg", "kripke_2000", "10", ratio=1.06),
    ]
    found = {one["goal"]: one for one in modelx.goals(rows, {"cg": 0.09, "comd": 0.06})}
    met = {what: one["is_met"] for what, one in found.items()}
    assert met == {
        "2 transfers of applications, 5%: worst ratio to the best target-only model": False,
        "the same, 5%: geometric mean": False,
        "comd+ft+kripke -> cg, 5%: MAPE, below ModelX's own": False,
        "comd+ft+kripke -> cg, 5%: improvement, percent": False,
        "cg+ft+kripke -> comd, 5%: MAPE, below ModelX's own": True,
        "kripke_2000 -> kripke_12000, 50: squared log error": True,
        "comd+cg -> kripke_2000, 10: ratio to the best target-only model": False,
    }
    assert found["the same, 5%: geometric mean"]["value"] == pytest.approx(1.0)
    assert found["comd+ft+kripke -> cg, 5%: improvement, percent"]["at_least"] == 69


def test_some_rows_are_the_same_ones_each_time(modelx: Any) -> None:
    whole = table("old")
    some = modelx.some_rows(whole, 50)
    assert len(some) == 50
    assert some.rows.sum() == 50
    assert np.array_equal(whole.target[some.rows], some.target)
    assert np.array_equal(modelx.some_rows(whole, 50).counters, some.counters, equal_nan=True)
    assert modelx.some_rows(whole, 1000) is whole


def test_the_published_errors_are_those_of_the_published_predictions(modelx: Any, shared_data: Path) -> None:
    found = modelx.published_mape(shared_data)
    assert {app: round(100 * mape) for app, mape in found.items()} == {"comd": 6, "cg": 9, "ft": 12, "kripke": 7}


@pytest.mark.integration
def test_a_quick_run_ends_with_rows_and_goals(shared_data: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    environment = {**os.environ, "PERF_ASSETS_SHARED_DATA": str(shared_data), "PYTHONPATH": str(_FOLDER.parent)}
    done = run_script(_FOLDER / "modelx.py", ["--quick", "--page", str(page)], environment, tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout.splitlines()[-1])
    assert [row["part"] for row in document["rows"]] == ["apps", "airfoil", "inputs", "power", "pairs"]
    airfoil, power = document["rows"][1], document["rows"][3]
    assert (airfoil["paper_improvement"], airfoil["paper_severity"]) == (-82, 0.0)
    assert (power["features"], power["zero_shot"]) == ("not shared", None)
    assert {"goal", "value", "is_met"} <= set(document["goals"][0])
    assert "ModelX" in page.read_text()
