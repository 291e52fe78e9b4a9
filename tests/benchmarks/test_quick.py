"""Every benchmark has a quick mode, and its last line is one JSON object."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installation import PROJECT

pytestmark = pytest.mark.integration
FOLDER = PROJECT / "benchmarks"
SECONDS = 280


def scripts() -> list[str]:
    """What can be run; other files are of use to those."""
    return sorted(file.stem for file in FOLDER.glob("*.py") if "__main__" in file.read_text())


@pytest.mark.parametrize("name", scripts())
def test_its_last_line_is_read(name: str, tmp_path: Path, shared_data: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER_", "MLFLOW_"))}
    own = {
        "PERF_ASSETS_LAKE": str(tmp_path / "lake"),
        "PERF_ASSETS_SHARED_DATA": str(shared_data),
        "PERF_ASSETS_THREADS": "1",
        "PYTHONPATH": str(PROJECT),
    }
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", "--quick"],
        env={**kept, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(figures, dict)
    assert figures
