"""The processes below a running `perf-assets up`."""

import os
import signal

import psutil

from tests.installation import Up


def ended(up: Up, number: signal.Signals) -> None:
    """End it by a signal: with exit code 0, and without leaving a process behind."""
    family = psutil.Process(up.process.pid).children(recursive=True)
    assert len(family) >= 3
    os.kill(up.process.pid, number)
    assert up.process.wait(60) == 0
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def service(up: Up, program: str) -> psutil.Process | None:
    return next((child for child in children(up.process.pid) if program in command(child)), None)


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
