"""Files as readers see them: found without following links, opened once, with their first bytes at hand."""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.manifest import MANIFEST_NAME, MAX_FILES, SPEC_NAME
from perf_assets.core.text import printable

HEAD_BYTES = 16 * 1024
"""Bytes of a file that are read at once: all of most small files, so that they are opened once."""
MAX_DEPTH = 32
"""Directories below each other."""

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A regular file that is read."""

    path: str
    """Path of the file."""
    name: str
    """Its path relative to what was read, with `/`."""
    size: int
    """Bytes."""
    head: bytes
    """The first `HEAD_BYTES`, or all of it."""

    @property
    def directory(self) -> str:
        """Directory relative to what was read; `.` for the top."""
        return self.name.rpartition("/")[0] or "."

    @property
    def basename(self) -> str:
        """File name without its directory."""
        return self.name.rpartition("/")[2]


def unreadable(source: SourceFile | str, problem: str) -> UnreadableFileError:
    """The error for a file: which, what is wrong, what to do."""
    name = source if isinstance(source, str) else source.name
    return UnreadableFileError(f"{printable(name)}: {problem}")


def open_file(path: str, name: str) -> tuple[int, int]:
    """Open a regular file; return its descriptor and size. Never waits for a pipe, never follows a link."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except OSError as error:
        raise unreadable(name, f"cannot be opened ({error.strerror})") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise unreadable(name, "is not a regular file")
    return descriptor, status.st_size


def load(path: str, name: str) -> SourceFile:
    """Open a file and read its first bytes."""
    descriptor, size = open_file(path, name)
    try:
        return SourceFile(path, name, size, os.read(descriptor, HEAD_BYTES))
    finally:
        os.close(descriptor)


def scan(root: Path, only: frozenset[str] | None = None) -> list[SourceFile]:
    """All files of a directory tree in order of their names, or the one file that `root` is.

    Links are never followed and `manifest.json` and `machine.yaml` at the top are left out. `only` restricts
    the tree to these relative paths.
    """
    if not root.is_dir():
        if not root.exists():
            raise unreadable(str(root), "does not exist")
        return [load(os.path.realpath(root), root.name)]
    files = []
    for count, (name, path) in enumerate(_walk(str(root), "", 0)):
        if count >= MAX_FILES:
            raise unreadable(root.name, f"holds more than {MAX_FILES} files")
        if name not in (MANIFEST_NAME, SPEC_NAME) and (only is None or name in only):
            files.append((name, path))
    files.sort()
    return [load(path, name) for name, path in files]


@contextmanager
def system_errors(name: str) -> Iterator[None]:
    """Turns what the operating system refuses into an error that names what was read."""
    try:
        yield
    except OSError as error:
        raise unreadable(name, f"cannot be read ({error.strerror or type(error).__name__})") from None


def _walk(directory: str, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > MAX_DEPTH:
        raise unreadable(prefix, f"lies more than {MAX_DEPTH} directories deep")
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, f"{prefix}{entry.name}/", depth + 1)
            elif entry.is_file(follow_symlinks=False):
                yield prefix + entry.name, entry.path


def read_bytes(source: SourceFile, limit: int) -> bytes:
    """The whole file; one that is larger than `limit` bytes is refused."""
    if source.size > limit:
        raise unreadable(source, f"is too large for its format: {source.size} bytes, the limit is {limit}")
    if source.size <= len(source.head):
        return source.head
    descriptor, _ = open_file(source.path, source.name)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(limit + 1)


def read_text(source: SourceFile, limit: int) -> str:
    """The whole file as UTF-8 text."""
    try:
        return read_bytes(source, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(source, f"is not UTF-8 text (byte {error.start})") from None


@contextmanager
def opened(source: SourceFile) -> Iterator[BinaryIO]:
    """The file as a binary stream."""
    descriptor, _ = open_file(source.path, source.name)
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


@contextmanager
def mapped(source: SourceFile, copy_below: int = 2**20) -> Iterator[bytes | mmap.mmap]:
    """The whole file as addressable bytes: small ones are copied, large ones stay on disk."""
    if source.size <= copy_below:
        yield read_bytes(source, copy_below)
        return
    descriptor, size = open_file(source.path, source.name)
    try:
        window = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    with window:
        yield window
