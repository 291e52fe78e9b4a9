"""Files that are either whole or absent."""

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

_READ_TRIES = 5
_Result = TypeVar("_Result")


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never half of it."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; what was written there takes the place of `path` on success.

    What another writer left there is removed, so that one that was killed leaves nothing behind and one that was
    stalled cannot publish any more: writers of one path must hold a lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_temporaries(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporaries(path: Path) -> None:
    """Remove what writers of `path` left that did not come to their end."""
    for entry in path.parent.iterdir():
        if entry.name.startswith(f".{path.name}.") and entry.suffix == ".tmp" and not entry.is_dir():
            entry.unlink(missing_ok=True)


def steadily(read: Callable[[], _Result]) -> _Result:
    """Read a file that another host may replace at this moment: NFS then raises an error of a stale file."""
    for _ in range(_READ_TRIES):
        try:
            return read()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
    return read()


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Give an empty temporary folder beside `path`; with what was written there it takes the place of `path`.

    What a process killed between the two renames left is put back by the next.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, superseded = (path.with_name(f".{path.name}.{ending}") for ending in ("tmp", "old"))
    put_back(path)
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(superseded, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            path.rename(superseded)
        temporary.rename(path)
    finally:
        if not path.exists() and superseded.exists():
            superseded.rename(path)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(superseded, ignore_errors=True)


def put_back(path: Path) -> None:
    """Undo what a process killed between the two renames of `replacing_folder` left."""
    superseded = path.with_name(f".{path.name}.old")
    if superseded.exists() and not path.exists():
        superseded.rename(path)


def publish(temporary: Path, path: Path) -> None:
    """Give a finished file its final name, on disk before anybody can see it."""
    _sync(temporary)
    temporary.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
