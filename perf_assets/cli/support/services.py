"""Child processes that start together, are waited for, and leave nothing behind."""

import hashlib
import os
import signal
import socket
import stat
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from perf_assets.core.errors import BadInputError

SERVES = "PERF_ASSETS_SERVES"
"""Environment variable of a service and all that it starts: its Dagster home."""
_STOP_SECONDS = 15.0
_SHOWN_LOG_LINES = 15
_MOST_RESTARTS = 3
_RESTART_WINDOW_SECONDS = 600.0


@dataclass
class Service:
    """One running child with all that it started."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    is_ready: Callable[[], bool]
    outlived: bool = False
    """Whether what it started goes on without it, as the runs of the daemon do."""
    process: "subprocess.Popen[bytes]" = field(init=False)
    groups: list[int] = field(default_factory=list)
    """Process groups that it was started in, one each time: what a killed one had started may live on."""
    ended_at: list[float] = field(default_factory=list)
    """Moment at which it ended by itself, on a clock that only goes forward."""

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the child in a session of its own, so that it and its children can be stopped together."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab" if self.groups else "wb") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        self.groups.append(self.process.pid)

    def check_alive(self) -> None:
        """Raise with the end of its log if it has ended."""
        code = self.process.poll()
        if code is not None:
            lines = self.log.read_text(errors="replace").splitlines() if self.log.is_file() else ["(no log)"]
            tail = " | ".join(lines[-_SHOWN_LOG_LINES:])
            raise BadInputError(f"{self.name} ended with code {code}; its log {self.log} ends: {tail}")

    def revive(self, *, is_blamed: bool = True) -> str | None:
        """Start it again if it has ended, and say so; raise if it ends again and again.

        It is not to blame for ending without a database.
        """
        code = self.process.poll()
        if code is None:
            return None
        now = time.monotonic()
        self.ended_at = [moment for moment in self.ended_at if now - moment < _RESTART_WINDOW_SECONDS]
        if is_blamed:
            self.ended_at.append(now)
        if len(self.ended_at) > _MOST_RESTARTS:
            self.check_alive()
        if not self.outlived:
            # They would still hold its port.
            _signal(self.process.pid, signal.SIGKILL)
        self.start()
        return f"{self.name} ended with code {code} and was started again; see {self.log}"


def wait_until_ready(services: Sequence[Service], timeout_seconds: float, say: Callable[[str], None]) -> None:
    """Wait until all answer, and say which do not yet; raise if one ends or the time is over."""
    start = time.monotonic()
    deadline = start + timeout_seconds
    waiting, announced = list(services), ""
    while waiting:
        for service in services:
            service.check_alive()
        waiting = [service for service in waiting if not service.is_ready()]
        names = ", ".join(service.name for service in waiting)
        if names and names != announced:
            say(f"waiting for {names} ({time.monotonic() - start:.0f} s so far)")
            announced = names
        if waiting and time.monotonic() > deadline:
            names = ", ".join(f"{service.name} (log {service.log})" for service in waiting)
            raise BadInputError(f"no answer within {timeout_seconds:.0f} s from {names}")
        time.sleep(0.3)


def stop(services: Sequence[Service]) -> None:
    """End all services and everything they started."""
    family = [process for service in services for process in _family(service.process.pid)]
    groups = [group for service in services for group in service.groups]
    for group in groups:
        _signal(group, signal.SIGTERM)
    _, alive = psutil.wait_procs(family, timeout=_STOP_SECONDS)
    for group in groups:
        _signal(group, signal.SIGKILL)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=_STOP_SECONDS)


def end_left_behind(home: Path) -> int:
    """End what services on a Dagster home had started whose `up` was killed: how many processes.

    They would hold its ports, and a second daemon would start every run twice.
    """
    left = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(SERVES) == str(home):
                left.append(process)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=_STOP_SECONDS)
    return len(left)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def answers(url: str) -> bool:
    """Whether a page can be fetched."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status < 500)
    except (urllib.error.URLError, OSError):
        return False


def listens(path: Path) -> bool:
    """Whether a process accepts connections at a socket in the file system."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def code_socket(home: Path) -> Path:
    """Socket that serves the definitions of a Dagster home, in a folder that only its owner may enter.

    Not in the home itself: the path of a socket has 107 bytes at most. Whoever reaches it may run code as its owner.
    """
    name = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"perf_assets-{os.getuid()}-{name}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise BadInputError(f"{folder} is not a folder of yours alone: remove it, or name another place with TMPDIR")
    return folder / "code.sock"


def free_port(wanted: int, option: str) -> int:
    """`wanted` if it is free, any free port for 0; raise otherwise."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except (OSError, OverflowError):
            raise BadInputError(
                f"port {wanted} cannot be used: choose another with {option} (0 takes a free one)"
            ) from None
        return int(probe.getsockname()[1])


def _family(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
