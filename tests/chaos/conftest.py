"""What tests of `make chaos` share with those of the installation."""

from pathlib import Path

import pytest

from tests.installation import Installation, install


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return install(tmp_path / "installation")
