"""A lake with genuine perf stat files, and Dagster on a throw-away instance."""

import gc
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.defs_state.base import DefsStateStorage, set_defs_state_storage

from perf_assets.defs.resources import LakeResource
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import Landing, land
from tests.conftest import profile_facts


def land_perf_stat(lake: Lake, machine: str, name: str, instructions: int, running_percent: float = 100.0) -> Landing:
    """Land a perf stat file of one run; the counter of instructions was live for a part of it."""

    def write(folder: Path) -> None:
        lines = [
            "# started on Mon Nov 16 00:50:28 2026",
            "",
            "3920.47,msec,task-clock,3920466000,100.00,0.452,CPUs utilized",
            f"{instructions},,instructions,3920466000,{running_percent:.2f},,",
        ]
        (folder / "perf_stat.csv").write_text("\n".join(lines) + "\n")

    return land(lake, profile_facts(machine), name, write)


def spoil(landing: Landing) -> None:
    """Cut a landed file short."""
    (landing.bundle.directory / "perf_stat.csv").write_text("#")


@pytest.fixture(autouse=True)
def _no_state_of_other_instances() -> Iterator[None]:
    """Runs leave Dagster with the state storage of their instance, which is gone after the test.

    An instance that is collected later, in the middle of a test, would bring the storage of the one before it back.
    """
    if DefsStateStorage.get() is not None:
        gc.collect()
    with set_defs_state_storage(None):
        yield


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as temporary:
        yield temporary


@pytest.fixture
def lake_resource(lake: Lake) -> LakeResource:
    return LakeResource(root=str(lake.root))
