"""The record: Parquet parts per table and machine, and one ledger per machine that says which of them count.

A batch of bundles is written as one part per table. It becomes visible when the ledger that names it replaces
the old ledger, in one rename. A row counts if and only if the ledger names its part for its bundle: rows of an
unfinished batch and of superseded bundles are in files but do not count. So a machine's tables change together
or not at all, whatever is killed when.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from perf_assets.core.schema import Table, Type
from perf_assets.core.tables import BUNDLES, RECORD_TABLES
from perf_assets.storage.files import publish, replacing, sha256_of

Row = Mapping[str, Any]

MAX_PARTS = 32
"""Parts of a machine before they are merged into one."""
_ROWS_IN_MEMORY = 50_000
_ARROW_TYPES = {
    Type.TEXT: pa.string(),
    Type.INTEGER: pa.int64(),
    Type.REAL: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us"),
}
_SCHEMAS = {
    table.name: pa.schema([(column.name, _ARROW_TYPES[column.type]) for column in table.columns])
    for table in (BUNDLES, *RECORD_TABLES)
}


class MachineRecord:
    """The record of one machine. One process at a time may write it."""

    def __init__(self, record: Path, machine: str) -> None:
        self._record = record
        self._machine = machine

    def ledger_file(self) -> Path:
        """Parquet file of the machine's rows of `raw_landing__bundles`."""
        return self._folder(BUNDLES) / "ledger.parquet"

    def ledger(self) -> dict[str, dict[str, Any]]:
        """Ledger rows by bundle name."""
        if not self.ledger_file().is_file():
            return {}
        return {row["bundle"]: row for row in pq.read_table(self.ledger_file()).to_pylist()}

    def digest(self) -> str:
        """Changes whenever what counts changes; empty where there is no record."""
        return sha256_of(self.ledger_file()) if self.ledger_file().is_file() else ""

    def live_parts(self, table: Table) -> list[Path]:
        """Files of `table` that the ledger names."""
        names = {row["record_part"] for row in self.ledger().values()} - {None}
        return sorted(path for name in names if (path := self._part(table, name)).is_file())

    def commit(self, ledger_rows: Iterable[Row], batch: "Batch") -> None:
        """Make a batch's rows and what became of its bundles visible, at once.

        A ledger row without `record_part` is of a bundle whose rows are in the batch.
        """
        part = batch.finish()
        ledger = self.ledger()
        for row in ledger_rows:
            ledger[row["bundle"]] = {"record_part": part} | dict(row)
        self._write_ledger(ledger)
        if len({row["record_part"] for row in ledger.values()}) > MAX_PARTS:
            self._merge(ledger)
        self._remove_dead_parts()

    def batch(self) -> "Batch":
        """A new batch of rows to be committed."""
        return Batch({table.name: self._folder(table) for table in RECORD_TABLES})

    def _write_ledger(self, ledger: Mapping[str, Row]) -> None:
        rows = [ledger[bundle] for bundle in sorted(ledger)]
        with replacing(self.ledger_file()) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, _SCHEMAS[BUNDLES.name]), temporary)

    def _merge(self, ledger: dict[str, dict[str, Any]]) -> None:
        bundles_of: dict[str, list[str]] = {}
        merged = self.batch()
        for bundle, row in ledger.items():
            if row["record_part"] is not None:
                bundles_of.setdefault(row["record_part"], []).append(bundle)
                merged.add(row["bundle_digest"], {})
        for table in RECORD_TABLES:
            for path in self.live_parts(table):
                scan = ds.dataset(path, schema=_SCHEMAS[table.name])
                for rows in scan.to_batches(filter=pc.field("bundle").isin(bundles_of[path.stem])):
                    merged.add_arrow(table, rows)
        part = merged.finish()
        self._write_ledger({name: row | {"record_part": row["record_part"] and part} for name, row in ledger.items()})

    def _remove_dead_parts(self) -> None:
        for table in RECORD_TABLES:
            live = set(self.live_parts(table))
            for path in self._folder(table).glob("*.parquet"):
                if path not in live:
                    path.unlink()

    def _folder(self, table: Table) -> Path:
        return self._record / table.name / f"machine={self._machine}"

    def _part(self, table: Table, name: str) -> Path:
        return self._folder(table) / f"{name}.parquet"


class Batch:
    """Rows of some bundles, streamed to temporary files, one per table that has any."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._rows: dict[str, list[Row]] = {name: [] for name in folders}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._digests: list[str] = []

    def __len__(self) -> int:
        return len(self._digests)

    def add(self, digest: str, rows: Mapping[str, list[dict[str, Any]]]) -> None:
        """Add all rows of the bundle with this digest."""
        self._digests.append(digest)
        for name, added in rows.items():
            self._rows[name] += added
            if len(self._rows[name]) >= _ROWS_IN_MEMORY:
                self._flush(name)

    def add_arrow(self, table: Table, rows: pa.RecordBatch) -> None:
        """Add rows that are in Arrow form already."""
        if rows.num_rows:
            self._writer(table.name).write_batch(rows)

    def finish(self) -> str:
        """Close the files under the batch's final name, and return that name."""
        part = hashlib.sha256("".join(sorted(self._digests)).encode()).hexdigest()[:16]
        for name in self._folders:
            self._flush(name)
        for name, writer in self._writers.items():
            writer.close()
            publish(self._temporary(name), self._folders[name] / f"{part}.parquet")
        return part

    def discard(self) -> None:
        """Drop what was written."""
        for name, writer in self._writers.items():
            writer.close()
            self._temporary(name).unlink(missing_ok=True)

    def _flush(self, name: str) -> None:
        if self._rows[name]:
            self._writer(name).write_table(pa.Table.from_pylist(self._rows[name], _SCHEMAS[name]))
            self._rows[name] = []

    def _writer(self, name: str) -> pq.ParquetWriter:
        if name not in self._writers:
            self._folders[name].mkdir(parents=True, exist_ok=True)
            self._writers[name] = pq.ParquetWriter(self._temporary(name), _SCHEMAS[name])
        return self._writers[name]

    def _temporary(self, name: str) -> Path:
        return self._folders[name] / ".writing.tmp"
