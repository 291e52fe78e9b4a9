"""Backups: a folder with the record, the registry and Dagster's state, whole or not there, and the way back.

Ingestion and adaptation wait while tables are copied. A training may go on: what it writes last is copied first
(warehouse, tables of results, Dagster's events, registry), so that the copy is what would be left had it been stopped
at some moment. What only grows (artifacts, what landed) is copied at the end, so that everything that the others name
is there. Locks, logs of services and unfinished files stay behind.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import database_of, mlflow_tracking_uri, sqlite_file
from perf_assets.infra.files import write_bytes
from perf_assets.infra.leases import leased
from perf_assets.infra.locks import exclusive
from perf_assets.infra.postgres import Address, is_postgres
from perf_assets.storage.lake import Lake
from perf_assets.storage.snapshots import copy_sqlite, dump_postgres, is_sqlite

FORMAT = 1
NOTE = "backup.json"
"""File that says what a backup holds; written last."""
LAKE, HOME, DUMP = "data_lake", "dagster_home", "postgresql.dump"
"""Parts of a backup."""
_RECORD = f"{LAKE}/record"
DAGSTER, MLFLOW = "dagster", "mlflow"
"""Schemas of a PostgreSQL database, and distributions whose version says what their tables are like."""
RETENTION_LOCK = "retention.lock"
"""Lock of processes that remove artifacts, and of those that copy them."""
_SQLITE, _POSTGRES, _ELSEWHERE = "sqlite", "postgresql", "elsewhere"
_WAIT_SECONDS = 600.0
_LEFT_OUT = {f"{LAKE}/locks", f"{HOME}/service_logs", f"{HOME}/up.lock", f"{HOME}/open.lock"}
_LEFT_BEHIND = ("-wal", "-shm", "-journal", ".tmp", ".old")
"""Ends of names of files that belong to a moment: what SQLite copies has all of them in it."""


@dataclass
class Contents:
    """Content of a backup."""

    made_at: str
    lake: str
    """Folder that the lake had."""
    state: dict[str, str]
    """Place of Dagster's and MLflow's state: SQLite files, PostgreSQL, or elsewhere and so not in the backup."""
    versions: dict[str, str]
    format: int = FORMAT
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Bytes and sha256 of every file."""

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(size for size, _ in self.files.values())

    @classmethod
    def read(cls, backup: Path) -> "Contents":
        """The note of a backup; refuses a folder that is none, or is of a newer release."""
        file = backup / NOTE
        if not file.is_file():
            raise BadInputError(f"{backup} is no backup, it has no {NOTE}: name a folder of 'perf-assets backup'")
        try:
            document = json.loads(file.read_text())
            number, made_by = document["format"], document["versions"]["perf_assets"]
            if number != FORMAT:
                raise BadInputError(
                    f"{backup} is a backup of another version: perf_assets {made_by} wrote format {number}, this one "
                    f"({_version('perf_assets')}) reads {FORMAT}: restore it with perf_assets {made_by}"
                )
            contents = cls(**document)
        except (ValueError, TypeError, KeyError):
            raise BadInputError(f"{file} is damaged: take another backup") from None
        for name in (DAGSTER, MLFLOW):
            given, here = contents.versions.get(name, ""), _version(name)
            if given and here and _release(given) > _release(here):
                raise BadInputError(
                    f"{backup} is a backup of another version: it holds the state of {name} {given}, and {here} is "
                    f"installed, which cannot read it: install perf_assets {made_by} with {name} {given}"
                )
        return contents


