"""Locks between processes of one host."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perf_assets.core.errors import BusyError


@contextmanager
def exclusive(lock: Path, purpose: str, wait_seconds: float) -> Iterator[None]:
    """Hold `lock` alone among all processes; the system releases it when a process dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+") as file:
        _acquire(file.fileno(), lock, purpose, wait_seconds)
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _acquire(descriptor: int, lock: Path, purpose: str, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = lock.read_text().strip() or "unknown"
                raise BusyError(
                    f"{purpose} is busy: process {holder} has held {lock} for more than {wait_seconds:.0f} s; "
                    "wait for it to end, or stop it, and try again"
                ) from None
            time.sleep(0.05)
