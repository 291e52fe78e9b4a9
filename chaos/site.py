"""What is under fire: a lake and a home of its own, PostgreSQL, and `perf-assets up`, started again when it ends."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from chaos.disk import SmallDisk
from chaos.log import Log
from perf_assets.cli.support.services import free_port
from tests.installation import Installation, Up, install, start_up, wait_for
from tests.postgres import Server, running_server

_RESTART_SECONDS = 3.0
_START_SECONDS = 300.0
_STOP_SECONDS = 90.0


@dataclass
class Site:
    """One installation, its database and its services."""

    installation: Installation
    server: Server
    disk: SmallDisk | None
    """None where a small disk cannot be mounted."""
    log: Log
    no_disk: str = ""
    """Why not."""
    ports: tuple[int, int, int] | None = None
    """Ports of Dagster, MLflow and the lake's pages; chosen at the first start."""
    up: Up | None = None
    """None while it is being started."""
    restarts: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the services, and again whenever they end, as systemd would; raises if they never answer."""
        self.ports = self.ports or (free_port(0, ""), free_port(0, ""), free_port(0, ""))
        self._ended.clear()
        self._thread = threading.Thread(target=self._supervise, name="supervisor")
        self._thread.start()
        wait_for(lambda: self.up, "an answer of perf-assets up", _START_SECONDS)

    def stop(self) -> int | None:
        """Stop the services, as an operator does; the exit code of `up`, None where it did not run or did not end."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self.up is None:
            return None
        up, self.up = self.up, None
        up.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            return up.process.wait(_STOP_SECONDS)
        return None

    def processes(self) -> list[psutil.Process]:
        """All processes that work on this home, whoever started them; not this one."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_ours = process.environ().get("DAGSTER_HOME") == str(self.installation.home)
                if is_ours and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def kill_all(self) -> int:
        """All of them at once, as when power is lost; how many."""
        found = self.processes()
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        return len(found)

    def _supervise(self) -> None:
        has_run, code = False, None
        while not self._ended.wait(1.0):
            if self.up is not None and self.up.process.poll() is None:
                continue
            if self.up is not None:
                code = self.up.process.returncode
                self.up = None
            if has_run and self._ended.wait(_RESTART_SECONDS):
                return
            try:
                with (self.installation.root / "up.log").open("a") as told:
                    self.up = start_up(self.installation, self.ports or (0, 0, 0), told)
            except AssertionError as error:
                self.log.note("up", line=str(error))
                continue
            if has_run:
                self.restarts += 1
                self.log.say("up", f"had ended with code {code}; started again")
            has_run = True


@contextmanager
def made_ready(root: Path, log: Log) -> Iterator[Site]:
    """A site without services; everything of it is stopped and unmounted at the end."""
    installation = install(root / "site")
    temporary = root / "tmp"
    temporary.mkdir()
    # What killed processes leave there goes with the rest.
    os.environ["TMPDIR"] = str(temporary)
    disk: SmallDisk | None = SmallDisk(root / "disk.img", installation.lake.root)
    no_disk = disk.mount() if disk else None
    if no_disk:
        disk = None
        log.say("disk", f"not filled in this run: {no_disk}")
    with running_server() as server:
        os.environ["PGPASSFILE"] = str(server.passwords)
        site = Site(installation, server, disk, log, no_disk or "")
        try:
            yield site
        finally:
            site._ended.set()
            if site._thread is not None:
                site._thread.join()
            site.kill_all()
            if disk is not None:
                disk.unmount()
