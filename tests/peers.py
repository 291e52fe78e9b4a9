"""What other people's readers read, for comparison: in a process of their own, which has a time limit.

Hatchet makes a pool of processes, and now and then waits for ever for its end.
"""

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest

SECONDS = 100.0
_TRIES = 2
_SCRIPT = Path(__file__).with_name("peer_process.py")


@dataclass(frozen=True)
class CaliperFile:
    """What caliper-reader finds in a file."""

    records: list[dict[str, Any]]
    globals: dict[str, Any]
    attributes: dict[str, dict[str, Any]]


def hatchet_rows(folder: Path, reader: str = "from_hpctoolkit", **options: Any) -> pd.DataFrame:
    """Rows of a database without their index; `is_root` marks those of roots. Skips without hatchet."""
    pytest.importorskip("hatchet")
    rows: pd.DataFrame = ask("hatchet_rows", str(folder), reader, options)
    return rows


def caliper_files(*files: Path) -> list[CaliperFile]:
    """What caliper-reader reads in each file. Skips without it."""
    pytest.importorskip("caliperreader")
    return [CaliperFile(**found) for found in ask("caliper_files", *map(str, files))]


def thicket_regions(*files: Path) -> dict[tuple[str, tuple[str, ...]], dict[str, float]]:
    """Times that thicket has by file and region path. Skips without it."""
    pytest.importorskip("thicket")
    regions: dict[tuple[str, tuple[str, ...]], dict[str, float]] = ask("thicket_regions", *map(str, files))
    return regions


def thicket_of_json(file: Path) -> tuple[dict[tuple[str, str], dict[str, Any]], list[dict[str, Any]]]:
    """What thicket makes of a file of its own format: rows by run and path, and metadata. Skips without it."""
    pytest.importorskip("thicket")
    found: tuple[dict[tuple[str, str], dict[str, Any]], list[dict[str, Any]]] = ask("thicket_of_json", str(file))
    return found


def ask(question: str, *arguments: object, seconds: float = SECONDS, script: Path = _SCRIPT) -> Any:
    """The answer of a function of the script; one that does not come in time is asked for once more, then no more."""
    with TemporaryDirectory() as folder:
        given, answer = Path(folder, "given"), Path(folder, "answer")
        given.write_bytes(pickle.dumps(arguments))
        for _ in range(_TRIES):
            code, told = _run([sys.executable, str(script), question, str(given), str(answer)], seconds)
            if code is not None:
                assert code == 0, f"{question} ended with {code}: {told[-2000:]}"
                return pickle.loads(answer.read_bytes())
    raise AssertionError(f"{question} of {script.name} did not answer within {seconds:.0f} s, twice: {told[-2000:]}")


def _run(command: list[str], seconds: float) -> tuple[int | None, str]:
    """Exit code and what was told; no code where the time was over, and then none of its processes is left."""
    # Not through a pipe, which processes that it leaves behind would hold open.
    with TemporaryDirectory() as folder, Path(folder, "told").open("w+") as told:
        process = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        told.seek(0)
        return code, told.read()
