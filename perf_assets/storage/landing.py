"""Putting bundles into the landing zone, whole or not at all, and verifying what others put there."""

import errno
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import (
    MANIFEST_NAME,
    MAX_FILE_BYTES,
    MAX_FILES,
    BundleFacts,
    FileEntry,
    Manifest,
    check_bundle_name,
    check_relative_path,
    digest_of,
    parse_manifest,
)
from perf_assets.infra.files import sha256_of
from perf_assets.storage.lake import Lake, LandedBundle, landed_digests

LANDING_SECONDS = "PERF_ASSETS_LANDING_SECONDS"
_DEFAULT_SECONDS = 30


@dataclass(frozen=True)
class Landing:
    """Outcome of landing one bundle."""

    bundle: LandedBundle
    is_new: bool
    """False where the same content stood there already."""


def land(lake: Lake, facts: BundleFacts, name: str | None, write: Callable[[Path], None]) -> Landing:
    """Write a bundle's files with `write(folder)` and let the bundle appear in the landing zone at once.

    Without a name the bundle is named after its content, so landing the same thing again changes nothing.
    A bundle of the same name and other content, or whose files were damaged, is superseded.
    """
    if name is not None:
        check_bundle_name(name)
    parent = lake.landing / facts.machine
    incoming = _temporary(parent, ".incoming-")
    try:
        write(incoming)
        manifest = Manifest(**facts.model_dump(), files=tuple(_describe_files(incoming)))
        directory = parent / (name or _content_name(manifest))
        if _is_already_landed(LandedBundle(directory), manifest, compare_time=name is not None):
            return Landing(LandedBundle(directory), is_new=False)
        (incoming / MANIFEST_NAME).write_bytes(manifest.to_json())
        incoming.chmod(0o755)
        _swap_in(incoming, directory)
        return Landing(LandedBundle(directory), is_new=True)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
        with suppress(OSError):
            # A machine's folder exists only if something landed for it.
            parent.rmdir()


def copying(source: Path, only: Collection[str] | None = None) -> Callable[[Path], None]:
    """A `write` for `land` that copies a file, or all files of a folder but its manifest; links are refused.

    `only` restricts the folder to these files, which are copied without the folders that they have in common.
    """

    def write(folder: Path) -> None:
        if source.is_symlink():
            raise BadInputError(f"{source} is a symbolic link: name the file itself")
        if source.is_file():
            shutil.copyfile(source, folder / source.name)
            return
        common = "" if only is None else os.path.commonpath([PurePosixPath(path).parent for path in only])
        # A tree of many bundles is not gone through for each of them.
        for path in plain_files(source) if only is None else _plain(source, only):
            if path != MANIFEST_NAME:
                copy = folder / os.path.relpath(path, common or ".")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / path, copy)

    return write


def _plain(folder: Path, paths: Collection[str]) -> Iterator[str]:
    """Some relative paths, sorted; one that leads over a link is refused."""
    real = folder.resolve()
    for path in sorted(paths):
        if (folder / path).resolve() != real / path:
            raise BadInputError(f"{path!r} is a symbolic link: put the file itself there")
        yield path


def plain_files(folder: Path) -> Iterator[str]:
    """Relative paths of all files below `folder`, sorted; anything that is not a plain file is refused."""
    pending, names = [""], []
    while pending:
        prefix = pending.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.is_symlink():
                    raise BadInputError(f"{path!r} is a symbolic link: put the file itself there")
                if entry.is_dir():
                    pending.append(f"{path}/")
                elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    names.append(path)
                else:
                    raise BadInputError(f"{path!r} is neither a file nor a folder: remove it")
        if len(names) > MAX_FILES:
            raise BadInputError(f"{folder} has more than {MAX_FILES} files: split it")
    yield from sorted(names)


