"""Other people's readers cannot hold up the tests."""

import os
import time
from pathlib import Path

import psutil
import pytest

from tests.peers import ask

SCRIPT = """
import os, pickle, sys, time
from pathlib import Path

question, given, answer = sys.argv[1:]
(argument,) = pickle.loads(Path(given).read_bytes())
if question == "fails":
    raise ValueError("no such file")
if question == "hangs" or not Path(argument).exists():
    Path(argument).write_text(str(os.fork() or os.getpid()))
    time.sleep(600)
Path(answer).write_bytes(pickle.dumps("read"))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def test_one_that_hangs_is_ended_with_its_children(tmp_path: Path, script: Path) -> None:
    start = time.monotonic()
    with pytest.raises(AssertionError, match=r"hangs of script\.py did not answer within 1 s, twice"):
        ask("hangs", str(tmp_path / "child"), seconds=1.0, script=script)
    assert time.monotonic() - start < 60
    assert not any(str(script) in _command(process) for process in psutil.process_iter())


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_one_that_hung_once_is_asked_again(tmp_path: Path, script: Path) -> None:
    assert ask("hangs once", str(tmp_path / "child"), seconds=5.0, script=script) == "read"


def test_what_it_says_is_shown(tmp_path: Path, script: Path) -> None:
    with pytest.raises(AssertionError, match="no such file"):
        ask("fails", os.fspath(tmp_path), script=script)
