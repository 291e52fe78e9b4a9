"""A small fleet with source models, as a site has it that runs for a while: made once for all workers, then copied."""

import os
import shutil
from pathlib import Path

import pytest

from perf_assets.infra.locks import exclusive
from tests.docs.newbox import copy_lake
from tests.installation import Installation, bundles_of, install, land_bundles, train_quickly

MACHINES = ("quartz", "ruby", "lassen")
_SECONDS = 1600.0


def made_once(factory: pytest.TempPathFactory) -> Installation:
    """The installation that all workers of this session share: not to be changed."""
    own = factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    made = Installation(common / "trained")
    with exclusive(common / "trained.lock", "training of the small fleet", _SECONDS):
        if not (made.root / "is_ready").exists():
            shutil.rmtree(made.root, ignore_errors=True)
            install(made.root)
            for machine in MACHINES:
                land_bundles(made, (bundle for part in bundles_of(machine) for bundle in part))
            made.json("ingest")
            train_quickly(made)
            (made.root / "is_ready").touch()
    return made


def copy_of(made: Installation, root: Path) -> Installation:
    """An installation of its own with the same lake, runs and models: to be changed."""
    copied = Installation(root)
    copy_lake(made.lake.root, copied.lake.root)
    shutil.copytree(made.home, copied.home)
    return copied
