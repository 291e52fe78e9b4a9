"""Lines of a job log that somebody gave: plain or gzip, and never more of them than a log of its size can have."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from perf_assets.core.errors import UnreadableFileError

_MOST_BYTES = 2_000_000_000
_MOST_GROWTH = 50
"""Largest ratio of a log to its compressed form: text of numbers shrinks to a tenth at best."""
_FREE_BYTES = 2**20
_MOST_LINE_BYTES = 2**16


def log_lines(path: Path) -> Iterator[str]:
    """Decoded as Latin-1: comments hold names in any encoding. A small file that unpacks to a huge one is refused."""
    try:
        with path.open("rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        allowed = min(_MOST_BYTES, _MOST_GROWTH * path.stat().st_size + _FREE_BYTES) if is_compressed else _MOST_BYTES
        with gzip.open(path) if is_compressed else path.open("rb") as file:
            while line := file.readline(_MOST_LINE_BYTES):
                allowed -= len(line)
                if allowed < 0:
                    raise UnreadableFileError(f"{path} unpacks to more than a trace of its size: cut it into parts")
                if len(line) == _MOST_LINE_BYTES:
                    raise UnreadableFileError(f"{path} has a line that is too long for a trace")
                yield line.decode("latin-1")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFileError(f"{path} is a damaged gzip file ({error})") from None
