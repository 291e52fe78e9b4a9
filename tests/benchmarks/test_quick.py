"""Every benchmark has a quick mode, and its last line is one JSON object."""

import json
import os
from pathlib import Path

import pytest

from tests.installation import PROJECT, run_script

pytestmark = pytest.mark.integration
FOLDER = PROJECT / "benchmarks"
SECONDS = 280
ELSEWHERE = ("modelx",)
"""Benchmarks whose quick mode tests/benchmarks/test_<name>.py runs, and reads more of."""


def scripts() -> list[str]:
    """What can be run; other files are of use to those."""
    return sorted(file.stem for file in FOLDER.glob("*.py") if "__main__" in file.read_text())


def test_those_that_are_run_elsewhere_are() -> None:
    for name in ELSEWHERE:
        assert '"--quick"' in Path(__file__).with_name(f"test_{name}.py").read_text()


@pytest.mark.parametrize("name", [name for name in scripts() if name not in ELSEWHERE])
def test_its_last_line_is_read(name: str, tmp_path: Path, shared_data: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER_", "MLFLOW_"))}
    own = {
        "PERF_ASSETS_LAKE": str(tmp_path / "lake"),
        "PERF_ASSETS_SHARED_DATA": str(shared_data),
        "PERF_ASSETS_THREADS": "1",
        "PYTHONPATH": str(PROJECT),
    }
    done = run_script(FOLDER / f"{name}.py", ["--quick"], {**kept, **own}, tmp_path, SECONDS)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(figures, dict)
    assert figures
