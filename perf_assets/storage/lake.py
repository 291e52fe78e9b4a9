"""The folders of the data lake, and what stands in its landing zone."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import check_machine_id
from perf_assets.core.manifest import MANIFEST_NAME, MAX_MANIFEST_BYTES, check_bundle_name, digest_of
from perf_assets.core.places import lake_root


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
        """DuckDB file loaded from the record."""
        return self.root / "warehouse.duckdb"

    @property
    def locks(self) -> Path:
        """Lock files between processes."""
        return self.root / "locks"

    def site_catalogues(self) -> list[Path]:
        """Counter catalogue files that this site adds."""
        return sorted((self.root / "catalogue").glob("*.yaml"))

    def machines(self) -> list[str]:
        """Ids of the machines that have a landing folder or a record, sorted."""
        landed = {entry.name for entry in _folders(self.landing)}
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
        path = self.directory / MANIFEST_NAME
        if path.is_symlink() or not path.is_file():
            raise BadInputError(f"{MANIFEST_NAME} is not a plain file: write a real one")
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise BadInputError(f"{MANIFEST_NAME} is larger than {MAX_MANIFEST_BYTES} bytes: split the bundle")
        return path.read_bytes()

    @cached_property
    def digest(self) -> str:
        """Identity: sha256 of the manifest; empty where it cannot be read."""
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


def landed_bundles(lake: Lake, machine: str) -> list[LandedBundle]:
    """Complete bundles of a machine, by name; a folder without a manifest is still being written."""
    return [
        LandedBundle(Path(entry.path))
        for entry in sorted(_folders(lake.landing / machine), key=lambda entry: entry.name)
        if os.path.lexists(os.path.join(entry.path, MANIFEST_NAME)) and _why_not_a_bundle(entry) is None  # noqa: PTH118
    ]


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
    try:
        check_machine_id(name)
    except ValueError:
        return False
    return True


def _why_not_a_bundle(entry: "os.DirEntry[str]") -> str | None:
    if entry.is_symlink():
        return "is a symbolic link: land a real folder"
    try:
        check_bundle_name(entry.name)
    except BadInputError as error:
        return str(error)
    return None
