"""kill -9 at many points of an ingestion: done again, it ends where an undisturbed one does."""

import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType

import pandas as pd
import pytest

from perf_assets.storage import record as record_module
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import RecordLimits
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts
from tests.storage.conftest import land_counters, read_counters
from tests.storage.test_ingest import whole

STORAGE = str(Path(record_module.__file__).parent)
POINTS = int(os.environ.get("PERF_ASSETS_KILL_POINTS", "8"))
"""`make test-all` has 40."""


def ingest(root: Path) -> None:
    ingest_machine(Lake(root), "quartz", read_counters, limits=RecordLimits(parts=2, bundles_per_commit=3))
    Warehouse(Lake(root)).load_machine("quartz")


def ingest_until_killed(root: Path, calls: int, counted: "multiprocessing.Queue[int]") -> None:
    """Ingest, and die at the given number of calls and returns of functions of the storage package."""
    count = 0

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "return") and frame.f_code.co_filename.startswith(STORAGE):
            count += 1
            if count == calls:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(on_event)
    ingest(root)
    sys.setprofile(None)
    counted.put(count)


def run_killed(root: Path, calls: int) -> int | None:
    """Exit code, or the number of calls if the run came to its end."""
    context = multiprocessing.get_context("fork")
    counted: multiprocessing.Queue[int] = context.Queue()
    process = context.Process(target=ingest_until_killed, args=(root, calls, counted))
    process.start()
    total = counted.get(timeout=60) if calls == 0 else None
    process.join(60)
    return total if total is not None else process.exitcode


@pytest.fixture
def half_ingested(tmp_path: Path) -> Path:
    """A lake with a history, to which new, changed and broken bundles have landed."""
    lake = Lake(tmp_path / "start")
    for number in range(4):
        land_counters(lake, f"old{number}", profile_facts(), {"INS": number})
    ingest(lake.root)
    for number in range(5):
        land_counters(lake, f"new{number}", profile_facts(), {"INS": 10 + number})
    land_counters(lake, "old1", profile_facts(), {"INS": 100, "CYC": 1})
    broken = land_counters(lake, "broken", profile_facts(), {"INS": 7}).bundle
    (broken.directory / "counters.json").write_text("{")
    return lake.root


@pytest.mark.slow
def test_killed_anywhere_the_next_ingestion_repairs(half_ingested: Path, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(half_ingested, undisturbed)
    total = run_killed(undisturbed, 0)
    assert total is not None
    assert total > POINTS
    expected = whole(Lake(undisturbed))
    for point in range(POINTS):
        root = tmp_path / f"killed{point}"
        shutil.copytree(half_ingested, root)
        assert run_killed(root, 1 + point * (total - 1) // POINTS) == -signal.SIGKILL
        ingest(root)
        found = whole(Lake(root))
        for name, frame in expected.items():
            pd.testing.assert_frame_equal(frame, found[name])
        assert not list(Lake(root).record.rglob("*.tmp")), f"left behind after point {point}"
        shutil.rmtree(root)
