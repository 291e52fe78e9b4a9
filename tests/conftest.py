"""What tests of several packages share."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perf_assets.core.manifest import BundleFacts
from perf_assets.storage.lake import Lake
from tests.postgres import Server, running_server

if TYPE_CHECKING:
    from perf_assets.features.samples import PairedSamples
    from perf_assets.models.source.training import TrainedSource
    from tests.described import DescribedFleet

COLLECTED_AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake."""
    return Lake(tmp_path / "lake")


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
    """A source model of that fleet, of few methods."""
    from perf_assets.models.source.settings import SourceSettings
    from perf_assets.models.source.training import train_source

    settings = SourceSettings(without_amm=("raw_xgboost", "raw_random_forest"), with_amm=("raw_amm_xgboost",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_THREADS", "1")
        return train_source(described.samples, described.by, settings, lambda line: None)


def profile_facts(machine: str = "quartz", **fields: object) -> BundleFacts:
    """Facts of a small profile bundle."""
    given = {"machine": machine, "kind": "profile", "app": "Kripke", "ranks": 2, "threads": 1, "wall_seconds": 1.5}
    return BundleFacts.model_validate({**given, "collected_at": COLLECTED_AT, **fields})
