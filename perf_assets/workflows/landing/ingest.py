"""Ingestion from the landing zone to the record, one machine at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import Manifest, utc_naive
from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.leases import leased
from perf_assets.infra.profile import DaskProfile, current_profile
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake, LandedBundle, landed_digests
from perf_assets.storage.landing import verified_manifest
from perf_assets.storage.quarantine import is_refused, quarantine, release
from perf_assets.storage.record import LIMITS, Batch, MachineRecord, RecordLimits
from perf_assets.storage.warehouse import Warehouse

_FEW_BUNDLES = 100
"""Bundles that are read faster here than sent to workers."""
_BUNDLES_PER_TASK = 20
_LOCK_WAIT_SECONDS = 600.0
_STORAGE_ERRORS = (OverflowError, UnicodeError, pa.ArrowException)
"""Errors that values outside the columns' types raise, where no reader refused them."""
_UNKNOWN = {"bundle_digest": None}


class BundleContent(Protocol):
    """Rows that a reader makes of a bundle."""

    @property
    def format(self) -> str:
        """Recognised file format."""

    @property
    def rows(self) -> Mapping[str, Iterable[dict[str, Any]]]:
        """Rows by table name, gone through once; they may end with a `BadInputError`."""


ReadBundle = Callable[[Path, Manifest, str, str], BundleContent]
"""Reads the bundle in a folder, given its manifest, digest and name."""


@dataclass(frozen=True)
class Prepared:
    """A bundle that was verified and read elsewhere."""

    digest: str
    manifest: Manifest
    format: str
    rows: Mapping[str, list[dict[str, Any]]]


ReadAhead = Callable[[Sequence[LandedBundle]], Iterator[Prepared | None]]
"""Gives each of some bundles as it was read elsewhere, in order; None for one that was not."""


def one_by_one(bundles: Sequence[LandedBundle]) -> Iterator[Prepared | None]:
    """Read every bundle in this process, when its turn comes."""
    return iter([None] * len(bundles))


@dataclass
class Pending:
    """Bundles of a machine's landing zone that are still to be ingested."""

    bundles: list[str]
    """Names of new, changed, and refused ones (whose files may have been mended)."""
    new_count: int
    """Number of them that were never looked at."""
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


def pending(lake: Lake, machine: str, *, reread: bool = False) -> Pending:
    """Bundles to be ingested for a machine; with `reread`, everything that landed."""
    ledger = MachineRecord(lake.record, machine).ledger(["bundle", "bundle_digest", "status", "reason"]).to_pylist()
    rows = {row["bundle"]: row for row in ledger}
    landed = dict(landed_digests(lake, machine))
    new = {name for name, digest in landed.items() if rows.get(name, _UNKNOWN)["bundle_digest"] != digest}
    folder = lake.landing / machine
    new -= {
        name for name in new & rows.keys() if rows[name]["reason"] and is_refused(lake, LandedBundle(folder / name))
    }
    held = {row["bundle_digest"] for name, row in rows.items() if row["status"] == "ingested" and name not in new}
    again = {
        name
        for name, row in rows.items()
        if landed.get(name) == row["bundle_digest"] and row["reason"] and _is_unsettled(lake, folder / name, row, held)
    }
    withdrawn = {name for name, row in rows.items() if row["status"] == "withdrawn" and name not in new}
    wanted = landed.keys() - withdrawn if reread else new | again
    return Pending([name for name in landed if name in wanted], len(new), len(landed))


def needs_work(lake: Lake, warehouse: Warehouse, machine: str) -> bool:
    """Whether something of a machine is not in its record, or its record is not in the warehouse."""
    return bool(pending(lake, machine).bundles) or warehouse.is_behind(machine)


def _is_unsettled(lake: Lake, folder: Path, row: Mapping[str, Any], held: Set[str]) -> bool:
    """Whether to read a refused or duplicate bundle again although its manifest is unchanged."""
    if row["status"] == "withdrawn":
        return False
    if row["status"] == "duplicate":
        return row["bundle_digest"] not in held
    # As ingested, it was changed, refused, and changed back.
    return row["status"] == "ingested" or not is_refused(lake, LandedBundle(folder))


