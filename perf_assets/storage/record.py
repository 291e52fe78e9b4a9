"""The record: Parquet parts per table and machine, and one ledger per machine that says which parts count.

A batch of bundles is written as one part per table. It becomes visible when the ledger that names it replaces
the old ledger, in one rename. A row counts if and only if the ledger names its part for its bundle: rows of an
unfinished batch and of superseded bundles are in files but do not count. So a machine's tables change together
or not at all, whatever is killed when.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.landing import BUNDLES, RECORD_TABLES
from perf_assets.core.tables.schema import Table, Type
from perf_assets.infra.files import publish, remove_temporaries, replacing, sha256_of, steadily

Row = Mapping[str, Any]

_ARROW_TYPES = {
    Type.TEXT: pa.string(),
    Type.INTEGER: pa.int64(),
    Type.REAL: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us"),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Columns of a table as Parquet files hold them."""
    return pa.schema([(column.name, _ARROW_TYPES[column.type]) for column in table.columns])


_SCHEMAS = {table.name: arrow_schema(table) for table in (BUNDLES, *RECORD_TABLES)}


@dataclass(frozen=True)
class RecordLimits:
    """Sizes at which rows are written and parts are merged."""

    parts: int = 32
    """Parts of a machine before they are merged into one."""
    rows_in_memory: int = 5_000
    """Rows of a table as dictionaries, which are heavy; then they become Arrow."""
    rows_in_group: int = 100_000
    """Rows of a table in Arrow form; then they become a row group of the part."""
    bundles_per_commit: int = 1000


LIMITS = RecordLimits()


