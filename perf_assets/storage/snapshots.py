"""Copies of databases while others use them: SQLite files by SQLite's own copying, PostgreSQL by pg_dump."""

import shutil
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from perf_assets.core.errors import BadInputError, DatabaseError
from perf_assets.infra.postgres import Address

_HEADER = b"SQLite format 3\0"
_BUSY_SECONDS = 60.0
_PLACES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
}
"""Columns of MLflow's tables with the locations of artifacts."""


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def copy_sqlite(path: Path, copy: Path) -> None:
    """Copy a database as it is at one moment, whoever writes it meanwhile."""
    try:
        with (
            closing(sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=_BUSY_SECONDS)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error as error:
        raise BadInputError(f"{path} cannot be copied ({error}): stop what uses it, and try again") from None


def move_sqlite_places(path: Path, moved: Mapping[str, str]) -> None:
    """Let an MLflow store find its artifacts where they are now: `moved` is the folder before -> the one now."""
    with closing(sqlite3.connect(path)) as database:
        there = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, column, before, now in _moves(moved):
            if table in there:
                database.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                    (now, len(before) + 1, len(before), before),
                )
        database.commit()


def move_postgres_places(address: Address, schema: str, moved: Mapping[str, str]) -> None:
    """Let the MLflow store in a schema of a PostgreSQL database find its artifacts where they are now."""
    from sqlalchemy import text

    with address.connected() as connection:
        for table, column, before, now in _moves(moved):
            connection.execute(
                text(
                    f"UPDATE {schema}.{table} SET {column} = :now || substr({column}, :after) "
                    f"WHERE substr({column}, 1, :length) = :before"
                ),
                {"now": now, "after": len(before) + 1, "length": len(before), "before": before},
            )


def dump_postgres(address: Address, schemas: Sequence[str], file: Path) -> None:
    """Write schemas of a database into a file, as they are at one moment."""
    wanted = [f"--schema={schema}" for schema in schemas]
    _run("pg_dump", address, "--format=custom", "--no-owner", "--no-privileges", *wanted, f"--file={file}")


def load_postgres(address: Address, file: Path) -> None:
    """Make the schemas of a dump in a database that has none of their tables: all or nothing."""
    _run("pg_restore", address, "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", str(file))


def tables_of_postgres(address: Address, schemas: Sequence[str]) -> list[str]:
    """Tables that a database has in these schemas."""
    from sqlalchemy import text

    question = text("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = ANY(:schemas) ORDER BY 1")
    with address.connected() as connection:
        return [str(name) for name in connection.execute(question, {"schemas": list(schemas)}).scalars()]


def _moves(moved: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    return [
        (table, column, before, now)
        for table, columns in _PLACES.items()
        for column in columns
        for before, now in moved.items()
    ]


def _quoted(path: Path) -> str:
    return path.absolute().as_uri().removeprefix("file://")


def _run(program: str, address: Address, *arguments: str) -> None:
    """Run a client program of PostgreSQL; it takes the password from where the others do."""
    address.check()
    place = shutil.which(program)
    if place is None:
        raise BadInputError(f"{program} is not installed, and PostgreSQL keeps the state: install postgresql-client")
    query = {name: value for name, value in address.url.query.items() if name != "options"}
    url = address.url.set(drivername="postgresql", query=query).render_as_string(hide_password=False)
    done = subprocess.run([place, f"--dbname={url}", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[0]
        raise DatabaseError(f"{program} failed for {address} ({reason})")
