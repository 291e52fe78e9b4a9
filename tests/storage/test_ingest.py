"""From landing zone to warehouse: each bundle once, supersession, quarantine, rebuilding, parallel machines."""

import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perf_assets.core.errors import BadInputError, BusyError, UnreadableFileError
from perf_assets.core.manifest import Manifest
from perf_assets.core.tables.landing import COUNTERS, RECORD_TABLES, RUNS, TABLES
from perf_assets.infra.locks import exclusive
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import LIMITS, MachineRecord, RecordLimits, Snapshot
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine, pending
from tests.conftest import profile_facts
from tests.storage.conftest import Content, land_counters, read_counters


def counters(lake: Lake) -> dict[tuple[str, str], float]:
    """Value by bundle and counter."""
    rows = Warehouse(lake).frame(f"SELECT bundle, counter, value_sum FROM {COUNTERS.name}")
    return {(row.bundle, row.counter): row.value_sum for row in rows.itertuples()}


def whole(lake: Lake) -> dict[str, pd.DataFrame]:
    """All tables, row by row in stored order, without where the record keeps them."""
    warehouse = Warehouse(lake)
    frames = {table.name: warehouse.frame(f'SELECT * FROM "{table.name}" ORDER BY ALL') for table in TABLES}
    frames["raw_landing__bundles"] = frames["raw_landing__bundles"].drop(columns="record_part")
    return frames


def ingest(lake: Lake, machine: str = "quartz", limits: RecordLimits = LIMITS) -> tuple[int, int, int]:
    outcome = ingest_machine(lake, machine, read_counters, limits=limits)
    Warehouse(lake).load_machine(machine)
    return outcome.ingested_count, outcome.duplicate_count, outcome.quarantined_count


def test_each_bundle_is_ingested_once(lake: Lake) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": 1, "CYC": 2})
    assert ingest(lake) == (1, 0, 0)
    assert ingest(lake) == (0, 0, 0)
    land_counters(lake, "b2", profile_facts(), {"INS": 3})
    assert ingest(lake) == (1, 0, 0)
    assert counters(lake) == {("b1", "INS"): 1, ("b1", "CYC"): 2, ("b2", "INS"): 3}


def test_changed_content_supersedes_and_may_change_back(lake: Lake) -> None:
    land_counters(lake, "other", profile_facts(), {"INS": 5})
    land_counters(lake, "b1", profile_facts(), {"INS": 1, "CYC": 2})
    ingest(lake)
    land_counters(lake, "b1", profile_facts(), {"INS": 9})
    ingest(lake)
    assert counters(lake) == {("b1", "INS"): 9, ("other", "INS"): 5}
    land_counters(lake, "b1", profile_facts(), {"INS": 1, "CYC": 2})
    ingest(lake)
    assert counters(lake) == {("b1", "INS"): 1, ("b1", "CYC"): 2, ("other", "INS"): 5}


def test_the_same_content_under_two_names_counts_once(lake: Lake) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    land_counters(lake, "b2", profile_facts(), {"INS": 1})
    assert ingest(lake) == (1, 1, 0)
    assert counters(lake) == {("b1", "INS"): 1}
    assert pending(lake, "quartz").bundles == []


def test_a_bad_bundle_is_quarantined_and_the_others_go_on(lake: Lake) -> None:
    land_counters(lake, "good", profile_facts(), {"INS": 1})
    bad = land_counters(lake, "bad", profile_facts(), {"INS": 2}).bundle
    (bad.directory / "counters.json").write_text("{")
    assert ingest(lake) == (1, 0, 1)
    note = json.loads((lake.quarantine / "quartz" / "bad" / "reason.json").read_bytes())
    assert "land it again" in note["reason"]
    assert counters(lake) == {("good", "INS"): 1}
    (bad.directory / "counters.json").write_text('{"INS": 2}')
    assert ingest(lake) == (1, 0, 0)
    assert not (lake.quarantine / "quartz" / "bad").exists()


