"""Rows of a machine in the warehouse: loaded from its record, checked, with what is derived from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.landing import BUNDLES, COUNTERS, RAW_TABLES, SPECS, TABLES
from perf_assets.core.tables.schema import Derivation, Table
from perf_assets.infra.files import sha256_of
from perf_assets.storage.record import MachineRecord, Snapshot


@dataclass(frozen=True)
class Violation:
    """Rows of a table that break one rule of its vocabulary."""

    rule: str
    row_count: int
    example: str


def violations(connection: duckdb.DuckDBPyConnection, table: Table, machine: str) -> list[Violation]:
    """Rules that a machine's rows of `table` break."""
    return [*_shape_violations(connection, table), *_row_violations(connection, table, machine)]


def _shape_violations(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Violation]:
    expected = {column.name: column.type.value for column in table.columns}
    rows = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'main' AND table_name = ?",
        [table.name],
    ).fetchall()
    actual = dict(rows)
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            example = f"is {actual.get(name, 'absent')}, should be {expected.get(name, 'absent')}"
            yield Violation(f"column {name}", 0, example)


def _row_violations(connection: duckdb.DuckDBPyConnection, table: Table, machine: str) -> Iterator[Violation]:
    actual = {row[0] for row in connection.execute(f'DESCRIBE "{table.name}"').fetchall()}
    key = ", ".join(f'"{name}"' for name in table.key)
    rows = f'SELECT {key} FROM "{table.name}" WHERE {table.of_machine}'
    rules = {
        f"{column.name}: {column.rule()}": f"{rows} AND ({condition})"
        for column in table.columns
        if column.name in actual and (condition := column.violation())
    }
    if actual.issuperset(table.key):
        rules[f"key ({', '.join(table.key)}) is unique"] = f"{rows} GROUP BY ALL HAVING count(*) > 1"
    for rule, query in rules.items():
        counts = connection.execute(
            f"SELECT count(*), first(rows) FROM ({query}) AS rows", {"machine": machine}
        ).fetchone()
        if counts and counts[0]:
            yield Violation(rule, counts[0], str(counts[1]))


STATE = "warehouse_state"
"""Table: which vocabulary the warehouse has (empty machine), which record of each machine, and what was derived."""

_ROWS_IN_SLICE = 160_000
"""More than the 122,880 rows of a DuckDB row group: what fills one is written out while the next is made."""

Derive = Callable[[str, Sequence[str], str | None], Sequence[Derivation]]
"""Derivations for a machine, given its counters and its micro-architecture (None where no data sheet says)."""


def no_derivations(machine: str, counters: Sequence[str], microarchitecture: str | None) -> Sequence[Derivation]:
    """Derive nothing: a warehouse of raw tables only."""
    return ()


class RecordChangedError(Exception):
    """The record was committed to while it was being loaded: load it again."""


def load(connection: duckdb.DuckDBPyConnection, record: MachineRecord, machine: str) -> None:
    """Replace a machine's raw rows by those of its record at one moment."""
    snapshot = record.snapshot()
    connection.register("ledger", snapshot.ledger)
    try:
        for table in RAW_TABLES:
            connection.execute(f'DELETE FROM "{table.name}" WHERE machine = ?', [machine])
            if table is BUNDLES or snapshot.parts.get(table.name):
                connection.execute(*_insertion(snapshot, table))
    except duckdb.IOException:
        if record.digest() != snapshot.digest:
            raise RecordChangedError(machine) from None
        raise
    connection.unregister("ledger")
    # Files that a ledger names are removed after it is replaced, never before: if it stands, all of them were read.
    if record.digest() != snapshot.digest:
        raise RecordChangedError(machine)
    _set_state(connection, {machine: snapshot.digest})


def derive(connection: duckdb.DuckDBPyConnection, machine: str, derive_from: Derive) -> None:
    """Recompute a machine's derived tables from its raw rows."""
    for derivation in derive_from(machine, *counters_of(connection, machine)):
        if derivation.table is None:
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{derivation.name}"')
            statement = f'CREATE OR REPLACE TABLE "{derivation.name}"."{machine}" AS {derivation.query}'
        else:
            condition = derivation.table.of_machine
            connection.execute(f'DELETE FROM "{derivation.name}" WHERE {condition}', {"machine": machine})
            statement = f'INSERT INTO "{derivation.name}" BY NAME {derivation.query}'
        for parameters in _slices(connection, machine, is_sliced=derivation.is_sliced):
            connection.execute(statement, parameters)
    _set_state(connection, {derived(machine): derivation_digest(connection, machine, derive_from)})


def forget(connection: duckdb.DuckDBPyConnection, machine: str) -> None:
    """Remove all rows of a machine, and the tables that hold only its rows."""
    own = "SELECT table_schema FROM information_schema.tables WHERE table_name = ? AND table_schema <> 'main'"
    for (schema,) in connection.execute(own, [machine]).fetchall():
        connection.execute(f'DROP TABLE "{schema}"."{machine}"')
    for table in TABLES:
        connection.execute(f'DELETE FROM "{table.name}" WHERE {table.of_machine}', {"machine": machine})
    connection.execute(f"DELETE FROM {STATE} WHERE machine IN (?, ?)", [machine, derived(machine)])


