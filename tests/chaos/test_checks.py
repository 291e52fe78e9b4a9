"""Each check of `make chaos` is content with a lake that is well, and finds what is really broken."""

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from chaos import checks
from chaos.corruption import WAYS, corrupt
from chaos.expected import Expected
from perf_assets.core.tables.landing import COUNTERS, RUNS
from perf_assets.infra.leases import leased
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.defs.conftest import land_perf_stat

MACHINE, GOOD, BAD = "quartz", "b1", "b0"


def ingest(lake: Lake) -> None:
    ingest_machine(lake, MACHINE, read_bundle)
    Warehouse(lake).load_machine(MACHINE)


@pytest.fixture
def expected(lake: Lake) -> Expected:
    """Three bundles have landed, one of which was spoiled before all were ingested."""
    made = Expected()
    for number in range(3):
        made.landed(land_perf_stat(lake, MACHINE, f"b{number}", number).bundle)
    corrupt(lake, made, (MACHINE, BAD), "cut short", random.Random(0))
    ingest(lake)
    return made


def found(lake: Lake, expected: Expected) -> list[str]:
    return checks.in_lines(checks.bundles(lake, expected))


def noted(lake: Lake, bundle: str) -> Path:
    return lake.quarantine / MACHINE / bundle / "reason.json"


def rewrite_ledger(lake: Lake, ledger: pa.Table) -> None:
    pq.write_table(ledger, MachineRecord(lake.record, MACHINE).ledger_file())


def ledger_of(lake: Lake) -> pa.Table:
    return MachineRecord(lake.record, MACHINE).ledger()


def test_a_lake_that_is_well(lake: Lake, expected: Expected) -> None:
    assert found(lake, expected) == []
    for check in (checks.quarantine(lake, expected), checks.locks(lake), checks.leftovers(lake)):
        assert checks.in_lines(check) == []
    assert expected.counts() == (2, 1)


def test_a_missing_bundle(lake: Lake, expected: Expected) -> None:
    expected.landed(land_perf_stat(lake, MACHINE, "late", 7).bundle)
    assert f"{MACHINE}/late: landed, but not in the record" in found(lake, expected)


def test_rows_that_are_missing_or_doubled_in_the_warehouse(lake: Lake, expected: Expected) -> None:
    warehouse = Warehouse(lake)
    with warehouse._transaction() as connection:
        connection.execute(f"DELETE FROM {RUNS.name} WHERE bundle = '{GOOD}'")
    assert found(lake, expected) == [f"{MACHINE}: warehouse has 0 rows of {GOOD} in {RUNS.name}, not 1"]
    with warehouse._transaction() as connection:
        connection.execute(f"INSERT INTO {RUNS.name} SELECT * REPLACE ('{GOOD}' AS bundle) FROM {RUNS.name}")
        connection.execute(f"INSERT INTO {RUNS.name} SELECT * REPLACE ('x' AS run) FROM {RUNS.name}")
    assert f"{MACHINE}: warehouse has 2 rows of {GOOD} in {RUNS.name}, not 1" in found(lake, expected)


def test_rows_that_are_doubled_in_the_record(lake: Lake, expected: Expected) -> None:
    (part,) = MachineRecord(lake.record, MACHINE).live_parts(COUNTERS)
    rows = pq.read_table(part, partitioning=None)
    pq.write_table(pa.concat_tables([rows, rows]), part)
    assert any("record has 4 rows" in line and "not 2" in line for line in found(lake, expected))


def test_content_that_counts_twice(lake: Lake, expected: Expected) -> None:
    ledger = ledger_of(lake)
    row = ledger.filter(pc.field("bundle") == GOOD)
    copy = row.set_column(row.schema.get_field_index("bundle"), "bundle", pa.array(["copy"]))
    rewrite_ledger(lake, pa.concat_tables([ledger, copy]))
    lines = found(lake, expected)
    assert f"{MACHINE}/copy: in the record, but it never landed" in lines
    assert f"{MACHINE}/{GOOD}: its content is in the record 2 times" in lines


