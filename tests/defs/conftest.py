"""A lake with genuine perf stat files, and Dagster on a throw-away instance."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

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


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the tables of Dagster and no run: longer to make than to copy."""
    folder = tmp_path_factory.mktemp("empty_home")
    with dg.instance_for_test(temp_dir=str(folder)) as made:
        assert made.get_runs_count() == 0
        assert made.all_asset_keys() == []
    return folder


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Without files, which take a third of the time of a run."""
    with dg.DagsterInstance.ephemeral() as temporary:
        yield temporary


@pytest.fixture
def kept_instance(empty_home: Path, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """One that commands find."""
    home = shutil.copytree(empty_home, tmp_path / "dagster_home")
    with dg.instance_for_test(temp_dir=str(home)) as temporary:
        yield temporary


@pytest.fixture
def lake_resource(lake: Lake) -> LakeResource:
    return LakeResource(root=str(lake.root))
