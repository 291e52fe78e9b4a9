"""A real PostgreSQL server for tests: in a temporary folder, on a free port of this machine, with a password."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

USER = "perf"
PASSWORD = "a-secret-of-many-letters"
MISSING = "no PostgreSQL server: install Debian's package 'postgresql'"
_ACCOUNT = "postgres"
"""The server refuses to run as root."""


@dataclass
class Server:
    """One server; each test makes a database of its own."""

    folder: Path
    programs: Path
    port: int
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def passwords(self) -> Path:
        """For PGPASSFILE."""
        return self.folder / "passwords"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off -c max_connections=60"
        self._control("start", "-w", "-o", options, "-l", str(self.folder / "log"))

    def start_again(self) -> None:
        """Start it if it does not run."""
        if not (self.folder / "data" / "postmaster.pid").exists():
            self.start()

    def stop(self) -> None:
        """At once, as a crash would."""
        self._control("stop", "-m", "immediate")

    def kill(self) -> None:
        """The first process, with -9: the others see it and end."""
        first = (self.folder / "data" / "postmaster.pid").read_text().splitlines()[0]
        os.kill(int(first), signal.SIGKILL)

    def database(self) -> str:
        """Address of a new, empty database."""
        name = f"test{next(self._numbers)}"
        given = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        subprocess.run([self.programs / "createdb", *given, name], check=True, env=self._environment())
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def initialise(self) -> None:
        self.passwords.write_text(f"*:*:*:{USER}:{PASSWORD}\n")
        (self.folder / "password").write_text(PASSWORD)
        for path in (self.folder, *self.folder.iterdir()):
            shutil.chown(path, *_owner())
        self.passwords.chmod(0o600)
        given = ["-U", USER, "--auth", "scram-sha-256", "--pwfile", str(self.folder / "password")]
        self._run(self.programs / "initdb", "-D", str(self.folder / "data"), "--no-sync", *given)

    def _control(self, *arguments: str) -> None:
        self._run(self.programs / "pg_ctl", "-D", str(self.folder / "data"), *arguments)

    def _run(self, program: Path, *arguments: str) -> None:
        prefix = ["runuser", "-u", _ACCOUNT, "--"] if os.geteuid() == 0 else []
        # Not captured through a pipe: the server would hold it open.
        with (self.folder / "output").open("w+") as output:
            done = subprocess.run([*prefix, program, *arguments], stdout=output, stderr=output, cwd="/", check=False)
            output.seek(0)
            assert done.returncode == 0, output.read()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PGPASSFILE": str(self.passwords)}


def installed() -> Path | None:
    """Folder of the server's programs; None where there is no server, or no account to run it."""
    if os.geteuid() == 0 and not _has_account():
        return None
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name))


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server and stop it; skips where PostgreSQL is not installed."""
    programs = installed()
    if programs is None:
        pytest.skip(MISSING)
    folder = Path(tempfile.mkdtemp(prefix="perf-assets-pg-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server = Server(folder, programs, port)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder)


def _owner() -> tuple[int, int]:
    account = pwd.getpwnam(_ACCOUNT) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    return account.pw_uid, account.pw_gid


def _has_account() -> bool:
    return any(account.pw_name == _ACCOUNT for account in pwd.getpwall())
