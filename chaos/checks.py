"""What must hold of a lake when all is quiet again. Each check gives one line for everything that is wrong."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

from chaos.expected import Expected, Fate, Rows
from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.core.tables.landing import RECORD_TABLES, SPECS
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord
from perf_assets.storage.warehouse import Warehouse

_COUNTED = [table for table in RECORD_TABLES if table is not SPECS]
"""Of data sheets the warehouse keeps the newest alone."""
_LEFT = (".*.tmp", ".incoming-*", ".superseded-*", ".*.old", ".warehouse.building.*", "*.tmp")
"""Names of what is being written."""
_Counts = Mapping[str, Mapping[str, int]]
"""Rows by bundle and table."""


def bundles(lake: Lake, expected: Expected) -> Iterator[str]:
    """Every good bundle is in the record and in the warehouse, exactly once, with all its rows; nothing else is."""
    unknown = set(lake.machines()) - set(expected.machines())
    yield from (f"machine {machine}: nobody landed anything for it" for machine in sorted(unknown))
    for machine in expected.machines():
        fates = expected.of_machine(machine)
        ledger = {row["bundle"]: row for row in MachineRecord(lake.record, machine).ledger().to_pylist()}
        yield from (f"{machine}/{name}: in the record, but it never landed" for name in sorted(ledger.keys() - fates))
        yield from _ledger(machine, fates, ledger)
        held = {name: expected.rows[digest] for name, digest in _holders(fates, ledger).items()}
        yield from _differences(f"{machine}: record", held, _in_record(lake, machine))
        yield from _differences(f"{machine}: warehouse", held, _in_warehouse(lake, machine))


def _ledger(machine: str, fates: Mapping[str, Fate], ledger: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    ingested = Counter(row["bundle_digest"] for row in ledger.values() if row["status"] == "ingested")
    for name, fate in sorted(fates.items()):
        row = ledger.get(name)
        if row is None:
            yield f"{machine}/{name}: landed, but not in the record"
        elif fate.digest is None and row["status"] != "quarantined":
            yield f"{machine}/{name}: {row['status']}, though it is bad ({fate.why})"
        elif fate.digest is not None and (row["status"] == "quarantined" or row["bundle_digest"] != fate.digest):
            told = row["reason"] or f"another version, {row['bundle_digest'][:8]}"
            yield f"{machine}/{name}: good, but {row['status']}: {told}"
        elif fate.digest is not None and ingested[fate.digest] != 1:
            yield f"{machine}/{name}: its content is in the record {ingested[fate.digest]} times"


def _holders(fates: Mapping[str, Fate], ledger: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Digests by name of the bundles whose rows must be there: of several with the same content, one."""
    wanted = {name: fate.digest for name, fate in fates.items() if fate.digest is not None}
    return {
        name: digest for name, digest in wanted.items() if ledger.get(name, {}).get("status", "ingested") == "ingested"
    }


def _in_record(lake: Lake, machine: str) -> _Counts:
    """Rows of bundles in the parts that the ledger names for them."""
    snapshot = MachineRecord(lake.record, machine).snapshot()
    part_of = dict(zip(*(snapshot.ledger[column].to_pylist() for column in ("bundle", "record_part")), strict=True))
    found: dict[str, Counter[str]] = {}
    for table in _COUNTED:
        for part in snapshot.parts.get(table.name, []):
            names = Counter(pq.read_table(part, columns=["bundle"], partitioning=None)["bundle"].to_pylist())
            for name, count in names.items():
                if part_of.get(name) == part.stem:
                    found.setdefault(name, Counter())[table.name] += count
    return found


def _in_warehouse(lake: Lake, machine: str) -> _Counts:
    found: dict[str, Counter[str]] = {}
    for table in _COUNTED:
        query = f'SELECT bundle, count(*) AS n FROM "{table.name}" WHERE machine = ? GROUP BY bundle'
        rows = Warehouse(lake).frame(query, [machine])
        for name, count in zip(rows["bundle"], rows["n"], strict=True):
            found.setdefault(name, Counter())[table.name] = int(count)
    return found


def _differences(place: str, wanted: Mapping[str, Rows], found: _Counts) -> Iterator[str]:
    for name in sorted(wanted.keys() | found.keys()):
        for table in _COUNTED:
            should = wanted.get(name, {}).get(table.name, 0)
            has = found.get(name, {}).get(table.name, 0)
            if should != has:
                yield f"{place} has {has} rows of {name} in {table.name}, not {should}"


def quarantine(lake: Lake, expected: Expected) -> Iterator[str]:
    """Each bad bundle is there with one line that says what is wrong; no good one is."""
    noted = {file.parent.relative_to(lake.quarantine): file for file in lake.quarantine.glob("*/*/reason.json")}
    seen = {(path.parts[0], path.parts[1]): file for path, file in noted.items()}
    with expected.lock:
        fates = dict(expected.fates)
    for key, fate in sorted(fates.items()):
        shown = "/".join(key)
        if fate.is_refused and key not in seen:
            yield f"{shown}: bad ({fate.why}), but not in quarantine"
        elif fate.is_refused:
            reason = str(json.loads(seen[key].read_bytes()).get("reason", ""))
            if not reason.strip() or len(reason.splitlines()) != 1:
                yield f"{shown}: the quarantine does not say in one line what is wrong: {reason!r}"
        elif key in seen:
            yield f"{shown}: good, but in quarantine: {json.loads(seen[key].read_bytes()).get('reason')}"
    yield from (f"{'/'.join(key)}: in quarantine, but it never landed" for key in sorted(seen.keys() - fates.keys()))


def locks(lake: Lake) -> Iterator[str]:
    """Nobody holds a lock, and each can be taken at once."""
    for lock in sorted(lake.locks.glob("*.lock")):
        try:
            with leased(lock, lock.stem, wait_seconds=0):
                pass
        except BusyError as error:
            yield str(error)


def leftovers(lake: Lake) -> Iterator[str]:
    """No file or folder is left of something that did not come to its end."""
    for pattern in _LEFT:
        yield from (f"left behind: {path.relative_to(lake.root)}" for path in sorted(lake.root.rglob(pattern)))


def in_lines(check: Iterator[str]) -> list[str]:
    """What a check finds; what it cannot look at is a finding."""
    found: list[str] = []
    try:
        found.extend(check)
    except (BadInputError, OSError, ValueError) as error:
        found.append(f"could not be looked at: {type(error).__name__}: {error}")
    return list(dict.fromkeys(found))
