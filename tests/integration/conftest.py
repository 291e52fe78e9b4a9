"""The real command line on a home and a lake of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installation import Installation, Up, bundles_of, install, land_bundles, running, train_quickly


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return install(tmp_path / "installation")


@pytest.fixture
def up(installation: Installation) -> Iterator[Up]:
    with running(installation) as started:
        yield started


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A small fleet with source models, as a site has it that runs for a while."""
    made = install(tmp_path_factory.mktemp("trained"))
    for machine in ("quartz", "ruby", "lassen"):
        land_bundles(made, (bundle for part in bundles_of(machine) for bundle in part))
    made.json("ingest")
    train_quickly(made)
    return made


@pytest.fixture(scope="module")
def live(trained: Installation) -> Iterator[Up]:
    """`perf-assets up` on the small fleet."""
    with running(trained) as started:
        yield started