def test_a_bad_bundle_that_was_ingested(lake: Lake, expected: Expected) -> None:
    ledger = ledger_of(lake)
    position = ledger.schema.get_field_index("status")
    rewrite_ledger(lake, ledger.set_column(position, "status", pa.array(["ingested"] * len(ledger))))
    assert any(line.startswith(f"{MACHINE}/{BAD}: ingested, though it is bad") for line in found(lake, expected))


def test_a_good_bundle_that_was_refused_or_is_old(lake: Lake, expected: Expected) -> None:
    land_perf_stat(lake, MACHINE, GOOD, 99)
    expected.landed(land_perf_stat(lake, MACHINE, GOOD, 100).bundle)
    assert any(
        line.startswith(f"{MACHINE}/{GOOD}: good, but ingested: another version") for line in found(lake, expected)
    )
    ingest(lake)
    assert found(lake, expected) == []


def test_a_bad_file_that_nobody_explains(lake: Lake, expected: Expected) -> None:
    reason = json.loads(noted(lake, BAD).read_bytes())
    noted(lake, BAD).write_text(json.dumps(reason | {"reason": ""}))
    assert any("does not say in one line" in line for line in checks.quarantine(lake, expected))
    shutil.rmtree(noted(lake, BAD).parent)
    (line,) = checks.quarantine(lake, expected)
    assert line.startswith(f"{MACHINE}/{BAD}: bad")
    assert line.endswith("but not in quarantine")


def test_a_good_bundle_in_quarantine(lake: Lake, expected: Expected) -> None:
    shutil.copytree(noted(lake, BAD).parent, noted(lake, GOOD).parent)
    shutil.copytree(noted(lake, BAD).parent, noted(lake, "never").parent)
    lines = list(checks.quarantine(lake, expected))
    assert [line.partition(":")[0] for line in lines] == [f"{MACHINE}/{GOOD}", f"{MACHINE}/never"]


def test_a_held_lock(lake: Lake, expected: Expected) -> None:
    with leased(lake.locks / f"{MACHINE}.lock", "a test", 1.0):
        (line,) = checks.locks(lake)
    assert "is busy" in line


@pytest.mark.parametrize("left", [".ledger.parquet.0f.tmp", ".incoming-x/file", ".warehouse.building.duckdb"])
def test_what_was_left_behind(lake: Lake, expected: Expected, left: str) -> None:
    path = lake.landing / MACHINE / left
    path.parent.mkdir(exist_ok=True)
    path.write_text("half")
    (line,) = checks.in_lines(checks.leftovers(lake))
    assert left.partition("/")[0] in line


def test_a_warehouse_that_cannot_be_looked_at(lake: Lake, expected: Expected) -> None:
    lake.warehouse.unlink()
    (line,) = found(lake, expected)
    assert line.startswith("could not be looked at: BadInputError: no warehouse")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_ingested", [True, False])
def test_what_must_become_of_a_spoiled_bundle_does(lake: Lake, way: str, is_ingested: bool) -> None:
    expected = Expected()
    expected.landed(land_perf_stat(lake, MACHINE, GOOD, 1).bundle)
    expected.landed(land_perf_stat(lake, MACHINE, "other", 2).bundle)
    if is_ingested:
        ingest(lake)
    line = corrupt(lake, expected, (MACHINE, GOOD), way, random.Random(1))
    assert line.endswith(f"{way}, {'after' if is_ingested else 'before'} it was ingested")
    ingest(lake)
    assert found(lake, expected) == []
    assert list(checks.quarantine(lake, expected)) == []
    assert noted(lake, GOOD).is_file() == (not is_ingested or way == "manifest broken")
    expected.landed(land_perf_stat(lake, MACHINE, GOOD, 1).bundle)
    ingest(lake)
    assert found(lake, expected) == []
    assert list(checks.quarantine(lake, expected)) == []