def back_up(lake: Lake, home: Path, out: Path, say: Callable[[str], None]) -> Contents:
    """Copy everything into a new folder `out`, which appears as a whole."""
    _check_place(lake, home, out)
    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    _check_space(lake, home, out)
    state = {DAGSTER: _SQLITE if database_of(home) is None else _POSTGRES, MLFLOW: _kind_of_registry(lake)}
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    versions = {name: _version(name) for name in ("perf_assets", DAGSTER, MLFLOW)}
    contents = Contents(made_at, str(lake.root), state, versions)
    try:
        temporary.mkdir(parents=True)
        _copy(lake, home, temporary, contents, say)
        write_bytes(temporary / NOTE, json.dumps(asdict(contents), indent=1).encode())
        temporary.rename(out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return contents


def _copy(lake: Lake, home: Path, to: Path, contents: Contents, say: Callable[[str], None]) -> None:
    with ExitStack() as held:
        purpose = "taking a backup"
        lake.locks.mkdir(parents=True, exist_ok=True)
        held.enter_context(exclusive(lake.locks / RETENTION_LOCK, "removing of old models", _WAIT_SECONDS))
        with ExitStack() as writers:
            for machine in lake.machines():
                for name in (machine, f"adapt-{machine}"):
                    writers.enter_context(leased(lake.locks / f"{name}.lock", f"{purpose}: {name}", _WAIT_SECONDS))
            say("copying the record, and the state of Dagster and MLflow")
            with exclusive(lake.warehouse_lock, "the warehouse", _WAIT_SECONDS):
                for name in ("warehouse.duckdb", "warehouse.duckdb.wal"):
                    _copy_one(lake.root / name, to, f"{LAKE}/{name}", contents)
            _copy_tree(lake.root / "record", to, _RECORD, contents)
            _copy_databases(lake, home, to, contents)
        say("copying artifacts, what landed, and the rest")
        _copy_tree(lake.root, to, LAKE, contents, without=(f"{LAKE}/warehouse.duckdb", f"{_RECORD}/"))
        _copy_tree(home, to, HOME, contents)


def _copy_databases(lake: Lake, home: Path, to: Path, contents: Contents) -> None:
    """Everything that is written in place: SQLite files one by one, PostgreSQL at one moment."""
    uri, dagster = mlflow_tracking_uri(), database_of(home)
    chosen = {MLFLOW: uri if contents.state[MLFLOW] == _POSTGRES else None, DAGSTER: dagster}
    addresses = {schema: Address(text) for schema, text in chosen.items() if text}
    if addresses:
        if len({str(address) for address in addresses.values()}) > 1:
            raise BadInputError("Dagster and MLflow use two databases: back them up with pg_dump yourself")
        dump_postgres(next(iter(addresses.values())), sorted(addresses), to / DUMP)
        contents.files[DUMP] = _identity(to / DUMP)
    for root, part in ((home, HOME), (lake.root / "mlflow", f"{LAKE}/mlflow")):
        for path, name in _files(root, part):
            if path.suffix == ".db" and is_sqlite(path):
                _copy_one(path, to, name, contents)


def _copy_tree(root: Path, to: Path, part: str, contents: Contents, without: tuple[str, ...] = ()) -> None:
    for path, name in _files(root, part):
        if name not in contents.files and not name.startswith(without):
            _copy_one(path, to, name, contents)


def _copy_one(path: Path, to: Path, name: str, contents: Contents) -> None:
    target = to / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # What its owner takes away meanwhile (a run that ends, a page made anew) is not there any more.
    with suppress(FileNotFoundError):
        if path.suffix == ".db" and is_sqlite(path):
            copy_sqlite(path, target)
        else:
            shutil.copyfile(path, target)
        contents.files[name] = _identity(target)


def _files(root: Path, part: str) -> Iterator[tuple[Path, str]]:
    """Files below a folder with their names in the backup; links are followed for settings alone."""
    for folder, folders, names in os.walk(root):
        here = part if folder == str(root) else f"{part}/{Path(folder).relative_to(root).as_posix()}"
        folders[:] = sorted(n for n in folders if f"{here}/{n}" not in _LEFT_OUT and not _is_unfinished(n))
        for name in sorted(names):
            path, place = Path(folder) / name, f"{here}/{name}"
            is_settings = path.is_symlink() and part == HOME and path.suffix == ".yaml"
            if place in _LEFT_OUT or name.endswith((".lock", *_LEFT_BEHIND)) or (path.is_symlink() and not is_settings):
                continue
            if path.is_file():
                yield path, place


def _is_unfinished(name: str) -> bool:
    return name.startswith(".incoming-") or (name.startswith(".") and name.endswith(_LEFT_BEHIND))


def _kind_of_registry(lake: Lake) -> str:
    uri = mlflow_tracking_uri()
    if is_postgres(uri):
        return _POSTGRES
    file = sqlite_file(uri)
    is_own = file is not None and file.resolve().is_relative_to(lake.root.resolve())
    return _SQLITE if is_own else _ELSEWHERE


def _check_place(lake: Lake, home: Path, out: Path) -> None:
    if not lake.root.is_dir():
        raise BadInputError(f"there is no lake at {lake.root}: name its folder with -C or PERF_ASSETS_LAKE")
    if out.exists():
        raise BadInputError(f"{out} is there already: name a folder that is not, backups are never overwritten")
    for folder in (lake.root, home):
        if out.resolve().is_relative_to(folder.resolve()):
            raise BadInputError(f"{out} is in {folder}, which is to be saved: name a folder elsewhere")


def _check_space(lake: Lake, home: Path, out: Path) -> None:
    needed = sum(path.stat().st_size for root in (lake.root, home) for path, _ in _files(root, ""))
    there = next(path for path in (out.absolute().parent, *out.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise BadInputError(f"{there} has {free / 1e9:.1f} GB free, and {needed / 1e9:.1f} GB are to be saved")


def _identity(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
