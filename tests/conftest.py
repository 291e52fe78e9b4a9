"""What tests of several packages share.

Needs a test trained models? `trained_once` is a small fleet (quartz, ruby, lassen; 40 configurations per machine)
that was landed, ingested and trained by one worker for all: look at it as it is, or change a copy
(`tests.trained_site.copy_of`, a second of work). `fleet` and `trained` are a made-up fleet without files, with its
source model. tests/README.md has the rest.
"""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from perf_assets.core.manifest import BundleFacts
from perf_assets.storage.lake import Lake
from tests.postgres import Server, running_server

if TYPE_CHECKING:
    from perf_assets.features.samples import PairedSamples
    from perf_assets.models.source.training import TrainedSource
    from tests.described import DescribedFleet
    from tests.installation import Installation

# Nobody waits half a minute for what a sensor may see in five seconds.
os.environ.setdefault("PERF_ASSETS_LANDING_SECONDS", "5")
# The other cores have other tests: fan-outs stay in their process, where they are not the subject.
os.environ.setdefault("PERF_ASSETS_THREADS", "1")
_MEMORY = Path("/dev/shm")
_ROOM = 6e9
"""Bytes of memory that are free where temporary files of tests go into it: all of them together are 2 GB."""
COLLECTED_AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)

_LONGEST_FIRST = ("live", "services", "postgres", "training", "documentation", "profiles", "scheduling", "serving")
"""Groups of tests; one that began last would run alone in the end. Those that wait run beside those that compute.
`live` trains the fleet that the training and the documentation wait for."""


def pytest_configure() -> None:
    """Temporary files are in memory where there is room: SQLite waits for the disk at each of thousands of writes."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    there = os.statvfs(_MEMORY)
    is_large = min(there.f_bavail * there.f_frsize, psutil.virtual_memory().available) > _ROOM
    if is_large and not there.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long ones first, so that all workers have something to do until the end; fixtures of modules are made by one."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares_with_its_module(item):
            item.add_marker(pytest.mark.xdist_group(".".join((item.path.parent.name, item.path.stem))))
    items.sort(key=_turn)


def _shares_with_its_module(item: pytest.Item) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(definitions[-1].scope == "module" for definitions in fixtures.values())


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through half a gigabyte for garbage takes a second each time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """What was kept is let go, or libraries take it for leaks and say so behind the results."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Definitions are loaded without the state that an instance keeps for them, of which nothing here has any.

    An instance of Dagster makes its own state storage that of the process, and when it is left or collected it brings
    back the one before: after some tests that is one whose folder is gone, for fixtures of modules and sessions too.
    Dagster has no public way to say that there is none.
    """
    state = sys.modules.get("dagster._core.storage.defs_state.base")
    if state is not None:
        state.DefsStateStorage.get = classmethod(lambda cls: None)


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args[0] in _LONGEST_FIRST:
        return _LONGEST_FIRST.index(group.args[0])
    is_long = any(item.get_closest_marker(name) for name in ("integration", "slow"))
    return len(_LONGEST_FIRST) + (not is_long)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An empty lake, with no registry: MLflow leaves the address of the last store it opened in the environment."""
    if "MLFLOW_TRACKING_URI" in os.environ:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path / "lake"))
    return Lake(tmp_path / "lake")


@pytest.fixture(scope="session")
def empty_registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SQLite file with the tables of MLflow and no model: seconds to make, nothing to copy."""
    from perf_assets.registry.store import open_store

    file = tmp_path_factory.mktemp("empty_registry") / "mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{file}")
        open_store()
    return file


@pytest.fixture
def own_registry(empty_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a lake that is in use, with a registry of its own that is empty."""
    (tmp_path / "mlflow").mkdir()
    shutil.copyfile(empty_registry, tmp_path / "mlflow" / "mlflow.db")
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A real PostgreSQL server."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The same, with its password where the client library looks; running again after the test."""
    monkeypatch.setenv("PGPASSFILE", str(postgres_server.passwords))
    yield postgres_server
    postgres_server.start_again()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measured data, where it is beside the project."""
    given = os.environ.get("PERF_ASSETS_SHARED_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real measurements are not at {folder}; set PERF_ASSETS_SHARED_DATA to where they are")
    return folder


@pytest.fixture(scope="session")
def own_data() -> Path:
    """Real measurements that the repository has, laid out like the shared ones."""
    return Path(__file__).with_name("data")


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> "Installation":
    """A small fleet on disk with source models, the same one for all workers: copy it to change it."""
    from tests.trained_site import made_once

    return made_once(tmp_path_factory)


@pytest.fixture(scope="session")
def fleet() -> "PairedSamples":
    """A small made-up fleet, from tables as the warehouse gives them."""
    from perf_assets.features.fleet.samples import fleet_samples
    from tests.features.fleet_tables import fleet_tables

    return fleet_samples(fleet_tables())


@pytest.fixture(scope="session")
def described() -> "DescribedFleet":
    """That fleet with descriptions of its machines."""
    from tests.described import described_fleet
    from tests.features.fleet_tables import fleet_tables

    return described_fleet(fleet_tables())


@pytest.fixture(scope="session")
def trained(described: "DescribedFleet") -> "TrainedSource":
    """A source model of that fleet, of few methods and with one net of the attention."""
    from perf_assets.models.source.settings import SourceSettings
    from perf_assets.models.source.training import train_source

    settings = SourceSettings(
        without_amm=("raw_xgboost", "raw_random_forest"), with_amm=("raw_amm_xgboost",), attention_members=1
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_THREADS", "1")
        return train_source(described.samples, described.by, settings, lambda line: None)


def profile_facts(machine: str = "quartz", **fields: object) -> BundleFacts:
    """Facts of a small profile bundle."""
    given = {"machine": machine, "kind": "profile", "app": "Kripke", "ranks": 2, "threads": 1, "wall_seconds": 1.5}
    return BundleFacts.model_validate({**given, "collected_at": COLLECTED_AT, **fields})
