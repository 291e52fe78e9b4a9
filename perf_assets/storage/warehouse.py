"""The DuckDB warehouse: loaded from the record, read by everybody else.

DuckDB lets one process write or many read, never both, so writers queue behind a lock file and readers wait a
little; every transaction is short, and the whole file can be made again from the record at any time.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import duckdb

from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.core.manifest import digest_of
from perf_assets.core.paths import local_warehouse
from perf_assets.core.tables.landing import BUNDLES, RAW_TABLES, TABLES, vocabulary_digest
from perf_assets.core.tables.models import RESULT_TABLES
from perf_assets.core.tables.schema import Table
from perf_assets.infra.files import publish
from perf_assets.infra.locks import exclusive
from perf_assets.storage.lake import Lake
from perf_assets.storage.loading import (
    STATE,
    Derive,
    RecordChangedError,
    Violation,
    counters_of,
    derivation_digest,
    derive,
    derived,
    forget,
    load,
    load_results,
    no_derivations,
    results_digest,
    results_of,
    row_counts,
    violations,
)
from perf_assets.storage.record import MachineRecord

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


_TRIES = 20
_Result = TypeVar("_Result")


class Warehouse:
    """The warehouse of one lake."""

    def __init__(self, lake: Lake, derive: Derive = no_derivations, wait_seconds: float = 60.0) -> None:
        self._lake = lake
        self._derive = derive
        self._wait_seconds = wait_seconds
        # A warehouse in the lake is brought up to date by those who change the record; one of this host alone by
        # whoever opens it.
        self._has_caught_up = local_warehouse(lake.root) is None or derive is no_derivations

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection; waits while a writer is at work."""
        self._catch_up_once()
        if not self._lake.warehouse.is_file():
            raise BadInputError(f"no warehouse at {self._lake.warehouse} yet: run 'perf-assets ingest'")
        connection = self._connect(read_only=True)
        try:
            yield connection
        except (duckdb.CatalogException, duckdb.BinderException):
            if _digests(connection).get("") != vocabulary_digest():
                raise BadInputError(
                    f"{self._lake.warehouse} is of another release: run 'perf-assets ingest', which makes it anew "
                    "from the record"
                ) from None
            raise
        finally:
            connection.close()

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep the file open for many short reads: to open it takes 20 ms, to read what is open a tenth of that.

        Nothing may be written meanwhile, and writers in other processes wait.
        """
        if not self._lake.warehouse.is_file():
            yield
            return
        with self.read():
            yield

    def frame(self, query: str, parameters: list[object] | dict[str, object] | None = None) -> "pd.DataFrame":
        """Result of one query."""
        with self.read() as connection:
            return connection.execute(query, parameters or []).df()

    def query(self, query: str, parameters: list[object], *, as_arrow: bool) -> "pd.DataFrame | pa.Table":
        """Result of a query that a person wrote; one that is wrong is one clear line."""
        with self.read() as connection:
            # What the warehouse holds, and no file of the host.
            connection.execute("SET enable_external_access = false")
            try:
                result = connection.sql(query, params=parameters)
                if result is None:
                    raise BadInputError("the query has no result: it begins with SELECT, or another word that asks")
                return result.to_arrow_table() if as_arrow else result.df()
            except duckdb.Error as error:
                raise BadInputError(f"the query cannot be answered: {str(error).strip().splitlines()[0]}") from None

    def load_machine(self, machine: str) -> dict[str, int]:
        """Bring a machine's rows in all tables to those of its record, in one transaction; rows by table."""
        with self._writing():
            state = self._state()
            if state.get("") != vocabulary_digest():
                return self._repeat(lambda: self._build(machine))
            if state.get(machine) != MachineRecord(self._lake.record, machine).digest():
                return self._repeat(lambda: self._load_in_place(machine))
        with self.read() as connection:
            return row_counts(connection, machine)

    def derive_machine(self, machine: str) -> dict[str, int]:
        """Bring the tables derived from a machine's up to date, in one transaction; rows by table."""
        if not self._lake.warehouse.is_file():
            raise BadInputError(f"no warehouse at {self._lake.warehouse} yet: run 'perf-assets ingest'")
        with self._writing(), self._transaction() as connection:
            derive(connection, machine, self._derive)
            return row_counts(connection, machine)

    def forget_machine(self, machine: str) -> None:
        """Remove a machine's rows from all tables; its files in the record must be gone."""
        if not self._lake.warehouse.is_file():
            return
        with self._writing(), self._transaction() as connection:
            forget(connection, machine)
            load_results(connection, self._lake.record, RESULT_TABLES)

    def rebuild(self) -> dict[str, int]:
        """Make the warehouse anew from the record alone; rows by table."""
        with self._writing():
            return self._repeat(self._build)

    def load_results(self, table: Table) -> None:
        """Bring a table that models make to what is stored of it, in one transaction."""
        if not self._lake.warehouse.is_file():
            raise BadInputError(f"no warehouse at {self._lake.warehouse} yet: run 'perf-assets ingest'")
        with self._writing(), self._transaction() as connection:
            load_results(connection, self._lake.record, [table])

    def is_behind(self, machine: str) -> bool:
        """Whether a machine's record is newer than what is loaded, or what is derived from it is not made yet."""
        state = self._state()
        if state.get("") != vocabulary_digest():
            return True
        if state.get(machine) != MachineRecord(self._lake.record, machine).digest():
            return True
        with self.read() as connection:
            return state.get(derived(machine)) != derivation_digest(connection, machine, self._derive)

    def counters_of(self, machine: str) -> tuple[list[str], str | None]:
        """Names of a machine's counters, and its micro-architecture where a data sheet says."""
        with self.read() as connection:
            return counters_of(connection, machine)

    def content_digest(self, table: Table, machine: str) -> str:
        """Changes when and only when a machine's rows of `table` change: by their bundles where they have any."""
        rows = f'SELECT * FROM "{table.name}" WHERE {table.of_machine}'
        if table in RAW_TABLES:
            rows = f"SELECT DISTINCT bundle, bundle_digest FROM ({rows})"
        # Of hashes in any order, so that no list of them is ever made.
        query = f"SELECT count(*), bit_xor(hash(rows)), sum(hash(rows)) FROM ({rows}) AS rows"
        with self.read() as connection:
            return digest_of(repr(connection.execute(query, {"machine": machine}).fetchall()).encode())

    def violations(self, table: Table, machine: str) -> list[Violation]:
        """Violations of a table's schema in a machine's rows."""
        with self.read() as connection:
            return violations(connection, table, machine)

    def ledger_violations(self, machine: str) -> list[Violation]:
        """Violations of the ledger's schema in a machine's record."""
        record = MachineRecord(self._lake.record, machine)
        if not record.ledger_file().is_file():
            return []
        with duckdb.connect(":memory:") as connection:
            connection.register("ledger", record.ledger())
            connection.execute(f'CREATE TABLE "{BUNDLES.name}" AS SELECT * FROM ledger')
            return violations(connection, BUNDLES, machine)

    def catch_up(self) -> None:
        """Load everything from the record that the warehouse lacks: rows of machines, and results of models."""
        self._has_caught_up = True
        for machine in self._lake.machines():
            if self.is_behind(machine):
                self.load_machine(machine)
                self.derive_machine(machine)
        state = self._state()
        for machine in {name for name in state if name and "/" not in name} - set(self._lake.machines()):
            self.forget_machine(machine)
        for table in RESULT_TABLES:
            if state and state.get(results_of(table)) != results_digest(self._lake.record, table):
                self.load_results(table)

    def _catch_up_once(self) -> None:
        if not self._has_caught_up:
            self.catch_up()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        # What is read while the lock is held must not ask for it again.
        before, self._has_caught_up = self._has_caught_up, True
        try:
            with exclusive(self._lake.warehouse_lock, "the warehouse", self._wait_seconds):
                yield
        finally:
            self._has_caught_up = before

    def _connect(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                return duckdb.connect(self._lake.warehouse, read_only=read_only)
            except duckdb.IOException as error:
                if "Could not set lock" not in str(error):
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
            return _digests(connection)

    def _load_in_place(self, machine: str) -> dict[str, int]:
        with self._transaction() as connection:
            load(connection, MachineRecord(self._lake.record, machine), machine)
            return row_counts(connection, machine)

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = self._connect(read_only=False)
        try:
            connection.begin()
            yield connection
            connection.commit()
        finally:
            # Without the commit, closing takes everything back.
            connection.close()

    def _repeat(self, action: Callable[[], _Result]) -> _Result:
        """Do something until the record does not change under it."""
        for _ in range(_TRIES):
            with suppress(RecordChangedError):
                return action()
        raise BusyError(f"the record in {self._lake.record} keeps changing: try again when ingestion is done")

    def _build(self, machine_counted: str | None = None) -> dict[str, int]:
        """Make the file anew; rows by table, of one machine or of all."""
        temporary = self._lake.warehouse.with_name(".warehouse.building.duckdb")
        journal = temporary.with_name(f"{temporary.name}.wal")
        for leftover in (temporary, journal):
            leftover.unlink(missing_ok=True)
        connection = duckdb.connect(temporary)
        try:
            connection.begin()
            for table in TABLES:
                connection.execute(table.ddl())
            connection.execute(f"CREATE TABLE {STATE} AS SELECT '' AS machine, ? AS digest", [vocabulary_digest()])
            for machine in self._lake.machines():
                load(connection, MachineRecord(self._lake.record, machine), machine)
            for machine in self._lake.machines():
                derive(connection, machine, self._derive)
            load_results(connection, self._lake.record, RESULT_TABLES)
            connection.commit()
            counts = row_counts(connection, machine_counted)
        finally:
            connection.close()
        self._lake.warehouse.with_name(f"{self._lake.warehouse.name}.wal").unlink(missing_ok=True)
        publish(temporary, self._lake.warehouse)
        return counts


def _digests(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Digests of the data that a warehouse was made of; empty where it has none."""
    if (STATE,) not in connection.execute("SHOW TABLES").fetchall():
        return {}
    return dict(connection.execute(f"SELECT machine, digest FROM {STATE}").fetchall())
