"""Carrying the state of Dagster and MLflow over from SQLite files to a PostgreSQL database that has their tables.

Everything is one transaction: where anything fails or a count differs, the database is as it was before. Artifacts
stay where they are. Events of a run are in a file of its own in SQLite, and some of them in an index of all runs too,
by whose numbers assets, checks and cursors point to them: those keep their numbers, the others get new ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perf_assets.core.errors import BadInputError
from perf_assets.infra.postgres import Address

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Table

_ROWS_AT_ONCE = 1000
_EVENTS = "event_logs"
_OF_THE_DATABASE = {"alembic_version", "secondary_indexes", "instance_info", "daemon_heartbeats"}
"""Tables that say what a database is like, or who is alive: the new one has its own."""


@dataclass(frozen=True)
class DatabaseFiles:
    """SQLite files with tables for one schema of the database."""

    schema: str
    tables: tuple[Path, ...]
    """Each has tables of its own."""
    events: tuple[Path, ...] = ()
    """Files of events, one per run."""


def dagster_files(home: Path) -> DatabaseFiles:
    """SQLite files of Dagster in a home."""
    shards = sorted(path for path in (home / "history" / "runs").glob("*.db") if path.stem != "index")
    every = (home / "history" / "runs.db", home / "history" / "runs" / "index.db", home / "schedules" / "schedules.db")
    return DatabaseFiles("dagster", tuple(path for path in every if path.is_file()), tuple(shards))


def mlflow_files(store: Path) -> DatabaseFiles:
    """SQLite file of MLflow."""
    return DatabaseFiles("mlflow", (store,) if store.is_file() else ())


def carry_over(address: Address, sources: Iterable[DatabaseFiles]) -> dict[str, int]:
    """Copy all rows into the empty tables of the database; rows by table, compared with those of the files."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    counts: dict[str, int] = {}
    with address.locked("carry over"):
        engine = create_engine(address.url)
        try:
            with engine.begin() as target:
                for files in sources:
                    counts |= _carry(target, files)
        except (SQLAlchemyError, ValueError) as error:
            problem = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise BadInputError(f"nothing was carried over, {address} is as it was ({problem})") from None
        finally:
            engine.dispose()
    return counts


def _carry(target: "Connection", files: DatabaseFiles) -> dict[str, int]:
    from sqlalchemy import MetaData

    here = MetaData(schema=files.schema)
    here.reflect(target)
    _refuse_if_used(target, here)
    expected: dict[str, int] = {}
    with _opened(files.tables) as sources:
        origin = {table.name: (source, table) for source, known in sources for table in known.sorted_tables}
        wanted = [table for table in here.sorted_tables if table.name in origin and table.name not in _OF_THE_DATABASE]
        _refuse_unknown(origin, here)
        for table in reversed(wanted):
            target.execute(table.delete())
        for table in wanted:
            source, known = origin[table.name]
            expected[table.name] = _insert(target, table, _rows(source, known))
        if files.events:
            expected[_EVENTS] = _carry_events(target, here.tables[f"{files.schema}.{_EVENTS}"], files.events)
        for table in wanted:
            if table.name != _EVENTS:
                _compare(table.name, _count(target, table), _count(*origin[table.name]))
            _set_next_number(target, table)
    return {f"{files.schema}.{name}": count for name, count in expected.items()}


def _refuse_if_used(target: "Connection", here: "MetaData") -> None:
    for name in ("runs", _EVENTS, "registered_models"):
        table = here.tables.get(f"{here.schema}.{name}")
        if table is not None and (count := _count(target, table)):
            raise BadInputError(f"the database already holds {count} rows of {table}: carry over into an empty one")


def _refuse_unknown(origin: "Mapping[str, tuple[Connection, Table]]", here: "MetaData") -> None:
    """Refuse rows and columns that the new tables cannot hold."""
    known = {table.name: set(table.columns.keys()) for table in here.sorted_tables}
    for name, (source, table) in origin.items():
        if name in _OF_THE_DATABASE or name.startswith("sqlite_") or not _count(source, table):
            continue
        more = set(table.columns.keys()) - known.get(name, set())
        if more:
            raise BadInputError(
                f"table {name} of {source.engine.url.database} has {', '.join(sorted(more))}, which the database does "
                "not know: bring the SQLite files to this version first (dagster instance migrate, mlflow db upgrade)"
            )


def _carry_events(target: "Connection", table: "Table", shards: Iterable[Path]) -> int:
    """Add the events of each run that are not there from the index; all events of all runs."""
    from sqlalchemy import select

    _set_next_number(target, table)
    total = 0
    for path in shards:
        with _opened((path,)) as ((source, known),):
            rows = list(_rows(source, known.tables[_EVENTS]))
            of_run = table.c.run_id == path.stem
            there = Counter(target.execute(select(table.c.event).where(of_run)).scalars())
            missing = []
            for row in rows:
                if there[row["event"]]:
                    there[row["event"]] -= 1
                else:
                    missing.append({name: value for name, value in row.items() if name != "id"})
            _insert(target, table, missing)
            _compare(f"{_EVENTS} of run {path.stem}", _count(target, table, of_run), len(rows))
            total += len(rows)
    _set_next_number(target, table)
    return total


def _rows(source: "Connection", table: "Table") -> Iterator[dict[str, Any]]:
    """All rows of a table, in the order of its key."""
    from sqlalchemy import select

    for row in source.execute(select(table).order_by(*table.primary_key.columns)):
        yield dict(row._mapping)


def _insert(target: "Connection", table: "Table", rows: Iterable[dict[str, Any]]) -> int:
    computed = {column.name for column in table.columns if column.computed is not None}
    count = 0
    source = iter(rows)
    while some := list(islice(source, _ROWS_AT_ONCE)):
        kept = [{name: value for name, value in row.items() if name not in computed} for row in some]
        target.execute(table.insert().inline(), kept)
        count += len(kept)
    return count


def _count(connection: "Connection", table: "Table", condition: Any = True) -> int:
    from sqlalchemy import func, select, true

    where = true() if condition is True else condition
    return int(connection.execute(select(func.count()).select_from(table).where(where)).scalar_one())


def _compare(what: str, counted: int, expected: int) -> None:
    if counted != expected:
        raise BadInputError(
            f"{what}: {counted} rows arrived, {expected} are in the SQLite file, which something still writes: nothing "
            "was carried over, stop that and try again"
        )


def _set_next_number(target: "Connection", table: "Table") -> None:
    """Numbers that the database gives from now on come after those that are there."""
    from sqlalchemy import func, select, text

    for column in table.primary_key.columns:
        name = text("SELECT pg_get_serial_sequence(:table, :column)")
        sequence = target.execute(name, {"table": str(table), "column": column.name}).scalar()
        if sequence:
            last = target.execute(select(func.max(column))).scalar()
            target.execute(select(func.setval(sequence, last or 1, last is not None)))


@contextmanager
def _opened(files: Iterable[Path]) -> Iterator[list["tuple[Connection, MetaData]"]]:
    """Connections to SQLite files, each with the tables it has."""
    from sqlalchemy import MetaData, create_engine
    from sqlalchemy.pool import NullPool

    opened: list[tuple[Connection, MetaData]] = []
    try:
        for file in files:
            connection = create_engine(f"sqlite:///{file}", poolclass=NullPool).connect()
            known = MetaData()
            opened.append((connection, known))
            known.reflect(connection)
        yield opened
    finally:
        for connection, _ in opened:
            connection.close()
