"""What rows have against the vocabulary."""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from perf_assets.core.tables.schema import Table


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
        found = connection.execute(
            f"SELECT count(*), first(rows) FROM ({query}) AS rows", {"machine": machine}
        ).fetchone()
        if found and found[0]:
            yield Violation(rule, found[0], str(found[1]))