def verified_manifest(bundle: LandedBundle, machine: str) -> Manifest:
    """The bundle's manifest, once all that it says of machine and files is found to be true."""
    manifest = parse_manifest(bundle.manifest_bytes)
    if manifest.machine != machine:
        raise BadInputError(
            f"manifest.json says machine {manifest.machine!r}, but the bundle lies in the folder of {machine!r}: "
            "land it where it belongs"
        )
    present = set(plain_files(bundle.directory)) - {MANIFEST_NAME}
    listed = {entry.path for entry in manifest.files}
    if present != listed:
        path = min(present ^ listed)
        problem = "is listed in manifest.json but missing" if path in listed else "is not listed in manifest.json"
        raise BadInputError(f"file {path!r} {problem}: land the bundle again")
    for entry in manifest.files:
        _verify_file(bundle.directory / entry.path, entry)
    return manifest


def landed_datasets(lake: Lake, machine: str) -> set[str]:
    """Datasets that bundles of a machine in the landing zone say they belong to."""
    names = set()
    for name, digest in landed_digests(lake, machine):
        if digest:
            data = LandedBundle(lake.landing / machine / name).manifest_bytes
            with suppress(BadInputError):
                # Most bundles are not samples: they need not be parsed.
                dataset = parse_manifest(data).dataset_name if b'"samples"' in data else None
                names |= {dataset} if dataset else set()
    return names


def _verify_file(path: Path, entry: FileEntry) -> None:
    size = path.lstat().st_size
    if size != entry.size:
        raise BadInputError(
            f"file {entry.path!r} has {size} bytes, manifest.json says {entry.size}: the copy is incomplete, "
            "land it again"
        )
    if sha256_of(path) != entry.sha256:
        raise BadInputError(f"file {entry.path!r} does not have the sha256 of manifest.json: land it again")


def _describe_files(folder: Path) -> Iterator[FileEntry]:
    for path in plain_files(folder):
        try:
            check_relative_path(path)
        except ValueError as error:
            raise BadInputError(f"{error}: rename it") from None
        size = (folder / path).stat().st_size
        if size > MAX_FILE_BYTES:
            raise BadInputError(f"file {path!r} has {size} bytes; the limit is {MAX_FILE_BYTES}: split it")
        yield FileEntry(path=path, size=size, sha256=sha256_of(folder / path))


def _content_name(manifest: Manifest) -> str:
    """Name made of kind, application and content; when it was collected is not content."""
    content = manifest.model_copy(update={"collected_at": None}).model_dump_json(exclude_none=True)
    stem = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in manifest.app or "")
    return "-".join(part for part in (manifest.kind, stem[:60], digest_of(content.encode())[:12]) if part)


def _temporary(parent: Path, prefix: str) -> Path:
    """A new folder in `parent`, which another process may be removing because it is empty."""
    while True:
        parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))


def _is_already_landed(bundle: LandedBundle, manifest: Manifest, *, compare_time: bool) -> bool:
    """Whether this content has landed already, with all its files undamaged."""
    if not (bundle.directory / MANIFEST_NAME).is_file():
        return False
    try:
        if compare_time and bundle.manifest_bytes != manifest.to_json():
            return False
        return verified_manifest(bundle, manifest.machine).files == manifest.files
    except (BadInputError, FileNotFoundError):
        # Damaged, or another process is superseding it at this moment.
        return False


def _swap_in(incoming: Path, directory: Path) -> None:
    """Let a bundle appear; where others land the same name at the same time, the last one stays."""
    superseded = None
    try:
        while True:
            try:
                incoming.replace(directory)
                return
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            if superseded is None:
                superseded = _temporary(directory.parent, ".superseded-")
            with suppress(FileNotFoundError):
                directory.replace(superseded / uuid.uuid4().hex)
    finally:
        if superseded is not None:
            shutil.rmtree(superseded, ignore_errors=True)


def landing_seconds() -> int:
    """Seconds between two looks at what landed, and at what follows from it: `PERF_ASSETS_LANDING_SECONDS`, or 30."""
    given = os.environ.get(LANDING_SECONDS) or str(_DEFAULT_SECONDS)
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise BadInputError(f"{LANDING_SECONDS} is {given!r}: give a whole number of seconds, 1 or more")
    return int(given)
