"""The DuckDB warehouse: loaded from the record, read by everybody else.

DuckDB lets one process write or many read, never both, so writers queue behind a lock file and readers wait a
little; every transaction is short, and the whole file can be made again from the record at any time.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.core.manifest import digest_of
from perf_assets.core.schema import Table
from perf_assets.core.tables import BUNDLES, SPECS, TABLES, vocabulary_digest
from perf_assets.storage.files import exclusive, publish
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord

if TYPE_CHECKING:
    import pandas as pd

_STATE = "warehouse_state"
"""Which vocabulary the warehouse has (row with an empty machine) and which record of each machine it holds."""


@dataclass(frozen=True)
class Violation:
    """Rows of a table that break one rule of its vocabulary."""

    rule: str
    row_count: int
    example: str


class Warehouse:
    """The warehouse of one lake."""

    def __init__(self, lake: Lake, wait_seconds: float = 60.0) -> None:
        self._lake = lake
        self._wait_seconds = wait_seconds

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection; waits while a writer is at work."""
        if not self._lake.warehouse.is_file():
            raise BadInputError(f"no warehouse at {self._lake.warehouse} yet: run 'perf-assets ingest'")
        connection = self._connect(read_only=True)
        try:
            yield connection
        finally:
            connection.close()

    def frame(self, query: str, parameters: list[object] | None = None) -> "pd.DataFrame":
        """Result of one query."""
        with self.read() as connection:
            return connection.execute(query, parameters or []).df()

    def load_machine(self, machine: str) -> dict[str, int]:
        """Bring a machine's rows in all tables to those of its record, in one transaction; rows by table."""
        with self._writing():
            state = self._state()
            if state.get("") != vocabulary_digest():
                self._build()
            elif state.get(machine) != MachineRecord(self._lake.record, machine).digest():
                self._load_in_place(machine)
        with self.read() as connection:
            return _row_counts(connection, machine)

    def rebuild(self) -> dict[str, int]:
        """Make the warehouse anew from the record alone; rows by table."""
        with self._writing():
            return self._build()

    def is_behind(self, machine: str) -> bool:
        """Whether a machine's record is newer than what is loaded."""
        state = self._state()
        return state.get("") != vocabulary_digest() or (
            state.get(machine, "") != MachineRecord(self._lake.record, machine).digest()
        )

    def content_digest(self, table: Table, machine: str) -> str:
        """Changes when and only when other bundles stand behind a machine's rows of `table`."""
        query = f'SELECT DISTINCT bundle, bundle_digest FROM "{table.name}" WHERE machine = ? ORDER BY ALL'
        with self.read() as connection:
            return digest_of(repr(connection.execute(query, [machine]).fetchall()).encode())

    def violations(self, table: Table, machine: str) -> list[Violation]:
        """What a machine's rows of `table` have against its vocabulary."""
        with self.read() as connection:
            return _violations(connection, table, machine)

    def ledger_violations(self, machine: str) -> list[Violation]:
        """The same for the machine's ledger as it stands in the record."""
        ledger = MachineRecord(self._lake.record, machine).ledger_file()
        if not ledger.is_file():
            return []
        with duckdb.connect(":memory:") as connection:
            rows = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
            connection.execute(f'CREATE TABLE "{BUNDLES.name}" AS {rows}', [str(ledger)])
            return _violations(connection, BUNDLES, machine)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with exclusive(self._lake.locks / "warehouse.lock", "the warehouse", self._wait_seconds):
            yield

    def _connect(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                return duckdb.connect(self._lake.warehouse, read_only=read_only)
            except duckdb.IOException as error:
                if "lock" not in str(error).lower():
                    raise BadInputError(
                        f"{self._lake.warehouse} cannot be opened ({error}): run 'perf-assets ingest --rebuild'"
                    ) from None
                if time.monotonic() >= deadline:
                    raise BusyError(
                        f"another process has had {self._lake.warehouse} open for {self._wait_seconds:.0f} s: "
                        "close what reads it, or try again later"
                    ) from None
                time.sleep(random.uniform(0.02, 0.1))

    def _state(self) -> dict[str, str]:
        """Digest of the vocabulary under an empty name, and of the loaded record of each machine."""
        if not self._lake.warehouse.is_file():
            return {}
        with self.read() as connection:
            if (_STATE,) not in connection.execute("SHOW TABLES").fetchall():
                return {}
            return dict(connection.execute(f"SELECT machine, digest FROM {_STATE}").fetchall())

    def _load_in_place(self, machine: str) -> None:
        connection = self._connect(read_only=False)
        try:
            connection.begin()
            _load(connection, self._lake, machine)
            connection.commit()
        finally:
            connection.close()

    def _build(self) -> dict[str, int]:
        temporary = self._lake.warehouse.with_name(".warehouse.building.duckdb")
        journal = temporary.with_name(f"{temporary.name}.wal")
        for leftover in (temporary, journal):
            leftover.unlink(missing_ok=True)
        connection = duckdb.connect(temporary)
        try:
            connection.begin()
            for table in TABLES:
                connection.execute(table.ddl())
            connection.execute(f"CREATE TABLE {_STATE} AS SELECT '' AS machine, ? AS digest", [vocabulary_digest()])
            for machine in self._lake.machines():
                _load(connection, self._lake, machine)
            connection.commit()
            counts = _row_counts(connection)
        finally:
            connection.close()
        self._lake.warehouse.with_name(f"{self._lake.warehouse.name}.wal").unlink(missing_ok=True)
        publish(temporary, self._lake.warehouse)
        return counts


def _load(connection: duckdb.DuckDBPyConnection, lake: Lake, machine: str) -> None:
    record = MachineRecord(lake.record, machine)
    for table in TABLES:
        connection.execute(f'DELETE FROM "{table.name}" WHERE machine = ?', [machine])
        query, files = _selection(record, table)
        if files:
            connection.execute(f'INSERT INTO "{table.name}" BY NAME {query}', files)
    connection.execute(f"DELETE FROM {_STATE} WHERE machine = ?", [machine])
    connection.execute(f"INSERT INTO {_STATE} VALUES (?, ?)", [machine, record.digest()])


def _row_counts(connection: duckdb.DuckDBPyConnection, machine: str | None = None) -> dict[str, int]:
    """Rows by table, of one machine or of all."""
    counts = {}
    for table in TABLES:
        query = f'SELECT count(*) FROM "{table.name}" WHERE $machine IS NULL OR machine = $machine'
        (counts[table.name],) = connection.execute(query, {"machine": machine}).fetchall()[0]
    return counts


def _selection(record: MachineRecord, table: Table) -> tuple[str, dict[str, object]]:
    """Query for the rows of `table` that count, and its parameters; no parameters where there is no file."""
    ledger = str(record.ledger_file())
    if table is BUNDLES:
        files: dict[str, object] = {"ledger": ledger} if record.ledger_file().is_file() else {}
        return "SELECT * FROM read_parquet($ledger, hive_partitioning = false) ORDER BY bundle", files
    parts = [str(path) for path in record.live_parts(table)]
    query = f"""
        SELECT part.* EXCLUDE (filename)
        FROM read_parquet($parts, hive_partitioning = false, union_by_name = true, filename = true) AS part
        JOIN read_parquet($ledger, hive_partitioning = false) AS ledger
          ON ledger.bundle = part.bundle AND ledger.record_part = parse_filename(part.filename, true)
        {"QUALIFY row_number() OVER (ORDER BY ledger.collected_at DESC, part.bundle) = 1" if table is SPECS else ""}
        ORDER BY {", ".join(f"part.{name}" for name in table.key)}
    """
    return query, {"parts": parts, "ledger": ledger} if parts else {}


def _violations(connection: duckdb.DuckDBPyConnection, table: Table, machine: str) -> list[Violation]:
    return [*_shape_violations(connection, table), *_row_violations(connection, table, machine)]


def _shape_violations(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Violation]:
    expected = {column.name: column.type.value for column in table.columns}
    rows = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?", [table.name]
    ).fetchall()
    actual = dict(rows)
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            example = f"is {actual.get(name, 'absent')}, should be {expected.get(name, 'absent')}"
            yield Violation(f"column {name}", 0, example)


def _row_violations(connection: duckdb.DuckDBPyConnection, table: Table, machine: str) -> Iterator[Violation]:
    actual = {row[0] for row in connection.execute(f'DESCRIBE "{table.name}"').fetchall()}
    key = ", ".join(f'"{name}"' for name in table.key)
    rules = {
        f"{column.name}: {column.rule()}": f'SELECT {key} FROM "{table.name}" WHERE machine = ? AND ({condition})'
        for column in table.columns
        if column.name in actual and (condition := column.violation())
    }
    if actual.issuperset(table.key):
        rules[f"key ({', '.join(table.key)}) is unique"] = (
            f'SELECT {key} FROM "{table.name}" WHERE machine = ? GROUP BY ALL HAVING count(*) > 1'
        )
    for rule, query in rules.items():
        found = connection.execute(f"SELECT count(*), first(rows) FROM ({query}) AS rows", [machine]).fetchone()
        if found and found[0]:
            yield Violation(rule, found[0], str(found[1]))
