"""A made-up site for all tests that look at one."""

from pathlib import Path

import pytest

from tests.reports.sites import write_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder; not to be changed."""
    return write_site(tmp_path_factory.mktemp("site"))
