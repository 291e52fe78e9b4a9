"""A home and a registry that are new may be opened by several processes at once."""

import json
import os
from pathlib import Path

import pytest

from perf_assets.infra.postgres import Address
from tests.installation import PROJECT, run_script
from tests.postgres import Server

pytestmark = pytest.mark.integration
ROUNDS = int(os.environ.get("PERF_ASSETS_OPENING_ROUNDS", "1"))
"""`make test-all` has 20."""


def open_at_once(opening: str, root: Path, storages: list[str]) -> list[str]:
    """What went wrong in any of several processes, in a round for each storage."""
    script = Path(__file__).with_name("first_openings.py")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(root)}
    seconds = 300.0 + 60.0 * len(storages)
    done = run_script(script, [opening, str(root), *storages], environment, root, seconds)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.timeout(400 + 60 * ROUNDS)
@pytest.mark.parametrize("opening", ["home", "registry"])
def test_several_at_once_make_the_sqlite_files_once(tmp_path: Path, opening: str) -> None:
    assert open_at_once(opening, tmp_path, [""] * ROUNDS) == []


@pytest.mark.timeout(400 + 60 * ROUNDS)
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(("opening", "schema"), [("home", "dagster"), ("registry", "mlflow")])
def test_several_at_once_make_the_tables_of_a_database_once(
    postgres: Server, tmp_path: Path, opening: str, schema: str
) -> None:
    addresses = [Address.given(postgres.database()) for _ in range(ROUNDS)]
    for address in addresses:
        address.make_schemas(schema)
    assert open_at_once(opening, tmp_path, [address.in_schema(schema) for address in addresses]) == []
