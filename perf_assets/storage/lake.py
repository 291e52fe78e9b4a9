"""The folders of the data lake, and what stands in its landing zone."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import lake_root, local_warehouse

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Lake:
    """Paths of one data lake."""

    root: Path

    @classmethod
    def default(cls) -> "Lake":
        """The lake that the environment or the checkout names."""
        return cls(lake_root())

    @property
    def landing(self) -> Path:
        """Producers write bundles here; nothing in it is ever edited."""
        return self.root / "landing"

    @property
    def quarantine(self) -> Path:
        """Reasons for what was refused."""
        return self.root / "quarantine"

    @property
    def record(self) -> Path:
        """Parquet files: the record."""
        return self.root / "record"

    @property
    def warehouse(self) -> Path:
        """DuckDB file loaded from the record: in the lake, or where `PERF_ASSETS_WAREHOUSE` puts it."""
        return local_warehouse(self.root) or self.root / "warehouse.duckdb"

    @property
    def warehouse_lock(self) -> Path:
        """Lock of the one writer that the warehouse has on this host."""
        own = local_warehouse(self.root)
        return own.with_suffix(".lock") if own else self.locks / "warehouse.lock"

    @property
    def reports(self) -> Path:
        """Pages and pictures for people; all of them can be made again."""
        return self.root / "reports"

    @property
    def locks(self) -> Path:
        """Lock files between processes."""
        return self.root / "locks"

    @property
    def models(self) -> Path:
        """Fitted models that later steps read; what people use is in the registry."""
        return self.root / "models"

    def site_catalogues(self) -> list[Path]:
        """Counter catalogue files that this site adds."""
        return sorted((self.root / "catalogue").glob("*.yaml"))

    def machines(self) -> list[str]:
        """Ids of the machines that have a landing folder or a record, sorted."""
        landed = {entry.name for entry in _folders(self.landing) if not entry.is_symlink()}
        recorded = {path.name.removeprefix("machine=") for path in self.record.glob("*/machine=*")}
        return sorted(name for name in landed | recorded if _is_machine(name))


@dataclass(frozen=True)
class LandedBundle:
    """A complete bundle in the landing zone."""

    directory: Path

    @property
    def name(self) -> str:
        """Name of the bundle's folder."""
        return self.directory.name

    @cached_property
    def manifest_bytes(self) -> bytes:
        """Content of its manifest."""
        data = _manifest_in(str(self.directory))
        if data is None:
            raise BadInputError("manifest.json is gone: land the bundle again")
        return data

    @cached_property
    def digest(self) -> str:
        """Identity: sha256 of the manifest; empty where it cannot be read."""
        from perf_assets.core.manifest import digest_of

        try:
            return digest_of(self.manifest_bytes)
        except BadInputError:
            return ""


@dataclass(frozen=True)
class Stray:
    """Something in the landing zone that cannot be a bundle of any machine."""

    path: Path
    reason: str

    @property
    def safe_name(self) -> str:
        """Its path in the landing zone, in characters that any file system takes."""
        return "+".join(quote(os.fsencode(part), safe="") for part in self.path.parts[-2:])


def landed_digests(lake: Lake, machine: str) -> Iterator[tuple[str, str]]:
    """Name and digest of each complete bundle of a machine, by name.

    A folder without a manifest is still being written. The digest is empty where the manifest cannot be read.
    """
    from perf_assets.core.manifest import digest_of

    folder = lake.landing / machine
    for entry in sorted([] if folder.is_symlink() else _folders(folder), key=lambda entry: entry.name):
        if _why_not_a_bundle(entry) is None:
            try:
                data = _manifest_in(entry.path)
            except BadInputError:
                yield entry.name, ""
            else:
                if data is not None:
                    yield entry.name, digest_of(data)


def _manifest_in(directory: str) -> bytes | None:
    """Content of the manifest in a folder, None where there is none. Called once per bundle, so it does little."""
    # The vocabulary is loaded where a manifest is looked at: '--help' of commands names the lake without it.
    from perf_assets.core.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES

    try:
        descriptor = os.open(f"{directory}/{MANIFEST_NAME}", _OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError:
        raise BadInputError(f"{MANIFEST_NAME} is not a plain file: write a real one") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadInputError(f"{MANIFEST_NAME} is not a plain file: write a real one")
        if status.st_size > MAX_MANIFEST_BYTES:
            raise BadInputError(f"{MANIFEST_NAME} is larger than {MAX_MANIFEST_BYTES} bytes: split the bundle")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def strays(lake: Lake) -> Iterator[Stray]:
    """Folders and links whose names or kinds the landing contract does not allow."""
    for machine in _folders(lake.landing):
        path = Path(machine.path)
        if machine.is_symlink():
            yield Stray(path, "is a symbolic link: land a real folder")
        elif not _is_machine(machine.name):
            yield Stray(path, "is not named by a machine id: use 1 to 64 of a-z 0-9 _ - , a letter or digit first")
        else:
            for entry in _folders(path):
                reason = _why_not_a_bundle(entry)
                if reason:
                    yield Stray(Path(entry.path), reason)


def _folders(parent: Path) -> list["os.DirEntry[str]"]:
    """Entries that could be folders of the contract; names with a leading dot are work in progress."""
    try:
        with os.scandir(parent) as entries:
            return [
                entry
                for entry in entries
                if not entry.name.startswith(".") and (entry.is_symlink() or entry.is_dir(follow_symlinks=False))
            ]
    except FileNotFoundError:
        return []


def _is_machine(name: str) -> bool:
    from perf_assets.core.machines import check_machine_id

    try:
        check_machine_id(name)
    except ValueError:
        return False
    return True


def _why_not_a_bundle(entry: "os.DirEntry[str]") -> str | None:
    from perf_assets.core.manifest import check_bundle_name

    if entry.is_symlink():
        return "is a symbolic link: land a real folder"
    try:
        check_bundle_name(entry.name)
    except BadInputError as error:
        return str(error)
    return None
