"""Files that are cheap to make and dear to read are refused with one line, in little time and memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security import bombs

PROJECT = Path(__file__).resolve().parents[2]
MOST_MEGABYTES = 150.0
MOST_SECONDS = 12.0
"""Of CPU, on a busy machine; most take a hundredth."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came of each bomb, all read by one process with a limit on its memory."""
    folder = tmp_path_factory.mktemp("bombs")
    command = [sys.executable, "-m", "tests.security.bombs", str(folder)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (folder / "evil").exists()
    assert not (PROJECT / "evil").exists()
    return {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
@pytest.mark.parametrize("name", bombs.BOMBS)
def test_a_bomb_is_refused_cheaply_and_in_one_line(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    found = outcomes[name]
    assert bombs.BOMBS[name][1] in found["said"]
    assert found["said"].isprintable()
    assert len(found["said"]) < 5000
    assert found["megabytes"] < MOST_MEGABYTES
    assert found["seconds"] < MOST_SECONDS
