"""`perf-assets database`."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_rows, say
from perf_assets.core.errors import BadInputError, BusyError, DatabaseError
from perf_assets.core.paths import (
    check_dagster_home,
    dagster_home,
    database_of,
    mlflow_tracking_uri,
    mlflow_uri_file,
)
from perf_assets.core.text import without_passwords
from perf_assets.infra.files import write_bytes
from perf_assets.infra.locks import exclusive
from perf_assets.infra.postgres import Address, in_dagster_yaml, is_postgres

_DAGSTER, _MLFLOW = "dagster", "mlflow"
"""Schemas in the database: both have tables of the same names."""
_SQLITE = "sqlite"


@dataclass(frozen=True)
class Store:
    """Place of one kind of state."""

    what: str
    where: str
    problem: str
    """Reason why it cannot be used; empty where it can."""


@click.command()
@click.argument("address", required=False)
@click.option("--carry-over", is_flag=True, help="Copy runs, events, cursors and models of the SQLite files first.")
@json_option
def command(address: str | None, carry_over: bool, as_json: bool) -> None:
    """Say which database keeps Dagster's and MLflow's state, or use another from now on.

    ADDRESS is postgresql://USER@HOST:PORT/DATABASE, or 'sqlite' for the files that are used without a database
    server. The password comes from PGPASSWORD or ~/.pgpass. Nothing changes unless the new database can be used; what
    the old one holds stays there. With --carry-over the new one, which must be empty, holds it too.
    """
    if carry_over and address in (None, _SQLITE):
        raise BadInputError("--carry-over is from SQLite files to PostgreSQL: name a database, postgresql://…")
    if address is not None:
        if os.environ.get("MLFLOW_TRACKING_URI"):
            raise BadInputError("MLFLOW_TRACKING_URI is set, and would win over what this command writes: unset it")
        with _nothing_running(check_dagster_home()):
            if address == _SQLITE:
                _write_choice(None)
            else:
                _use_postgres(Address.given(address), carry_over=carry_over)
    in_use = stores()
    document = {"stores": [asdict(store) for store in in_use]}
    rows = [(store.what, store.where, store.problem or "can be used") for store in in_use]
    print_rows(document, "State", ["state of", "database", "now"], rows, as_json=as_json)


def stores() -> list[Store]:
    """The databases in use, and whether they answer."""
    dagster = database_of(dagster_home())
    mlflow = mlflow_tracking_uri()
    return [
        _looked_at("Dagster", dagster) if dagster else Store("Dagster", f"SQLite files in {dagster_home()}", ""),
        _looked_at("MLflow", mlflow) if is_postgres(mlflow) else Store("MLflow", without_passwords(mlflow), ""),
    ]


def _looked_at(what: str, address: str) -> Store:
    try:
        Address(address).check()
    except DatabaseError as error:
        return Store(what, str(Address(address)), str(error))
    return Store(what, str(Address(address)), "")


@contextmanager
def _nothing_running(home: Path) -> Iterator[None]:
    """Services would go on with the old database."""
    with ExitStack() as held:
        try:
            held.enter_context(exclusive(home / "up.lock", "perf-assets up", wait_seconds=0))
        except BusyError:
            busy_reason = "'perf-assets up' is running and would go on with the old database: stop it first"
            raise BusyError(busy_reason) from None
        yield


def _use_postgres(address: Address, *, carry_over: bool) -> None:
    """Make the database ready, and use it from now on."""
    if carry_over:
        _check_files()
    from perf_assets.defs.operate.launch import migrate_instance
    from perf_assets.registry.store import migrate

    address.make_schemas(_DAGSTER, _MLFLOW)
    with TemporaryDirectory() as folder:
        # With the configuration to be, so that nothing is switched to what Dagster would refuse.
        (Path(folder) / "dagster.yaml").write_text(_configuration(address))
        say("making Dagster's tables")
        migrate_instance(Path(folder))
    say("making MLflow's tables")
    migrate(Address(address.in_schema(_MLFLOW)))
    if carry_over:
        _carry_over(address)
    _write_choice(address)


def _check_files() -> None:
    """Only SQLite files that nothing writes can be carried over."""
    from perf_assets.defs.operate.dead_runs import runs_at_work
    from perf_assets.defs.operate.launch import open_instance

    if any(store.where.startswith("postgresql") for store in stores()):
        raise BadInputError("PostgreSQL is in use: --carry-over is from SQLite files only")
    with open_instance() as instance:
        at_work = runs_at_work(instance)
    if at_work:
        raise BusyError(f"runs are at work ({', '.join(run[:8] for run in at_work)}): wait for them, or stop them")


def _carry_over(address: Address) -> None:
    from perf_assets.storage.postgres_migration import carry_over, dagster_files, mlflow_files

    store = mlflow_files(Path(mlflow_tracking_uri().removeprefix(f"{_SQLITE}:///")))
    counts = carry_over(address, [dagster_files(dagster_home()), store])
    moved_rows = ", ".join(f"{table} {count}" for table, count in counts.items() if count)
    say(f"carried over, and counted again: {moved_rows or 'nothing, there were no rows'}")


def _write_choice(address: Address | None) -> None:
    """Let everything find the database, or the SQLite files for None; both or neither of the two files change."""
    file = mlflow_uri_file()
    before = file.read_bytes() if file.is_file() else None
    configuration = _configuration(address).encode()
    _put(file, None if address is None else f"{address.in_schema(_MLFLOW)}\n".encode())
    try:
        write_bytes(dagster_home() / "dagster.yaml", configuration)
    except BaseException:
        _put(file, before)
        raise


def _put(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    else:
        write_bytes(file, content)


def _configuration(address: Address | None) -> str:
    """dagster.yaml with this storage, and everything else in it as it is."""
    text = (dagster_home() / "dagster.yaml").read_text()
    return in_dagster_yaml(text, None if address is None else address.in_schema(_DAGSTER))
