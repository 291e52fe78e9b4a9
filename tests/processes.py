"""The processes below a running `perf-assets up`."""

import psutil

from tests.installation import Up


def service(up: Up, program: str) -> psutil.Process | None:
    return next((child for child in children(up.process.pid) if program in command(child)), None)


def worker(up: Up) -> psutil.Process | None:
    return next(iter(workers(up)), None)


def workers(up: Up) -> list[psutil.Process]:
    """Processes of runs: children of a code server of the daemon."""
    daemon = service(up, "dagster-daemon")
    servers = children(daemon.pid) if daemon else []
    return [child for server in servers for child in children(server.pid) if "spawn_main" in command(child)]


def children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
