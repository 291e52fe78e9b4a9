"""Every benchmark has a quick mode, and its last line is one JSON object."""

import json
import os
from pathlib import Path

import pytest

from tests.installation import PROJECT, run_script

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
FOLDER = PROJECT / "benchmarks"
SECONDS = 850
ELSEWHERE = ("modelx",)
"""Benchmarks whose quick mode tests/benchmarks/test_<name>.py runs, and reads more of."""


LONG = (
    "distributed",
    "families",
    "health",
    "ingest_scale",
    "load",
    "modelx_schedule",
    "partitions",
    "relative",
    "scaling",
    "serve",
)
"""Benchmarks whose quick mode takes half a minute: `make test` starts them, `make test-all` runs them."""


def scripts() -> list[str]:
    """What can be run; other files are of use to those."""
    return sorted(file.stem for file in FOLDER.glob("*.py") if "__main__" in file.read_text())


def test_those_that_are_run_elsewhere_are() -> None:
    for name in ELSEWHERE:
        assert '"--quick"' in Path(__file__).with_name(f"test_{name}.py").read_text()


def run_benchmark(name: str, option: str, folder: Path, shared_data: Path) -> str:
    """Run it with one option; what it printed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER_", "MLFLOW_"))}
    own = {
        "PERF_ASSETS_LAKE": str(folder / "lake"),
        "PERF_ASSETS_SHARED_DATA": str(shared_data),
        "PERF_ASSETS_THREADS": "1",
        "PYTHONPATH": str(PROJECT),
    }
    done = run_script(FOLDER / f"{name}.py", [option], {**kept, **own}, folder, SECONDS)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", LONG)
def test_those_that_take_long_find_all_that_they_import(name: str, tmp_path: Path, shared_data: Path) -> None:
    assert "--quick" in run_benchmark(name, "--help", tmp_path, shared_data)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in scripts() if name not in ELSEWHERE],
)
def test_its_last_line_is_read(name: str, tmp_path: Path, shared_data: Path) -> None:
    figures = json.loads(run_benchmark(name, "--quick", tmp_path, shared_data).splitlines()[-1])
    assert isinstance(figures, dict)
    assert figures
