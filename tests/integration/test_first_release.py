"""A lake that the first release made, with its own code, is read by this one: what has to be made again is said."""

import tarfile
from pathlib import Path

import duckdb
import pytest

from perf_assets.core.tables.runs import FEATURES
from perf_assets.storage.snapshots import move_sqlite_places
from perf_assets.workflows.fleet import open_warehouse
from tests.installation import PROJECT, Installation, install

pytestmark = pytest.mark.integration
MADE_AT = "/work/tmp-operate/lake1/data_lake/"
"""Where the first release had the lake: MLflow keeps whole paths of artifacts."""
COUNTED = (FEATURES.name, "raw_rajaperf__timings", "raw_profiles__counters")


@pytest.fixture
def old(tmp_path: Path) -> Installation:
    made = install(tmp_path / "site")
    with tarfile.open(PROJECT / "tests" / "data" / "first_release" / "lake.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "data_lake").rename(made.lake.root)
    places = {f"file://{MADE_AT}": f"{made.lake.root.as_uri()}/", MADE_AT: f"{made.lake.root}/"}
    move_sqlite_places(made.lake.root / "mlflow" / "mlflow.db", places)
    return made


def counts(query: "duckdb.DuckDBPyConnection") -> dict[str, list[tuple[str, int]]]:
    return {
        table: query.execute(f"SELECT machine, count(*) FROM {table} GROUP BY machine ORDER BY machine").fetchall()
        for table in COUNTED
    }


def test_a_lake_of_the_first_release_is_read(old: Installation) -> None:
    with duckdb.connect(old.lake.warehouse, read_only=True) as connection:
        before = counts(connection)
    assert [machine for machine, _ in before[FEATURES.name]] == ["quartz", "ruby"]
    asked = ("predict", "--from", "quartz", "--to", "ruby", "--app", "Laghos", "--no-measured")
    for command in (asked, ("plan", "quartz"), ("environments", "quartz"), ("report",)):
        early = old.run(*command)
        assert early.returncode == 2, early.stderr
        line = early.stderr.strip().splitlines()[-1]
        assert "is of another release: run 'perf-assets ingest', which makes it anew from the record" in line
    assert early.stdout == "", "no page without data"
    assert "perf-assets train" not in early.stderr
    ingested = old.run("ingest")
    assert ingested.returncode == 0, ingested.stderr
    with open_warehouse(old.lake).read() as connection:
        assert counts(connection) == before, "nothing of the record is lost"
    assert "train" in old.run(*asked).stderr, "there are no source models yet, and that is all"
    assert old.json("models")["models"][0]["name"] == "perf-target-cedar"
    stale = old.run("plan", "cedar")
    assert stale.returncode == 2
    assert "version 1 was stored by another version of perf_assets" in stale.stderr
    assert "run 'perf-assets adapt --machine cedar'" in stale.stderr
