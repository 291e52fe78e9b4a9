"""The real command line on a home and a lake of its own."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perf_assets.storage.lake import Lake

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("perf-assets")


@dataclass(frozen=True)
class Installation:
    """Where one test's installation keeps its state."""

    root: Path

    @property
    def lake(self) -> Lake:
        return Lake(self.root / "lake")

    @property
    def home(self) -> Path:
        return self.root / "dagster_home"

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER_", "MLFLOW_"))}
        return {**kept, "PERF_ASSETS_LAKE": str(self.lake.root), "DAGSTER_HOME": str(self.home)}

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run `perf-assets` from a folder that has nothing to do with it."""
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            env=self.environment(),
            cwd=self.root,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    made = Installation(tmp_path / "installation")
    made.home.mkdir(parents=True)
    shutil.copyfile(PROJECT / "dagster_home" / "dagster.yaml", made.home / "dagster.yaml")
    return made
