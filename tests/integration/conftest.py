"""The real command line on a home and a lake of its own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf_assets.infra.locks import exclusive
from tests.docs.newbox import copy_lake
from tests.installation import Installation, Up, bundles_of, install, land_bundles, running, train_quickly

TRAINING_SECONDS = 600.0


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return install(tmp_path / "installation")


@pytest.fixture
def up(installation: Installation) -> Iterator[Up]:
    with running(installation) as started:
        yield started


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A small fleet with source models, as a site has it that runs for a while; all workers have the same: copy it."""
    own = tmp_path_factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    made = Installation(common / "trained")
    with exclusive(common / "trained.lock", "training of the small fleet", TRAINING_SECONDS):
        if not (made.root / "is_ready").exists():
            shutil.rmtree(made.root, ignore_errors=True)
            install(made.root)
            for machine in ("quartz", "ruby", "lassen"):
                land_bundles(made, (bundle for part in bundles_of(machine) for bundle in part))
            made.json("ingest")
            train_quickly(made)
            (made.root / "is_ready").touch()
    return made


@pytest.fixture(scope="session")
def trained(trained_once: Installation, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A copy of it, which tests of running services change."""
    made = Installation(tmp_path_factory.mktemp("live"))
    copy_lake(trained_once.lake.root, made.lake.root)
    shutil.copytree(trained_once.home, made.home)
    return made


@pytest.fixture(scope="session")
def live(trained: Installation) -> Iterator[Up]:
    """`perf-assets up` on the copy."""
    with running(trained) as started:
        yield started
