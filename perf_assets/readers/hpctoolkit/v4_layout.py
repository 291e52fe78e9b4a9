"""Bytes of HPCToolkit's v4 databases: header, footer, and structures that are checked before they are read."""

import mmap
import struct
from collections.abc import Iterator

from perf_assets.readers.files import SourceFile, unreadable

MAGIC = b"HPCTOOLKIT"
MAJOR_VERSION = 4
FOOTERS = {b"meta": b"_meta.db", b"prof": b"_prof.db"}

_HEADER_BYTES = 16
_MAX_TEXT_BYTES = 4096
_POINTER = struct.Struct("<Q")
_SECTION = struct.Struct("<QQ")


class Database:
    """One file of a v4 database. Every access is checked against the file's size."""

    def __init__(self, source: SourceFile, data: bytes | mmap.mmap, kind: bytes) -> None:
        self.source = source
        self.data = data
        self.size = len(data)
        head = bytes(data[:_HEADER_BYTES])
        if len(head) < _HEADER_BYTES or not head.startswith(MAGIC + kind):
            raise self.damaged("its header is not that of HPCToolkit v4")
        self.version = (head[14], head[15])
        if head[14] != MAJOR_VERSION:
            raise unreadable(source, f"has format version {head[14]}.{head[15]}; only version 4 is understood")
        if bytes(data[-8:]) != FOOTERS[kind]:
            raise unreadable(source, f"is cut off: it does not end with {FOOTERS[kind].decode()}; copy it again")

    def damaged(self, why: str) -> Exception:
        """The error for a file whose structure is broken."""
        return unreadable(self.source, f"is damaged ({why}): copy the database again")

    def section(self, index: int, minimum: int) -> int:
        """Offset of a section, which must have at least `minimum` bytes."""
        size, offset = self.unpack(_SECTION, _HEADER_BYTES + 16 * index)
        if size < minimum or offset + size > self.size:
            raise self.damaged(f"section {index} lies outside of the file")
        return int(offset)

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        """Fields of the structure at `offset`."""
        if offset + layout.size > self.size:
            raise self.damaged(f"offset {offset} lies outside of the file")
        return layout.unpack_from(self.data, offset)

    def array(self, layout: struct.Struct, offset: int, count: int, stride: int) -> Iterator[tuple[int, ...]]:
        """Structures of an array whose elements are `stride` bytes apart."""
        if count == 0:
            return iter(())
        if stride < layout.size:
            raise self.damaged(f"elements of {stride} bytes where at least {layout.size} are needed")
        if offset + stride * (count - 1) + layout.size > self.size:
            raise self.damaged(f"an array of {count} elements lies outside of the file")
        unpack_from, data = layout.unpack_from, self.data
        return (unpack_from(data, position) for position in range(offset, offset + stride * count, stride))

    def pointers(self, offset: int, count: int) -> list[int]:
        """Array of pointers."""
        return [pointer for (pointer,) in self.array(_POINTER, offset, count, _POINTER.size)]

    def text(self, offset: int) -> str:
        """The NUL-terminated text at `offset`."""
        if offset >= self.size:
            raise self.damaged(f"text at {offset} lies outside of the file")
        end = self.data.find(b"\0", offset, offset + _MAX_TEXT_BYTES)
        if end < 0:
            raise self.damaged(f"text at {offset} has no end")
        try:
            return bytes(self.data[offset:end]).decode()
        except UnicodeDecodeError:
            raise self.damaged(f"text at {offset} is not UTF-8") from None