class MachineRecord:
    """The record of one machine. One process at a time may write it."""

    def __init__(
        self,
        record: Path,
        machine: str,
        check_lease: Callable[[], None] = lambda: None,
        limits: RecordLimits = LIMITS,
    ) -> None:
        """`check_lease` raises where another host has begun to write in our place."""
        self._limits = limits
        self._record = record
        self._machine = machine
        self._check_lease = check_lease

    def ledger_file(self) -> Path:
        """Parquet file of the machine's rows of `raw_landing__bundles`."""
        return self._folder(BUNDLES) / "ledger.parquet"

    def ledger(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The ledger, with these columns or all."""
        schema = _SCHEMAS[BUNDLES.name]
        if not self.ledger_file().is_file():
            return (schema if columns is None else pa.schema([schema.field(name) for name in columns])).empty_table()
        return self._parsed(self._bytes(), columns)

    def refusals(self) -> dict[str, str]:
        """Reasons by bundle name, of bundles that were refused or whose newer version was; sorted."""
        ledger = self.ledger(["bundle", "status", "reason"])
        refused = ledger.filter(pc.field("reason").is_valid() & ~pc.field("status").isin(["duplicate", "withdrawn"]))
        return dict(zip(refused["bundle"].to_pylist(), refused["reason"].to_pylist(), strict=True))

    def ledger_rows(self, condition: pc.Expression) -> dict[str, dict[str, Any]]:
        """Ledger rows that meet a condition, by bundle name."""
        return {row["bundle"]: row for row in self.ledger().filter(condition).to_pylist()}

    def digest(self) -> str:
        """Digest of all that counts, which changes with it; empty where there is no record."""
        return hashlib.sha256(self._bytes()).hexdigest() if self.ledger_file().is_file() else ""

    def _bytes(self) -> bytes:
        return steadily(self.ledger_file().read_bytes)

    def snapshot(self) -> "Snapshot":
        """The ledger at one moment, with the files it names."""
        if not self.ledger_file().is_file():
            return Snapshot("", _SCHEMAS[BUNDLES.name].empty_table(), {})
        data = self._bytes()
        ledger = self._parsed(data, None)
        names = self._parts(ledger)
        parts = {table.name: self._existing(table, names) for table in RECORD_TABLES}
        return Snapshot(hashlib.sha256(data).hexdigest(), ledger, parts)

    def live_parts(self, table: Table) -> list[Path]:
        """Files of `table` that the ledger names."""
        return self._existing(table, self._parts(self.ledger(["record_part"])))

    def _existing(self, table: Table, names: Iterable[str]) -> list[Path]:
        return sorted(path for name in names if (path := self._part(table, name)).is_file())

    def _parsed(self, data: bytes, columns: Sequence[str] | None) -> pa.Table:
        try:
            ledger = pq.read_table(pa.BufferReader(data), columns=columns, partitioning=None)
        except pa.ArrowException as error:
            raise BadInputError(
                f"{self.ledger_file()} is damaged ({error}): restore it, or remove the folders "
                f"record/*/machine={self._machine} and ingest again"
            ) from None
        return ledger if columns is not None or "dataset" in ledger.column_names else _with_dataset(ledger)

    def commit(self, ledger_rows: Sequence[Row], batch: "Batch") -> None:
        """Make a batch's rows and what became of its bundles visible, at once.

        A ledger row without `record_part` is of a bundle whose rows are in the batch.
        """
        part = batch.finish()
        changed = pa.Table.from_pylist(
            [{"record_part": part} | dict(row) for row in ledger_rows], _SCHEMAS[BUNDLES.name]
        )
        kept = self.ledger().filter(~pc.field("bundle").isin(changed["bundle"]))
        ledger = pa.concat_tables([kept, changed])
        self._write_ledger(ledger)
        if len(self._parts(ledger)) > self._limits.parts:
            self._merge(ledger)
        self.tidy()

    def batch(self) -> "Batch":
        """A new batch of rows to be committed."""
        return Batch({table.name: self._folder(table) for table in RECORD_TABLES}, self._limits)

    def _write_ledger(self, ledger: pa.Table) -> None:
        with replacing(self.ledger_file()) as temporary:
            pq.write_table(ledger.sort_by("bundle"), temporary)
            # After the file is there: whoever takes over from now on removes it, so that it cannot be published.
            self._check_lease()

    def _merge(self, ledger: pa.Table) -> None:
        in_parts = ledger.filter(pc.field("record_part").is_valid())
        merged = self.batch()
        for digest in in_parts["bundle_digest"].to_pylist():
            merged.add(digest, {})
        for table in RECORD_TABLES:
            for path in self.live_parts(table):
                bundles = in_parts.filter(pc.field("record_part") == path.stem)["bundle"]
                scan = ds.dataset(path, schema=_SCHEMAS[table.name])
                for rows in scan.to_batches(filter=pc.field("bundle").isin(bundles)):
                    merged.add_arrow(table, rows)
        part = merged.finish()
        position = ledger.schema.get_field_index("record_part")
        parts = pc.if_else(ledger["record_part"].is_valid(), part, pa.scalar(None, pa.string()))
        self._write_ledger(ledger.set_column(position, ledger.schema.field(position), parts))

    @staticmethod
    def _parts(ledger: pa.Table) -> set[str]:
        return set(ledger["record_part"].unique().drop_null().to_pylist())

    def tidy(self) -> None:
        """Remove what does not count: parts that no bundle needs any more, and what a killed process left."""
        if self.ledger_file().parent.is_dir():
            remove_temporaries(self.ledger_file())
        names = self._parts(self.ledger(["record_part"]))
        folders = [self._folder(table) for table in RECORD_TABLES]
        paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        self._check_lease()
        for path in paths:
            if path.stem not in names:
                path.unlink(missing_ok=True)

    def _folder(self, table: Table) -> Path:
        return self._record / table.name / f"machine={self._machine}"

    def _part(self, table: Table, name: str) -> Path:
        return self._folder(table) / f"{name}.parquet"


def _with_dataset(ledger: pa.Table) -> pa.Table:
    """A ledger of a release without datasets: tables of samples are in that of their machine."""
    is_table = pc.and_(pc.equal(ledger["kind"], "samples"), pc.invert(pc.starts_with(ledger["bundle"], "observed-")))
    dataset = pc.if_else(pc.fill_null(is_table, False), ledger["machine"], pa.scalar(None, pa.string()))
    return ledger.append_column("dataset", dataset).select(_SCHEMAS[BUNDLES.name].names)


@dataclass(frozen=True)
class Snapshot:
    """Content of a machine's record that counted at one moment."""

    digest: str
    """Digest of the ledger; empty where there is none."""
    ledger: pa.Table
    parts: Mapping[str, list[Path]]
    """Files by table."""


class Batch:
    """Rows of some bundles, streamed to temporary files, one per table that has any."""

    def __init__(self, folders: Mapping[str, Path], limits: RecordLimits) -> None:
        self._folders = folders
        self._limits = limits
        self._rows: dict[str, list[Row]] = {name: [] for name in folders}
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in folders}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._digests: list[str] = []
        self._identity = uuid.uuid4().hex

    def add(self, digest: str, rows: Mapping[str, Iterable[Row]]) -> None:
        """Add all rows of the bundle with this digest.

        Where making the rows fails half way, those made before stay in the batch: the ledger must not name its part
        for that bundle.
        """
        self._digests.append(digest)
        for name, added in rows.items():
            source = iter(added)
            held = self._rows[name]
            while True:
                held.extend(islice(source, self._limits.rows_in_memory - len(held)))
                if len(held) < self._limits.rows_in_memory:
                    break
                self._pack(name)

    def add_arrow(self, table: Table, rows: pa.RecordBatch) -> None:
        """Add rows that are in Arrow form already."""
        if rows.num_rows:
            self._tables[table.name].append(pa.Table.from_batches([rows]))
            self._write_full_groups(table.name)

    def finish(self) -> str:
        """Close the files under the batch's final name, and return that name."""
        for name in self._folders:
            self._pack(name)
            self._write_group(name)
        for writer in self._writers.values():
            writer.close()
        # By content, not only by bundles: what newer readers make of the same bundles is another part.
        seen = [*sorted(self._digests), *(sha256_of(self._temporary(name)) for name in sorted(self._writers))]
        part = hashlib.sha256("".join(seen).encode()).hexdigest()[:16]
        for name in self._writers:
            publish(self._temporary(name), self._folders[name] / f"{part}.parquet")
        return part

    def discard(self) -> None:
        """Drop what was written."""
        for name, writer in self._writers.items():
            writer.close()
            self._temporary(name).unlink(missing_ok=True)

    def _pack(self, name: str) -> None:
        if self._rows[name]:
            self._tables[name].append(pa.Table.from_pylist(self._rows[name], _SCHEMAS[name]))
            self._rows[name].clear()
            self._write_full_groups(name)

    def _write_full_groups(self, name: str) -> None:
        if sum(table.num_rows for table in self._tables[name]) >= self._limits.rows_in_group:
            self._write_group(name)

    def _write_group(self, name: str) -> None:
        if self._tables[name]:
            self._writer(name).write_table(pa.concat_tables(self._tables[name]))
            self._tables[name].clear()

    def _writer(self, name: str) -> pq.ParquetWriter:
        if name not in self._writers:
            self._folders[name].mkdir(parents=True, exist_ok=True)
            self._writers[name] = pq.ParquetWriter(self._temporary(name), _SCHEMAS[name])
        return self._writers[name]

    def _temporary(self, name: str) -> Path:
        return self._folders[name] / f".writing-{self._identity}.tmp"