def counters_of(connection: duckdb.DuckDBPyConnection, machine: str) -> tuple[list[str], str | None]:
    """Names of a machine's counters, and its micro-architecture where a data sheet says."""
    names = connection.execute(f"SELECT DISTINCT counter FROM {COUNTERS.name} WHERE machine = ? ORDER BY 1", [machine])
    counters = [name for (name,) in names.fetchall()]
    sheet = connection.execute(f"SELECT microarchitecture FROM {SPECS.name} WHERE machine = ?", [machine]).fetchone()
    return counters, sheet[0] if sheet else None


def derivation_digest(connection: duckdb.DuckDBPyConnection, machine: str, derive_from: Derive) -> str:
    """Changes with the machine's record and with the way things are derived from it."""
    loaded = connection.execute(f"SELECT digest FROM {STATE} WHERE machine = ?", [machine]).fetchone()
    queries = [derivation.query for derivation in derive_from(machine, *counters_of(connection, machine))]
    return digest_of(repr((loaded, queries)).encode())


def derived(machine: str) -> str:
    """Name under which the state of a machine's derived tables is kept."""
    return f"derived/{machine}"


def _set_state(connection: duckdb.DuckDBPyConnection, digests: Mapping[str, str]) -> None:
    names = list(digests)
    connection.execute(f"DELETE FROM {STATE} WHERE list_contains(?, machine)", [names])
    connection.execute(f"INSERT INTO {STATE} SELECT unnest(?), unnest(?)", [names, list(digests.values())])


def load_results(connection: duckdb.DuckDBPyConnection, record: Path, tables: Iterable[Table]) -> None:
    """Load tables of results from their files, without files whose columns are outdated."""
    digests = {}
    for table in tables:
        wanted = set(table.column_names())
        digests[results_of(table)] = results_digest(record, table)
        files = [str(file) for file in _result_files(record, table) if set(pq.read_schema(file).names) == wanted]
        connection.execute(f'DROP TABLE IF EXISTS "{table.name}"')
        connection.execute(table.ddl())
        if files:
            rows = "SELECT * FROM read_parquet(?, hive_partitioning = false, union_by_name = true)"
            connection.execute(f'INSERT INTO "{table.name}" BY NAME {rows}', [files])
    _set_state(connection, digests)


def results_of(table: Table) -> str:
    """Name under which the state of a table that models make is kept."""
    return f"results/{table.name}"


def results_digest(record: Path, table: Table) -> str:
    """Changes when a file of a table that models make does."""
    files = [(str(file.relative_to(record)), sha256_of(file)) for file in _result_files(record, table)]
    return digest_of(repr(files).encode())


def _result_files(record: Path, table: Table) -> list[Path]:
    return [file for file in sorted((record / table.name).rglob("*.parquet")) if not file.name.startswith(".")]


def row_counts(connection: duckdb.DuckDBPyConnection, machine: str | None = None) -> dict[str, int]:
    """Rows by table, of one machine or of all."""
    query = " UNION ALL ".join(
        f"SELECT '{table.name}', count(*) FROM \"{table.name}\" WHERE $machine IS NULL OR {table.of_machine}"
        for table in TABLES
    )
    counts = dict(connection.execute(query, {"machine": machine}).fetchall())
    return {table.name: counts[table.name] for table in TABLES}


def _slices(connection: duckdb.DuckDBPyConnection, machine: str, *, is_sliced: bool) -> Iterator[dict[str, object]]:
    """Parameters of a query; one that can be cut into slices is, so that its groups fit into little memory."""
    if not is_sliced:
        yield {"machine": machine}
        return
    rows = connection.execute(f"SELECT count(*) FROM {COUNTERS.name} WHERE machine = ?", [machine]).fetchall()[0][0]
    count = 1 + rows // _ROWS_IN_SLICE
    yield from ({"machine": machine, "slices": count, "slice": index} for index in range(count))


def _insertion(snapshot: Snapshot, table: Table) -> tuple[str, dict[str, object]]:
    """Statement that inserts the rows of `table` that count, and its parameters.

    Columns that the vocabulary does not have any more are left behind; those that it has now and the files do not
    are missing.
    """
    if table is BUNDLES:
        return f'INSERT INTO "{table.name}" BY NAME SELECT * FROM ledger ORDER BY bundle', {}
    wanted = ", ".join(f"'{name}'" for name in table.column_names())
    newest = "QUALIFY row_number() OVER (ORDER BY ledger.collected_at DESC, part.bundle) = 1"
    query = f"""
        INSERT INTO "{table.name}" BY NAME SELECT COLUMNS(lambda name: name IN ({wanted})) FROM (
            SELECT part.*
            FROM read_parquet($parts, hive_partitioning = false, union_by_name = true, filename = true) AS part
            JOIN ledger ON ledger.bundle = part.bundle AND ledger.record_part = parse_filename(part.filename, true)
            {newest if table is SPECS else ""}
        ) ORDER BY {", ".join(f'"{name}"' for name in table.key)}
    """
    return query, {"parts": [str(path) for path in snapshot.parts[table.name]]}
