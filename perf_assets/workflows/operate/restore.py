"""The way back from a backup: a home of its own, at any place, that answers as the one that was saved did."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import unfinished_restore
from perf_assets.infra.files import write_bytes
from perf_assets.infra.postgres import Address, in_dagster_yaml
from perf_assets.storage.snapshots import (
    load_postgres,
    move_postgres_places,
    move_sqlite_places,
    tables_of_postgres,
)
from perf_assets.workflows.operate.backup import DAGSTER, DUMP, HOME, LAKE, MLFLOW, Contents

_BLOCK_BYTES = 2**22


def restore(
    backup: Path, folder: Path, address: Address | None, workspace: bytes, say: Callable[[str], None]
) -> Contents:
    """Make `folder` a home that holds what the backup does; it appears as a whole, once every file was compared.

    `address` is of the empty database that takes what was in PostgreSQL; `workspace` is the file that says where
    Dagster finds the definitions.
    """
    contents = Contents.read(backup)
    _check_place(folder)
    _check_files(backup, contents)
    _check_database(backup, contents, address)
    unfinished = unfinished_restore(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    say(f"copying {len(contents.files):,} files, {contents.bytes / 1e9:.2f} GB")
    for name, (_, digest) in contents.files.items():
        if name != DUMP:
            _copy_checked(backup / name, unfinished / name, digest)
    for part in (LAKE, HOME):
        (unfinished / part).mkdir(parents=True, exist_ok=True)
    before = Path(contents.lake)
    places = {
        f"{before.as_uri()}/": f"{(folder / LAKE).as_uri()}/",
        f"{before}/": f"{folder / LAKE}/",
    }
    registry = unfinished / LAKE / "mlflow" / "mlflow.db"
    if registry.is_file():
        move_sqlite_places(registry, places)
    if address is not None:
        _fill_database(backup, unfinished, contents, address, places)
    write_bytes(unfinished / "workspace.yaml", workspace)
    if folder.is_dir():
        folder.rmdir()
    unfinished.rename(folder)
    return contents


def _check_place(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInputError(f"{folder} is there already, and not empty: name a new folder, nothing is overwritten")


def _check_files(backup: Path, contents: Contents) -> None:
    """All files are there in their size, before anything is copied; what is in them is compared on the way."""
    for name in contents.files:
        if not (backup / name).resolve().is_relative_to(backup.resolve()) or name.startswith("/"):
            raise BadInputError(f"{backup} names the file {name}, which is not in it: take another backup")
    lacking = [name for name, (size, _) in contents.files.items() if _size(backup / name) != size]
    if lacking:
        raise BadInputError(
            f"{backup} is not whole: {len(lacking)} of {len(contents.files)} files are missing or cut short, as "
            f"{lacking[0]}: copy the backup again, or take another"
        )


def _check_database(backup: Path, contents: Contents, address: Address | None) -> None:
    was_there = DUMP in contents.files
    if was_there and address is None:
        raise BadInputError(
            f"{backup} holds state that was in PostgreSQL: name an empty database with --database postgresql://…"
        )
    if address is None:
        return
    if not was_there:
        raise BadInputError(
            f"{backup} holds no state of PostgreSQL, but SQLite files: leave --database out, and move them afterwards "
            "with 'perf-assets database … --carry-over'"
        )
    present = tables_of_postgres(address, (DAGSTER, MLFLOW))
    if present:
        raise BadInputError(f"{address} has tables already, as {present[0]}: name an empty database")


def _copy_checked(source: Path, target: Path, digest: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    seen = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing:
        while block := reading.read(_BLOCK_BYTES):
            seen.update(block)
            writing.write(block)
    if seen.hexdigest() != digest:
        raise BadInputError(f"{source} is damaged, its content is not what was saved: take another backup")


def _fill_database(
    backup: Path, unfinished: Path, contents: Contents, address: Address, places: Mapping[str, str]
) -> None:
    load_postgres(address, backup / DUMP)
    if contents.state[MLFLOW] == "postgresql":
        move_postgres_places(address, MLFLOW, places)
        write_bytes(unfinished / LAKE / "mlflow" / "tracking_uri", f"{address.in_schema(MLFLOW)}\n".encode())
    if contents.state[DAGSTER] == "postgresql":
        file = unfinished / HOME / "dagster.yaml"
        write_bytes(file, in_dagster_yaml(file.read_text(), address.in_schema(DAGSTER)).encode())


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
