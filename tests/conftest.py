"""What tests of several packages share."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perf_assets.core.manifest import BundleFacts
from perf_assets.storage.lake import Lake

COLLECTED_AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake."""
    return Lake(tmp_path / "lake")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measured data, where it is beside the project."""
    given = os.environ.get("PERF_ASSETS_SHARED_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real measurements are not at {folder}; set PERF_ASSETS_SHARED_DATA to where they are")
    return folder


def profile_facts(machine: str = "quartz", **fields: object) -> BundleFacts:
    """Facts of a small profile bundle."""
    given = {"machine": machine, "kind": "profile", "app": "Kripke", "ranks": 2, "threads": 1, "wall_seconds": 1.5}
    return BundleFacts.model_validate({**given, "collected_at": COLLECTED_AT, **fields})
