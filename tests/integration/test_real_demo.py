"""`demo --real`: measured machines get descriptions, models and pages, and nothing is called simulated."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from perf_assets.core.tables.models import AMMS
from perf_assets.storage.results import stored
from tests.installation import Installation, install, run_command

pytestmark = [pytest.mark.slow, pytest.mark.integration, pytest.mark.timeout(3600)]
_SECONDS = 3000.0

MACHINES = ("lassen", "quartz", "dane", "tioga-gpu")
"""Two of each of LLNL's campaigns, whose RAJAPerf results are there."""


def part_of(shared_data: Path, folder: Path) -> Path:
    """Some of the measurements: four machines, every third run of their applications."""
    for name in ("rajaperf/quartz_cali/gcc_O3", "rajaperf/llnl_fleet"):
        if not (shared_data / name).is_dir():
            pytest.skip(f"no {name} at {shared_data}")
        shutil.copytree(shared_data / name, folder / name)
    table = pd.read_csv(shared_data / "llnl_relative" / "relative_speed.csv")
    there = table[list(MACHINES)].notna().sum(axis=1) > 1
    (folder / "llnl_relative").mkdir()
    kept = table.loc[there, ["app", "args", "ranks", *MACHINES]].iloc[::3]
    kept.to_csv(folder / "llnl_relative" / "relative_speed.csv", index=False)
    return folder


def run(installation: Installation, folder: Path, *options: str) -> dict[str, Any]:
    """What the demo prints."""
    words = ["demo", "--real", str(folder), *options, "--json"]
    done = run_command(words, installation.environment(), installation.root, _SECONDS)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def check_pages(installation: Installation, machines: list[str]) -> None:
    """Pages say that data are measured, and that times are relative where they are."""
    reports = installation.lake.reports
    fleet = (reports / "index.html").read_text(encoding="utf-8")
    assert "simulated" not in fleet.casefold()
    assert "are relative, not in seconds." in fleet
    for machine in machines:
        page = (reports / f"machine-{machine}.html").read_text(encoding="utf-8")
        assert "simulated" not in page.casefold()
        assert ">measured<" in page
        assert "relative to quartz" in page


def test_a_part_of_the_public_measurements_gets_models_and_pages(shared_data: Path, tmp_path: Path) -> None:
    folder = part_of(shared_data, tmp_path / "data")
    installation = install(tmp_path / "site")
    printed = run(installation, folder, *(word for name in MACHINES for word in ("--machine", name)))
    assert {row["machine"] for row in printed["machines"]} == set(MACHINES)
    assert printed["not_made"] == []
    amms = stored(installation.lake, AMMS, "perf-assets train")
    assert {*MACHINES} <= {*amms["machine"]}
    assert not amms["is_simulated"].any()
    registered = {row["name"] for row in installation.json("models")["models"]}
    assert {"perf-amm", "perf-source", "perf-relative-vector"} <= registered
    # All times of quartz are 1, as the others are relative to it: there is nothing to predict.
    others = [name for name in MACHINES if name != "quartz"]
    assert {name for name in registered if name.startswith("perf-target-")} == {f"perf-target-{m}" for m in others}
    check_pages(installation, others)


@pytest.mark.long
def test_all_public_measurements_get_models_and_pages(shared_data: Path, tmp_path: Path) -> None:
    installation = install(tmp_path / "site")
    printed = run(installation, shared_data)
    assert len(printed["machines"]) > 20
    assert not [row for row in printed["machines"] if row["failure"]]
    registered = {row["name"] for row in installation.json("models")["models"]}
    assert {f"perf-target-{name}" for name in ("dane", "lassen", "tioga-gpu", "gtx-980")} <= registered
    check_pages(installation, ["dane", "lassen", "tioga-gpu"])
