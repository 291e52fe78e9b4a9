"""What stands in the warehouse for a machine: rows of its record, and what follows from them."""

from collections.abc import Callable, Sequence

import duckdb

from perf_assets.core.manifest import digest_of
from perf_assets.core.schema import Derivation, Table
from perf_assets.core.tables import BUNDLES, COUNTERS, RAW_TABLES, SPECS, TABLES
from perf_assets.storage.record import MachineRecord

STATE = "warehouse_state"
"""Table: which vocabulary the warehouse has (empty machine), which record of each machine, and what was derived."""

Derive = Callable[[Sequence[str], str | None], Sequence[Derivation]]
"""What follows for a machine, given its counters and its micro-architecture (None where no data sheet says)."""


def nothing_follows(counters: Sequence[str], microarchitecture: str | None) -> Sequence[Derivation]:
    """For a warehouse of what landed only."""
    return ()


def load(connection: duckdb.DuckDBPyConnection, record: MachineRecord, machine: str) -> None:
    """Replace a machine's raw rows by those of its record."""
    for table in RAW_TABLES:
        connection.execute(f'DELETE FROM "{table.name}" WHERE machine = ?', [machine])
        query, files = _selection(record, table)
        if files:
            connection.execute(f'INSERT INTO "{table.name}" BY NAME {query}', files)
    _set_state(connection, machine, record.digest())


def derive(connection: duckdb.DuckDBPyConnection, machine: str, follows: Derive) -> None:
    """Replace what follows from a machine's raw rows."""
    for derivation in follows(*counters_of(connection, machine)):
        if derivation.table is None:
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{derivation.name}"')
            statement = f'CREATE OR REPLACE TABLE "{derivation.name}"."{machine}" AS {derivation.query}'
        else:
            condition = derivation.table.of_machine
            connection.execute(f'DELETE FROM "{derivation.name}" WHERE {condition}', {"machine": machine})
            statement = f'INSERT INTO "{derivation.name}" BY NAME {derivation.query}'
        connection.execute(statement, {"machine": machine})
    _set_state(connection, derived(machine), derivation_digest(connection, machine, follows))


def counters_of(connection: duckdb.DuckDBPyConnection, machine: str) -> tuple[list[str], str | None]:
    """Names of a machine's counters, and its micro-architecture where a data sheet says."""
    names = connection.execute(f"SELECT DISTINCT counter FROM {COUNTERS.name} WHERE machine = ? ORDER BY 1", [machine])
    counters = [name for (name,) in names.fetchall()]
    sheet = connection.execute(f"SELECT microarchitecture FROM {SPECS.name} WHERE machine = ?", [machine]).fetchone()
    return counters, sheet[0] if sheet else None


def derivation_digest(connection: duckdb.DuckDBPyConnection, machine: str, follows: Derive) -> str:
    """Changes with the machine's record and with the way things follow from it."""
    loaded = connection.execute(f"SELECT digest FROM {STATE} WHERE machine = ?", [machine]).fetchone()
    queries = [derivation.query for derivation in follows(*counters_of(connection, machine))]
    return digest_of(repr((loaded, queries)).encode())


def derived(machine: str) -> str:
    """Name under which the state of what follows for a machine is kept."""
    return f"derived/{machine}"


def _set_state(connection: duckdb.DuckDBPyConnection, name: str, digest: str) -> None:
    connection.execute(f"DELETE FROM {STATE} WHERE machine = ?", [name])
    connection.execute(f"INSERT INTO {STATE} VALUES (?, ?)", [name, digest])


def row_counts(connection: duckdb.DuckDBPyConnection, machine: str | None = None) -> dict[str, int]:
    """Rows by table, of one machine or of all."""
    counts = {}
    for table in TABLES:
        query = f'SELECT count(*) FROM "{table.name}" WHERE $machine IS NULL OR {table.of_machine}'
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
