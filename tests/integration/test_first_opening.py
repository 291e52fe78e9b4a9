"""A home and a registry that are new may be opened by several processes at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perf_assets.infra.postgres import Address
from tests.installation import PROJECT
from tests.postgres import Server

pytestmark = pytest.mark.integration
ROUNDS = int(os.environ.get("PERF_ASSETS_OPENING_ROUNDS", "2"))
"""`make test-all` has 20."""


def open_at_once(opening: str, root: Path, storages: list[str]) -> list[str]:
    """What went wrong in any of eight processes, in a round for each storage."""
    script = Path(__file__).with_name("first_openings.py")
    done = subprocess.run(
        [sys.executable, script, opening, root, *storages],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(root)},
        capture_output=True,
        text=True,
        timeout=60 + 60 * len(storages),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.timeout(100 + 60 * ROUNDS)
@pytest.mark.parametrize("opening", ["home", "registry"])
def test_eight_at_once_make_the_sqlite_files_once(tmp_path: Path, opening: str) -> None:
    assert open_at_once(opening, tmp_path, [""] * ROUNDS) == []


@pytest.mark.timeout(100 + 60 * ROUNDS)
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(("opening", "schema"), [("home", "dagster"), ("registry", "mlflow")])
def test_eight_at_once_make_the_tables_of_a_database_once(
    postgres: Server, tmp_path: Path, opening: str, schema: str
) -> None:
    addresses = [Address.given(postgres.database()) for _ in range(ROUNDS)]
    for address in addresses:
        address.make_schemas(schema)
    assert open_at_once(opening, tmp_path, [address.in_schema(schema) for address in addresses]) == []
