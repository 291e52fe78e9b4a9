"""A killed service is started again, with or without what it had started."""

import sys
import time
from pathlib import Path

import psutil
import pytest

from perf_assets.cli.commands.start.up import _addresses
from perf_assets.cli.support.services import SERVES, Service, end_left_behind, free_port, stop
from perf_assets.core.errors import BadInputError

_SLEEP = ["sleep", "1000"]
_PARENT = "import subprocess, sys, time; subprocess.Popen(['sleep', '1000']); time.sleep(1000)"


def test_a_port_that_is_given_twice_is_refused_before_anything_starts() -> None:
    port = free_port(0, "")
    with pytest.raises(BadInputError, match=f"port {port} is both --port and --pages-port"):
        _addresses(port, 0, port)


@pytest.mark.parametrize("outlived", [True, False])
def test_what_a_killed_service_started_lives_on_only_where_it_should(tmp_path: Path, outlived: bool) -> None:
    """The children of a killed MLflow server hold its port: the next one could not begin."""
    service = Service("s", [sys.executable, "-c", _PARENT], tmp_path / "log", {}, lambda: True, outlived)
    try:
        parent = psutil.Process(service.process.pid)
        deadline = time.monotonic() + 30
        while not parent.children() and time.monotonic() < deadline:
            time.sleep(0.05)
        (child,) = parent.children()
        parent.kill()
        service.process.wait(10)
        assert "was started again" in str(service.revive())
        assert service.process.poll() is None
        psutil.wait_procs([child], timeout=0.0 if outlived else 10.0)
        assert child.is_running() == outlived
    finally:
        stop([service])
    psutil.wait_procs([child], timeout=10.0)
    assert not child.is_running()


def test_what_a_killed_up_left_on_a_home_is_ended_before_the_next(tmp_path: Path) -> None:
    homes = [tmp_path / "own", tmp_path / "other"]
    own, other = (Service("s", _SLEEP, home / "log", {SERVES: str(home)}, lambda: True) for home in homes)
    try:
        assert end_left_behind(homes[0]) == 1
        assert own.process.poll() is not None
        assert other.process.poll() is None
    finally:
        stop([own, other])