def read_half(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
    """The rows of a bundle; those of one named `bad` end with an error after some were made."""
    content = read_counters(directory, manifest, digest, name)

    def rows() -> Iterator[dict[str, Any]]:
        yield from content.rows[COUNTERS.name]
        if name == "bad":
            raise UnreadableFileError("counters.json turned out to be bad: write it again")

    return Content("test", {RUNS.name: content.rows[RUNS.name], COUNTERS.name: rows()})


@pytest.mark.slow
@pytest.mark.parametrize("rows_in_memory", [1, 2, 5000])
def test_a_bundle_that_turns_out_bad_half_way_leaves_no_rows(lake: Lake, rows_in_memory: int) -> None:
    limits = RecordLimits(rows_in_memory=rows_in_memory, rows_in_group=rows_in_memory)
    land_counters(lake, "a", profile_facts(), {"INS": 1, "CYC": 2, "L2": 3})
    land_counters(lake, "bad", profile_facts(), {"INS": 4, "CYC": 5, "L2": 6})
    land_counters(lake, "c", profile_facts(), {"INS": 7})
    outcome = ingest_machine(lake, "quartz", read_half, limits=limits)
    Warehouse(lake).load_machine("quartz")
    assert (outcome.ingested_count, outcome.quarantined_count) == (2, 1)
    good = {("a", "INS"): 1, ("a", "CYC"): 2, ("a", "L2"): 3, ("c", "INS"): 7}
    assert counters(lake) == good
    assert "turned out to be bad" in (lake.quarantine / "quartz" / "bad" / "reason.json").read_text()
    assert len(Warehouse(lake).frame(f"SELECT * FROM {RUNS.name}")) == 2
    land_counters(lake, "d", profile_facts(), {"INS": 8})
    ingest_machine(lake, "quartz", read_half, limits=replace(limits, parts=0))
    Warehouse(lake).load_machine("quartz")
    assert counters(lake) == good | {("d", "INS"): 8}
    assert ingest(lake) == (0, 0, 0), "as it stands it was refused"
    assert ingest_machine(lake, "quartz", read_counters, reread=True).ingested_count == 4
    Warehouse(lake).load_machine("quartz")
    assert counters(lake)[("bad", "L2")] == 6


def test_a_bad_new_version_leaves_the_old_rows(lake: Lake) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    ingest(lake)
    newer = land_counters(lake, "b1", profile_facts(), {"INS": 2}).bundle
    (newer.directory / "counters.json").write_text("{")
    assert ingest(lake) == (0, 0, 1)
    assert counters(lake) == {("b1", "INS"): 1}
    assert (lake.quarantine / "quartz" / "b1" / "reason.json").is_file()


def test_changed_refused_and_changed_back_is_clean_again(lake: Lake) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    ingest(lake)
    newer = land_counters(lake, "b1", profile_facts(), {"INS": 2}).bundle
    (newer.directory / "counters.json").write_text("{")
    assert ingest(lake) == (0, 0, 1)
    assert ingest(lake) == (0, 0, 0), "as it stands it was refused"
    assert MachineRecord(lake.record, "quartz").refusals().keys() == {"b1"}
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    assert ingest(lake) == (1, 0, 0)
    assert MachineRecord(lake.record, "quartz").refusals() == {}
    assert not (lake.quarantine / "quartz" / "b1").exists()


def test_a_renamed_bundle_keeps_its_rows_when_its_name_is_used_again(lake: Lake) -> None:
    first = land_counters(lake, "run", profile_facts(), {"INS": 1}).bundle
    ingest(lake)
    first.directory.rename(first.directory.with_name("run-old"))
    land_counters(lake, "run", profile_facts(), {"INS": 2})
    assert ingest(lake) == (2, 0, 0)
    assert counters(lake) == {("run", "INS"): 2, ("run-old", "INS"): 1}


def test_a_duplicate_takes_over_when_its_original_changes(lake: Lake) -> None:
    land_counters(lake, "a", profile_facts(), {"INS": 1})
    land_counters(lake, "b", profile_facts(), {"INS": 1})
    assert ingest(lake) == (1, 1, 0)
    land_counters(lake, "a", profile_facts(), {"INS": 2})
    assert ingest(lake) == (2, 0, 0)
    assert counters(lake) == {("a", "INS"): 2, ("b", "INS"): 1}


def read_poison(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
    """Like `read_counters`, but bundles named poison have a count that no column can hold."""
    content = read_counters(directory, manifest, digest, name)
    if name.startswith("poison"):
        content.rows[RUNS.name][0]["ranks"] = 2**70
    return content


def test_a_value_that_cannot_be_stored_refuses_its_bundle_alone(lake: Lake) -> None:
    for name in ("a", "b", "poison", "x", "y", "z"):
        land_counters(lake, name, profile_facts(), {"INS": ord(name[0])})
    outcome = ingest_machine(lake, "quartz", read_poison)
    assert (outcome.ingested_count, outcome.quarantined_count) == (5, 1)
    Warehouse(lake).load_machine("quartz")
    assert sorted(bundle for bundle, _ in counters(lake)) == ["a", "b", "x", "y", "z"]
    assert "cannot be stored" in MachineRecord(lake.record, "quartz").refusals()["poison"]


def test_what_newer_readers_make_of_the_same_bundles_is_loaded(lake: Lake) -> None:
    land_counters(lake, "a", profile_facts(), {"INS": 1})
    ingest(lake)

    def read_doubled(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
        content = read_counters(directory, manifest, digest, name)
        content.rows[COUNTERS.name][0]["value_sum"] *= 2
        return content

    ingest_machine(lake, "quartz", read_doubled, reread=True)
    Warehouse(lake).load_machine("quartz")
    assert counters(lake) == {("a", "INS"): 2}


def test_a_linked_machine_folder_is_not_followed(lake: Lake, tmp_path: Path) -> None:
    elsewhere = Lake(tmp_path / "elsewhere")
    land_counters(elsewhere, "b1", profile_facts(), {"INS": 1})
    lake.landing.mkdir(parents=True)
    (lake.landing / "quartz").symlink_to(elsewhere.landing / "quartz")
    assert lake.machines() == []
    assert ingest_machine(lake, "quartz", read_counters).landed_count == 0


def test_a_commit_during_a_load_is_not_lost(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    land_counters(lake, "a", profile_facts(), {"INS": 1})
    ingest_machine(lake, "quartz", read_counters)
    snapshot = MachineRecord.snapshot
    taken = []

    def snapshot_then_commit(self: MachineRecord) -> Snapshot:
        found = snapshot(self)
        if not taken:
            taken.append(found.digest)
            land_counters(lake, "a", profile_facts(), {"INS": 5})
            land_counters(lake, "b", profile_facts(), {"INS": 2})
            ingest_machine(lake, "quartz", read_counters)
        return found

    monkeypatch.setattr(MachineRecord, "snapshot", snapshot_then_commit)
    Warehouse(lake).load_machine("quartz")
    assert taken
    assert counters(lake) == {("a", "INS"): 5, ("b", "INS"): 2}


def test_columns_that_are_gone_are_left_behind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    land_counters(lake, "a", profile_facts(), {"INS": 1})
    ingest(lake)
    for part in (lake.record / COUNTERS.name).rglob("*.parquet"):
        rows = pq.read_table(part, partitioning=None)
        pq.write_table(rows.append_column("gone", pa.array([1.0] * len(rows))), part)
    with duckdb.connect(str(lake.warehouse)) as connection:
        connection.execute(f"ALTER TABLE {COUNTERS.name} ADD COLUMN gone DOUBLE")
    monkeypatch.setattr("perf_assets.storage.warehouse.vocabulary_digest", lambda: "newer")
    Warehouse(lake).load_machine("quartz")
    assert counters(lake) == {("a", "INS"): 1}
    assert list(Warehouse(lake).frame(f"SELECT * FROM {COUNTERS.name}").columns) == COUNTERS.column_names()


def test_a_damaged_ledger_is_one_clear_line(lake: Lake) -> None:
    land_counters(lake, "a", profile_facts(), {"INS": 1})
    ingest(lake)
    MachineRecord(lake.record, "quartz").ledger_file().write_bytes(b"PAR1 nonsense")
    with pytest.raises(BadInputError, match=r"ledger\.parquet is damaged"):
        pending(lake, "quartz")


@pytest.mark.slow
def test_parts_are_merged_and_dead_ones_removed(lake: Lake) -> None:
    for number in range(8):
        land_counters(lake, f"b{number}", profile_facts(), {"INS": number})
        land_counters(lake, "changing", profile_facts(), {"INS": 100 + number})
        ingest(lake, limits=RecordLimits(parts=3))
    assert counters(lake) == {(f"b{n}", "INS"): n for n in range(8)} | {("changing", "INS"): 107}
    files = list((lake.record / COUNTERS.name / "machine=quartz").iterdir())
    assert len(files) <= 3
    assert sorted(files) == MachineRecord(lake.record, "quartz").live_parts(COUNTERS)


@pytest.mark.slow
def test_rebuilding_from_the_record_alone_gives_the_same_warehouse(lake: Lake) -> None:
    for machine in ("quartz", "ruby"):
        land_counters(lake, "b1", profile_facts(machine), {"INS": 1, "CYC": 2})
        ingest(lake, machine)
        land_counters(lake, "b1", profile_facts(machine), {"INS": 3})
        land_counters(lake, "b2", profile_facts(machine), {"INS": 4})
        ingest(lake, machine)
    before = whole(lake)
    lake.landing.rename(lake.root / "elsewhere")
    lake.warehouse.unlink()
    Warehouse(lake).rebuild()
    after = whole(lake)
    assert sum(map(len, after.values())) == 2 * (2 + 2 + 2)
    for name, frame in before.items():
        pd.testing.assert_frame_equal(frame, after[name])


def test_a_changed_vocabulary_rebuilds_the_warehouse(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    ingest(lake)
    monkeypatch.setattr("perf_assets.storage.warehouse.vocabulary_digest", lambda: "newer")
    land_counters(lake, "b1", profile_facts("ruby"), {"INS": 2})
    ingest(lake, "ruby")
    assert len(Warehouse(lake).frame(f"SELECT * FROM {COUNTERS.name}")) == 2


def _ingest_elsewhere(root: Path, machine: str) -> None:
    ingest(Lake(root), machine)


@pytest.mark.slow
def test_two_processes_ingest_two_machines_at_once(lake: Lake) -> None:
    machines = ["quartz", "ruby"]
    for machine in machines:
        for number in range(50):
            land_counters(lake, f"b{number}", profile_facts(machine), {"INS": number, "CYC": 2 * number})
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_ingest_elsewhere, args=(lake.root, machine)) for machine in machines]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    counts = Warehouse(lake).frame(f"SELECT machine, count(*) AS n FROM {COUNTERS.name} GROUP BY 1 ORDER BY 1")
    assert counts.to_dict("list") == {"machine": machines, "n": [100, 100]}


def _read_for_a_while(root: Path, seconds: float) -> None:
    with Warehouse(Lake(root)).read():
        (root / "reading").touch()
        time.sleep(seconds)


@pytest.mark.slow
def test_a_writer_waits_for_readers_and_gives_up_with_one_line(lake: Lake) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    ingest(lake)
    land_counters(lake, "b2", profile_facts(), {"INS": 2})
    ingest_machine(lake, "quartz", read_counters)
    reader = multiprocessing.get_context("spawn").Process(target=_read_for_a_while, args=(lake.root, 2.0))
    reader.start()
    while not (lake.root / "reading").exists():
        time.sleep(0.01)
    with pytest.raises(BusyError, match="close what reads it"):
        Warehouse(lake, wait_seconds=0.2).load_machine("quartz")
    Warehouse(lake).load_machine("quartz")
    reader.join()
    assert counters(lake) == {("b1", "INS"): 1, ("b2", "INS"): 2}


def test_a_lock_that_stays_held_is_one_clear_line(lake: Lake) -> None:
    lock = lake.locks / "quartz.lock"
    with (
        exclusive(lock, "ingestion of quartz", 1),
        pytest.raises(BusyError, match=r"ingestion of quartz is busy: process \d+"),
        exclusive(lock, "ingestion of quartz", 0.1),
    ):
        pass


def test_reading_without_a_warehouse_says_what_to_do(lake: Lake) -> None:
    with pytest.raises(BadInputError, match="run 'perf-assets ingest'"):
        Warehouse(lake).frame("SELECT 1")


def test_checks_find_each_kind_of_violation(lake: Lake) -> None:
    land_counters(lake, "b1", profile_facts(), {"INS": float("nan")})
    land_counters(lake, "b2", profile_facts(), {"INS": 1})
    ingest(lake)
    warehouse = Warehouse(lake)
    found = {violation.rule: violation for violation in warehouse.violations(COUNTERS, "quartz")}
    assert found["value_sum: present, finite"].row_count == 1
    assert "b1" in found["value_sum: present, finite"].example

    with duckdb.connect(str(lake.warehouse)) as connection:
        connection.execute(f"INSERT INTO {COUNTERS.name} SELECT * FROM {COUNTERS.name} WHERE bundle = 'b2'")
        connection.execute(f"ALTER TABLE {COUNTERS.name} ALTER unit TYPE INTEGER USING 1")
    rules = [violation.rule for violation in warehouse.violations(COUNTERS, "quartz")]
    assert "key (machine, bundle, run, counter) is unique" in rules
    assert "column unit" in rules
    assert warehouse.violations(RECORD_TABLES[1], "quartz") == []