def ingest_machine(
    lake: Lake,
    machine: str,
    read_bundle: ReadBundle,
    on_bundle: Callable[[int, int], None] = lambda done, total: None,
    *,
    read_ahead: ReadAhead = one_by_one,
    reread: bool = False,
    limits: RecordLimits = LIMITS,
) -> Ingestion:
    """Bring a machine's record up to date with its landing zone.

    `on_bundle` is called after each bundle with how many of how many are done. A bundle that cannot be read is
    quarantined and the others go on. Only this process writes, also where others `read_ahead`.
    """
    with leased(lake.locks / f"{machine}.lock", f"ingestion of {machine}", _LOCK_WAIT_SECONDS) as lease:
        record = MachineRecord(lake.record, machine, lease.check, limits)
        record.tidy()
        todo = pending(lake, machine, reread=reread)
        work = _Work(lake, machine, read_bundle, read_ahead, record, set(todo.bundles))
        outcome = Ingestion(machine, landed_count=todo.landed_count)
        done = 0
        for start in range(0, len(todo.bundles), limits.bundles_per_commit):
            for row in work.ingest(todo.bundles[start : start + limits.bundles_per_commit]):
                done += 1
                on_bundle(done, len(todo.bundles))
                _count(outcome, row)
    return outcome


@dataclass
class _Work:
    """Ingesting one machine, some bundles at a time."""

    lake: Lake
    machine: str
    read_bundle: ReadBundle
    read_ahead: ReadAhead
    record: MachineRecord
    waiting: set[str]
    """Bundles whose rows in the record, if any, are about to change."""

    def ingest(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Read bundles and commit them together; their ledger rows."""
        chunk = [LandedBundle(self.lake.landing / self.machine / name) for name in names]
        batch = self.record.batch()
        try:
            rows = list(self._read(chunk, batch))
            self.record.commit(rows, batch)
        except _STORAGE_ERRORS as error:
            batch.discard()
            return self._ingest_apart(chunk, error)
        except BaseException:
            batch.discard()
            raise
        self.waiting -= set(names)
        return rows

    def _ingest_apart(self, chunk: list[LandedBundle], error: Exception) -> list[dict[str, Any]]:
        """Halve the chunk until the bundle is alone whose values no column can hold, and refuse that."""
        names = [bundle.name for bundle in chunk]
        if len(names) > 1:
            middle = len(names) // 2
            return [*self.ingest(names[:middle]), *self.ingest(names[middle:])]
        reason = f"holds a value that cannot be stored ({error}): correct it and land it again"
        earlier = self.record.ledger_rows(pc.field("bundle").isin(names))
        row = self._refuse(chunk[0], self._new_row(chunk[0]), earlier.get(names[0]), reason)
        self.record.commit([row], self.record.batch())
        return [row]

    def _read(self, chunk: list[LandedBundle], batch: Batch) -> Iterator[dict[str, Any]]:
        """Read bundles into the batch and yield their ledger rows."""
        names, digests = [bundle.name for bundle in chunk], [bundle.digest for bundle in chunk]
        earlier = self.record.ledger_rows(pc.field("bundle").isin(names))
        same = self.record.ledger_rows(pc.field("bundle_digest").isin(digests) & (pc.field("status") == "ingested"))
        holder_of = {row["bundle_digest"]: name for name, row in same.items() if name not in self.waiting}
        for bundle, ahead in zip(chunk, self.read_ahead(chunk), strict=True):
            row = self._new_row(bundle)
            prepared = ahead if ahead is not None and ahead.digest == bundle.digest else None
            try:
                manifest = prepared.manifest if prepared else verified_manifest(bundle, self.machine)
                row |= _facts(manifest)
                holder = holder_of.setdefault(bundle.digest, bundle.name)
                if holder != bundle.name:
                    row |= {"status": "duplicate", "record_part": None, "reason": f"same content as bundle {holder}"}
                else:
                    content = prepared or self.read_bundle(bundle.directory, manifest, bundle.digest, bundle.name)
                    row["format"] = content.format
                    batch.add(bundle.digest, content.rows)
                release(self.lake, bundle)
            except (BadInputError, FileNotFoundError) as error:
                if LandedBundle(bundle.directory).digest != bundle.digest:
                    # Superseded while it was being read: the new one's turn comes with the next ingestion.
                    continue
                is_verified = row["kind"] is not None
                if is_verified and not isinstance(error, BadInputError):
                    raise
                row = self._refuse(bundle, row, earlier.get(bundle.name), str(error))
                if not is_verified and self._is_mended(bundle):
                    release(self.lake, bundle)
            except (MemoryError, RecursionError) as error:
                reason = f"needs more memory than there is ({type(error).__name__}): split it and land it again"
                row = self._refuse(bundle, row, earlier.get(bundle.name), reason)
            yield row

    def _is_mended(self, bundle: LandedBundle) -> bool:
        """Whether somebody landed the same again while it was refused: then the next ingestion looks at it."""
        try:
            verified_manifest(bundle, self.machine)
        except (BadInputError, FileNotFoundError):
            return False
        return True

    def _new_row(self, bundle: LandedBundle) -> dict[str, Any]:
        return {
            "machine": self.machine, "bundle": bundle.name, "bundle_digest": bundle.digest, "status": "ingested",
            "reason": None, "kind": None, "format": None, "app": None, "dataset": None, "collected_at": None,
            "files_count": 0, "size_bytes": 0, "is_simulated": False,
        }  # fmt: skip

    def _refuse(
        self, bundle: LandedBundle, row: dict[str, Any], earlier: Mapping[str, Any] | None, reason: str
    ) -> dict[str, Any]:
        """Ledger row of a refused bundle: good rows of an earlier version stay."""
        quarantine(self.lake, bundle, reason)
        if earlier is not None and earlier["status"] == "ingested" and earlier["bundle_digest"] != bundle.digest:
            return dict(earlier) | {"reason": f"a newer version was refused: {reason}"}
        return row | {"status": "quarantined", "record_part": None, "reason": reason}


def _facts(manifest: Manifest) -> dict[str, Any]:
    return {
        "kind": manifest.kind,
        "app": manifest.app,
        "dataset": manifest.dataset_name,
        "collected_at": utc_naive(manifest.collected_at),
        "files_count": len(manifest.files),
        "size_bytes": manifest.size_bytes,
        "is_simulated": manifest.is_simulated,
    }


def _count(outcome: Ingestion, row: Mapping[str, Any]) -> None:
    if row["status"] == "duplicate":
        outcome.duplicate_count += 1
    elif row["reason"] is not None:
        outcome.quarantined_count += 1
    else:
        outcome.ingested_count += 1


def read_ahead(bundles: Sequence[LandedBundle]) -> Iterator[Prepared | None]:
    """Each bundle as a Dask worker read it while this process writes, in order; None where it is left to the caller.

    Workers reach the landing zone under the same path. What they cannot read they leave out: it is read here, where it
    is refused with its reason.
    """
    if len(bundles) < _FEW_BUNDLES or not isinstance(current_profile(), DaskProfile):
        yield from one_by_one(bundles)
        return
    folders = [bundle.directory for bundle in bundles]
    starts = range(0, len(folders), _BUNDLES_PER_TASK)
    tasks = [(start, tuple(folders[start : start + _BUNDLES_PER_TASK])) for start in starts]
    early: dict[int, list[Prepared | None]] = {}
    turn = 0
    for (start, _), prepared in side_by_side(_read_some, None, tasks):
        early[start] = prepared
        while turn in early:
            yield from early.pop(turn)
            turn += _BUNDLES_PER_TASK


def _read_some(_: None, task: tuple[int, tuple[Path, ...]]) -> list[Prepared | None]:
    return [_read(LandedBundle(folder)) for folder in task[1]]


def _read(bundle: LandedBundle) -> Prepared | None:
    try:
        manifest = verified_manifest(bundle, bundle.directory.parent.name)
        content = read_bundle(bundle.directory, manifest, bundle.digest, bundle.name)
        rows = {table: list(made) for table, made in content.rows.items()}
    except BadInputError:
        return None
    return Prepared(bundle.digest, manifest, content.format, rows)
