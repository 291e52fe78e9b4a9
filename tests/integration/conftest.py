"""The real command line on a home and a lake of its own."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.installation import Installation, Up, install, start_up
from tests.integration.joining import Joined, join
from tests.processes import ended
from tests.trained_site import copy_of

_END: dict[str, Callable[[], None]] = {}
"""How to end the services of a group of tests, by group."""


def _end(group: str) -> None:
    _END.pop(group, lambda: None)()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End services after the last test of their group: idle ones take a tenth of the machine."""
    group, following = _group(item), nextitem and _group(nextitem)
    if group is not None and group != following:
        _end(group)


def _group(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("xdist_group")
    return mark and str(mark.args[0])


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return install(tmp_path / "installation")


@dataclass
class Services:
    """A running `perf-assets up`, which a test may kill and start again; each test lands machines of its own."""

    installation: Installation
    up: Up

    def start_again(self) -> None:
        self.up = start_up(self.installation)


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """`perf-assets up` on a home and a lake without models, one for all tests of the group `services`."""
    made = install(tmp_path_factory.mktemp("services"))
    started = Services(made, start_up(made))
    # What it would make of each landing in runs of its own is no subject of these tests.
    for sensor in ("automation_sensor", "dataset_sensor"):
        started.up.stop_sensor(sensor)
    _END["services"] = lambda: ended(started.up, signal.SIGTERM)
    yield started
    _end("services")


@pytest.fixture(scope="session")
def trained(trained_once: Installation, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A copy of the trained fleet, which tests of running services change."""
    return copy_of(trained_once, tmp_path_factory.mktemp("live") / "site")


@pytest.fixture(scope="session")
def live(trained: Installation) -> Iterator[Up]:
    """`perf-assets up` on the copy, one for all tests of the group `live`."""
    started = start_up(trained)
    # No table lands here, and each look at the landing zone takes processor time.
    started.stop_sensor("dataset_sensor")
    _END["live"] = lambda: ended(started, signal.SIGINT)
    yield started
    _end("live")


@pytest.fixture(scope="session")
def joined(live: Up, trained: Installation, tmp_path_factory: pytest.TempPathFactory) -> Joined:
    """A machine went through the whole pipeline by itself."""
    return join(live, trained, tmp_path_factory.mktemp("joined"))
