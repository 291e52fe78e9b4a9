"""From the landing zone to the record, one machine at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow.compute as pc

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import Manifest, utc_naive
from perf_assets.storage.files import exclusive
from perf_assets.storage.lake import Lake, LandedBundle, landed_digests
from perf_assets.storage.landing import verified_manifest
from perf_assets.storage.quarantine import quarantine, release
from perf_assets.storage.record import Batch, MachineRecord

_BUNDLES_PER_COMMIT = 1000
_LOCK_WAIT_SECONDS = 600.0


class BundleContent(Protocol):
    """What a reader makes of a bundle."""

    @property
    def format(self) -> str:
        """Recognised file format."""

    @property
    def rows(self) -> Mapping[str, Iterable[dict[str, Any]]]:
        """Rows by table name, gone through once; they may end with a `BadInputError`."""


ReadBundle = Callable[[Path, Manifest, str, str], BundleContent]
"""Reads the bundle in a folder, given its manifest, digest and name."""


@dataclass
class Pending:
    """What of a machine's landing zone is not in its record."""

    bundles: list[str]
    """Names of new, changed, and refused ones (whose files may have been mended)."""
    new_count: int
    """How many of them were never looked at."""
    landed_count: int
    """All complete bundles in the landing zone."""


@dataclass
class Ingestion:
    """Outcome of ingesting one machine."""

    machine: str
    landed_count: int = 0
    ingested_count: int = 0
    duplicate_count: int = 0
    quarantined_count: int = 0


def pending(lake: Lake, machine: str) -> Pending:
    """What is to be ingested for a machine."""
    ledger = MachineRecord(lake.record, machine).ledger(["bundle", "bundle_digest", "status"])
    known = dict(zip(ledger["bundle"].to_pylist(), ledger["bundle_digest"].to_pylist(), strict=True))
    refused = set(ledger.filter(pc.field("status") == "quarantined")["bundle"].to_pylist())
    todo = Pending([], 0, 0)
    for name, digest in landed_digests(lake, machine):
        is_new = known.get(name) != digest
        todo.landed_count += 1
        todo.new_count += is_new
        if is_new or name in refused:
            todo.bundles.append(name)
    return todo


def ingest_machine(
    lake: Lake,
    machine: str,
    read_bundle: ReadBundle,
    on_bundle: Callable[[int, int], None] = lambda done, total: None,
) -> Ingestion:
    """Bring a machine's record up to date with its landing zone.

    `on_bundle` is told after each bundle how many of how many are done. A bundle that cannot be read is
    quarantined and the others go on.
    """
    with exclusive(lake.locks / f"{machine}.lock", f"ingestion of {machine}", _LOCK_WAIT_SECONDS):
        record = MachineRecord(lake.record, machine)
        todo = pending(lake, machine)
        outcome = Ingestion(machine, landed_count=todo.landed_count)
        for start in range(0, len(todo.bundles), _BUNDLES_PER_COMMIT):
            names = todo.bundles[start : start + _BUNDLES_PER_COMMIT]
            chunk = [LandedBundle(lake.landing / machine / name) for name in names]
            batch, rows = record.batch(), []
            try:
                for row in _read_chunk(lake, machine, chunk, read_bundle, batch, record):
                    rows.append(row)
                    on_bundle(start + len(rows), len(todo.bundles))
            except BaseException:
                batch.discard()
                raise
            record.commit(rows, batch)
            for row in rows:
                _count(outcome, row)
    return outcome


def _read_chunk(
    lake: Lake,
    machine: str,
    chunk: list[LandedBundle],
    read_bundle: ReadBundle,
    batch: Batch,
    record: MachineRecord,
) -> Iterator[dict[str, Any]]:
    """Read bundles into the batch and yield their ledger rows."""
    names, digests = [bundle.name for bundle in chunk], [bundle.digest for bundle in chunk]
    earlier = record.ledger_rows(pc.field("bundle").isin(names))
    same = record.ledger_rows(pc.field("bundle_digest").isin(digests) & (pc.field("status") == "ingested"))
    holder_of = {row["bundle_digest"]: name for name, row in same.items()}
    for bundle in chunk:
        row: dict[str, Any] = {
            "machine": machine, "bundle": bundle.name, "bundle_digest": bundle.digest, "status": "ingested",
            "reason": None, "kind": None, "format": None, "app": None, "collected_at": None,
            "files_count": 0, "size_bytes": 0, "is_simulated": False,
        }  # fmt: skip
        try:
            manifest = verified_manifest(bundle, machine)
            row |= _facts(manifest)
            holder = holder_of.get(bundle.digest, bundle.name)
            if holder != bundle.name:
                row |= {"status": "duplicate", "record_part": None, "reason": f"same content as bundle {holder}"}
            else:
                content = read_bundle(bundle.directory, manifest, bundle.digest, bundle.name)
                row["format"] = content.format
                batch.add(bundle.digest, content.rows)
                holder_of[bundle.digest] = bundle.name
            release(lake, machine, bundle)
        except BadInputError as error:
            quarantine(lake, machine, bundle, str(error))
            row = _refused(row, earlier.get(bundle.name), str(error))
        yield row


def _facts(manifest: Manifest) -> dict[str, Any]:
    return {
        "kind": manifest.kind,
        "app": manifest.app,
        "collected_at": utc_naive(manifest.collected_at),
        "files_count": len(manifest.files),
        "size_bytes": manifest.size_bytes,
        "is_simulated": manifest.is_simulated,
    }


def _refused(row: dict[str, Any], earlier: Mapping[str, Any] | None, reason: str) -> dict[str, Any]:
    """Ledger row of a refused bundle: good rows of an earlier version stay."""
    if earlier is not None and earlier["status"] == "ingested":
        return dict(earlier) | {"reason": f"a newer version was refused: {reason}"}
    return row | {"status": "quarantined", "record_part": None, "reason": reason}


def _count(outcome: Ingestion, row: Mapping[str, Any]) -> None:
    if row["status"] == "duplicate":
        outcome.duplicate_count += 1
    elif row["reason"] is not None:
        outcome.quarantined_count += 1
    else:
        outcome.ingested_count += 1
