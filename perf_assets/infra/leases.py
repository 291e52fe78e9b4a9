"""Locks in a lake that several hosts share.

The operating system's lock on a file is certain among the processes of one host, and goes with a killed process; on a
shared file system other hosts may not see it. So whoever has it also takes a lease: a file with the next number in
a folder, which only one host can create. The holder keeps changing a count in it; a lease that is given back, or whose
count stands still for long, may be followed by the next. No clock, file time or process number of another host is
relied on. A holder that was stalled for so long finds a higher number, and must not publish anything any more.
"""

import errno
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from perf_assets.core.errors import BusyError
from perf_assets.infra.locks import exclusive

LEASE_SECONDS = 40.0
"""Seconds without a new count after which a lease is taken over."""
BEAT_SECONDS = 5.0
_POLL_SECONDS = 0.1
_BYTES = 512
NO_OS_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""Error numbers of file systems without locks."""


@contextmanager
def leased(lock: Path, purpose: str, wait_seconds: float) -> Iterator["Lease"]:
    """Hold `lock` alone among all processes of all hosts."""
    deadline = time.monotonic() + wait_seconds
    with ExitStack() as held:
        has_os_lock = True
        try:
            held.enter_context(exclusive(lock, purpose, wait_seconds))
        except OSError as error:
            if error.errno not in NO_OS_LOCKS:
                raise
            has_os_lock = False
        lease = _take(lock, purpose, deadline, has_os_lock=has_os_lock)
        try:
            lease.begin()
            yield lease
        finally:
            lease.give_back()


@dataclass
class Lease:
    """A lease that this process has taken."""

    lock: Path
    purpose: str
    number: int
    descriptor: int
    _note: dict[str, Any] = field(default_factory=lambda: {**_self(), "is_free": False, "beat": 0})
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        """Go on changing the count, in the background."""
        self._write()
        self._thread = threading.Thread(target=self._beat, name=f"lease {self.lock.stem}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise if another host has taken over: call it before anything is published."""
        last = _last(self.lock)
        if last is None or last[0] != self.number:
            other = _holder(last[1]) if last else "unknown"
            raise BusyError(
                f"{self.purpose} was taken over by {other}, because this process stood still for more than "
                f"{LEASE_SECONDS:.0f} s; what it had not published is dropped: try again"
            )

    def give_back(self) -> None:
        """Let the next one have it at once."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        try:
            with suppress(OSError):
                self._write(is_free=True)
        finally:
            os.close(self.descriptor)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            # In place: where the file is not the last one any more, this changes nothing that counts.
            with suppress(OSError):
                self._write(beat=self._note["beat"] + 1)

    def _write(self, **changed: Any) -> None:
        self._note |= changed
        os.pwrite(self.descriptor, json.dumps(self._note).encode().ljust(_BYTES), 0)
        # Other hosts see what the server has.
        os.fdatasync(self.descriptor)


def _take(lock: Path, purpose: str, deadline: float, *, has_os_lock: bool) -> Lease:
    seen: tuple[int, bytes] | None = None
    seen_at = time.monotonic()
    while True:
        last = _last(lock)
        if last != seen:
            seen, seen_at = last, time.monotonic()
        stands_still = time.monotonic() - seen_at >= LEASE_SECONDS
        if last is None or stands_still or _may_follow(last[1], has_os_lock=has_os_lock):
            lease = _create(lock, purpose, last[0] + 1 if last else 1)
            if lease is not None:
                return lease
        elif time.monotonic() >= deadline:
            raise BusyError(
                f"{purpose} is busy: {_holder(last[1])} holds {lock}; wait for it to end, or stop it, and try again"
                f" (where that host is down, it is taken over after {LEASE_SECONDS:.0f} s)"
            )
        else:
            time.sleep(_POLL_SECONDS)


def _may_follow(content: bytes, *, has_os_lock: bool) -> bool:
    """Whether a lease was given back, or is of a process of this host that must be dead: its OS lock is ours now."""
    note = _parsed(content)
    return bool(note.get("is_free")) or (has_os_lock and note.get("kernel") == kernel())


def _create(lock: Path, purpose: str, number: int) -> Lease | None:
    """Take the lease with this number; None where another was faster."""
    folder = _folder(lock)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _name(number)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return None
    # The folder may have gone on to higher numbers, and been tidied, since we looked.
    if max(_numbers(lock), default=0) != number:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        return None
    for earlier in _numbers(lock):
        if earlier < number:
            (folder / _name(earlier)).unlink(missing_ok=True)
    return Lease(lock, purpose, number, descriptor)


def _last(lock: Path) -> tuple[int, bytes] | None:
    """Number and content of the last lease."""
    while True:
        numbers = _numbers(lock)
        if not numbers:
            return None
        try:
            return max(numbers), (_folder(lock) / _name(max(numbers))).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise


def _numbers(lock: Path) -> list[int]:
    try:
        return [int(path.name) for path in _folder(lock).iterdir() if path.name.isdecimal()]
    except FileNotFoundError:
        return []


def holder(lock: Path) -> str | None:
    """Holder of the lease on a lock, in words; None where it is free, or may be taken at once."""
    last = _last(lock)
    return None if last is None or _parsed(last[1]).get("is_free") else _holder(last[1])


def _holder(content: bytes) -> str:
    note = _parsed(content)
    return f"process {note.get('pid', 'unknown')} on {note.get('host', 'an unknown host')}"


def _parsed(content: bytes) -> dict[str, Any]:
    """Content of a lease; empty while it is being written."""
    try:
        note = json.loads(content)
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _folder(lock: Path) -> Path:
    return lock.with_suffix(".leases")


def _name(number: int) -> str:
    return f"{number:012d}"


def _self() -> dict[str, Any]:
    return {"host": socket.gethostname(), "kernel": kernel(), "pid": os.getpid()}


@cache
def kernel() -> str:
    """Identity of the running system, among whose processes OS locks hold."""
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text().strip() if file.is_file() else uuid.uuid4().hex
