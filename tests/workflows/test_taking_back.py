"""Bundles, machines and names that are taken back, and what becomes of their rows."""

import json
from pathlib import Path

import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.landing.ingest import ingest_machine, pending
from perf_assets.workflows.landing.taking_back import bundle_machine, forget, rename, withdraw
from tests.workflows.little_datasets import land_table, runs


def ingested(lake: Lake, machine: str) -> None:
    """Bring record and warehouse up to date."""
    ingest_machine(lake, machine, read_bundle)
    warehouse = Fleet(lake).warehouse
    warehouse.load_machine(machine)
    warehouse.derive_machine(machine)


def table(rows: int, seed: int) -> pd.DataFrame:
    named = {"app": "own", "args": [f"--size {seed}{row}" for row in range(rows)], "threads": 1}
    return runs(rows, seed, 9.0).drop(columns="solver").assign(**named).rename(columns={"seconds": "wall_seconds"})


def counted(lake: Lake, machine: str) -> int:
    query = "SELECT count(*) AS n FROM raw_profiles__runs WHERE machine = ?"
    return int(Fleet(lake).warehouse.frame(query, [machine])["n"].iloc[0])


@pytest.fixture
def landed(lake: Lake) -> Lake:
    """A lake with two tables of one machine."""
    for seed in (1, 2):
        land_table(lake, table(4, seed), "dnae", "wall_seconds")
    ingested(lake, "dnae")
    assert counted(lake, "dnae") == 8
    return lake


def names(lake: Lake, machine: str) -> list[str]:
    return sorted(path.name for path in (lake.landing / machine).iterdir())


def test_a_withdrawn_bundle_counts_no_more_and_the_record_says_who_and_why(landed: Lake) -> None:
    first, second = names(landed, "dnae")
    machine = bundle_machine(landed, first)
    assert withdraw(landed, machine, first, "threads are wrong") == [first]
    ingested(landed, machine)
    assert counted(landed, machine) == 4
    rows = {row["bundle"]: row for row in MachineRecord(landed.record, machine).ledger().to_pylist()}
    assert rows[first]["status"] == "withdrawn"
    assert rows[first]["reason"].endswith(": threads are wrong")
    assert rows[second]["status"] == "ingested"
    assert MachineRecord(landed.record, machine).refusals() == {}
    # It is not read again, not even where everything is.
    assert pending(landed, machine).bundles == []
    assert pending(landed, machine, reread=True).bundles == [second]
    (note,) = map(json.loads, (landed.root / "withdrawn" / "log.jsonl").read_text().splitlines())
    assert (note["what"], note["why"], note["bundles"]) == ("withdraw", "threads are wrong", [first])
    with pytest.raises(BadInputError, match="is withdrawn already"):
        withdraw(landed, machine, first, "again")


def test_a_bundle_that_nobody_has_is_guessed(landed: Lake) -> None:
    first, _ = names(landed, "dnae")
    with pytest.raises(BadInputError, match=f"did you mean {first}"):
        bundle_machine(landed, f"{first}x")


def test_a_forgotten_machine_is_nowhere_and_nothing_is_lost(landed: Lake) -> None:
    files = names(landed, "dnae")
    folder = forget(landed, "dnae", "a typo")
    Fleet(landed).warehouse.forget_machine("dnae")
    assert landed.machines() == []
    assert counted(landed, "dnae") == 0
    assert Fleet(landed).machines_with_counters() == []
    assert sorted(path.name for path in (folder / "landing" / "dnae").iterdir()) == files
    assert any((folder / "record").rglob("*.parquet"))
    with pytest.raises(BadInputError, match="has nothing in"):
        forget(landed, "dnae", "again")


def test_a_renamed_machine_joins_the_one_that_it_is(landed: Lake, tmp_path: Path) -> None:
    land_table(landed, table(4, 3), "dane", "wall_seconds")
    assert rename(landed, "dnae", "dane", "a typo") == 2
    ingested(landed, "dane")
    forget(landed, "dnae", "renamed")
    assert counted(landed, "dane") == 12
    assert landed.machines() == ["dane"]
    with pytest.raises(BadInputError, match=r"nothing of 'dnae' is in .*: did you mean dane"):
        rename(landed, "dnae", "dane", "again")
