"""An installation of its own, driven by the real command line: home, lake, services. Of tests and of `make chaos`."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

from perf_assets.core.tables.landing import RUNS
from perf_assets.demo.fleet import fleet_bundles
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse

PROJECT = Path(__file__).resolve().parents[1]
SCALE = 0.06
"""Of the simulated fleet: 40 configurations per machine."""
_Found = TypeVar("_Found")
PROGRAM = Path(sys.executable).with_name("perf-assets")


@dataclass(frozen=True)
class Installation:
    """Where one test's installation keeps its state."""

    root: Path

    @property
    def lake(self) -> Lake:
        return Lake(self.root / "lake")

    @property
    def home(self) -> Path:
        return self.root / "dagster_home"

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER_", "MLFLOW_"))}
        return {**kept, "PERF_ASSETS_LAKE": str(self.lake.root), "DAGSTER_HOME": str(self.home)}

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run `perf-assets` from a folder that has nothing to do with it."""
        return run_command(arguments, self.environment(), self.root)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


_OF_TESTS = ("PERF_ASSETS_", "DAGSTER_", "MLFLOW_")
"""Starts of the names of variables that tests set for commands."""


class _CommandServer:
    """What command_server.py is for, in this process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, PROJECT / "tests" / "command_server.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # What a test has set is for its command: the server outlives the test that first asked it.
            env={**{k: v for k, v in os.environ.items() if not k.startswith(_OF_TESTS)}, "PYTHONPATH": str(PROJECT)},
        )
        self._lock = threading.Lock()
        atexit.register(self.stop)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@cache
def _command_server() -> _CommandServer:
    """One for each process of tests."""
    return _CommandServer()


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float = 600.0
) -> "subprocess.CompletedProcess[str]":
    """Run `perf-assets` in a process of its own, without the seconds that it takes to load."""
    return _run(None, arguments, environment, folder, seconds)


def run_script(
    script: Path, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float = 600.0
) -> "subprocess.CompletedProcess[str]":
    """Run a Python script in a process of its own that has loaded already what takes long to load."""
    return _run(script, arguments, environment, folder, seconds)


def _run(
    script: Path | None, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float
) -> "subprocess.CompletedProcess[str]":
    words = [str(argument) for argument in arguments]
    asked = {
        "script": None if script is None else str(script),
        "arguments": words,
        "environment": dict(environment),
        "folder": str(folder),
        "seconds": seconds,
    }
    done = _command_server().ask(asked)
    assert done["code"] is not None, f"{arguments} took more than {seconds:.0f} s: {done['errors'][-2000:]}"
    return subprocess.CompletedProcess([str(script or PROGRAM), *words], done["code"], done["output"], done["errors"])


def install(root: Path) -> Installation:
    """An empty lake and a home."""
    made = Installation(root)
    made.home.mkdir(parents=True)
    shutil.copyfile(PROJECT / "dagster_home" / "dagster.yaml", made.home / "dagster.yaml")
    return made


@dataclass
class Up:
    """A running `perf-assets up`."""

    process: "subprocess.Popen[str]"
    dagster: str
    mlflow: str
    pages: str

    def runs(self, job: str) -> list[dict[str, Any]]:
        """Runs of a job, newest first: runId, status, tags."""
        question = (
            "query ($job: String) { runsOrError(filter: {pipelineName: $job}) "
            "{ ... on Runs { results { runId status tags { key value } } } } }"
        )
        return list(self.ask(question, job=job)["runsOrError"]["results"])

    def stop_sensor(self, name: str) -> None:
        """As a person does it on the page; it stays stopped at the next start."""
        sensors = self.ask(
            '{ sensorsOrError(repositorySelector: {repositoryName: "__repository__", '
            'repositoryLocationName: "perf_assets.definitions"}) { ... on Sensors { results { name id } } } }'
        )["sensorsOrError"]["results"]
        wanted = next(sensor["id"] for sensor in sensors if sensor["name"] == name)
        stopped = self.ask("mutation ($id: String) { stopSensor(id: $id) { __typename } }", id=wanted)
        assert stopped["stopSensor"]["__typename"] == "StopSensorMutationResult", stopped

    def ask(self, question: str, **variables: str) -> dict[str, Any]:
        """What the webserver answers to a GraphQL question."""
        body = json.dumps({"query": question, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.dagster}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            answer: dict[str, Any] = json.load(response)["data"]
        return answer


_PORTS = ("--port", "--mlflow-port", "--pages-port")


def start_up(installation: Installation, ports: tuple[int, int, int] = (0, 0, 0), told: IO[str] | None = None) -> Up:
    """Start `perf-assets up`, and wait until it answers; what it tells goes into a file, or is kept."""
    process = subprocess.Popen(
        [PROGRAM, "up", *(word for name, port in zip(_PORTS, ports, strict=True) for word in (name, str(port)))],
        stdout=subprocess.PIPE,
        stderr=told or subprocess.PIPE,
        text=True,
        env=installation.environment(),
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    if not all(lines):
        raise AssertionError(f"perf-assets up ended: {process.communicate()[1] or 'see what it told'}")
    return Up(process, *(line.split()[1] for line in lines))


@contextmanager
def running(installation: Installation, told: IO[str] | None = None) -> Iterator[Up]:
    """Start `perf-assets up` and stop it."""
    up = start_up(installation, told=told)
    try:
        yield up
    finally:
        if up.process.poll() is None:
            up.process.terminate()
            up.process.wait(60)


def rows(installation: Installation, machine: str) -> int:
    """Runs of a machine in the warehouse."""
    if not installation.lake.warehouse.is_file():
        return 0
    counted = Warehouse(installation.lake).frame(f"SELECT count(*) AS n FROM {RUNS.name} WHERE machine = ?", [machine])
    return int(counted["n"].iloc[0])


def wait_for(condition: Callable[[], _Found | None], what: str, seconds: float) -> _Found:
    """Ask twice per second until there is an answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds:.0f} s")


def bundles_of(machine: str) -> tuple[list[SimulatedBundle], list[SimulatedBundle]]:
    """Benchmark bundles, and those of applications, one a configuration; none is damaged."""
    every = list(fleet_bundles(SCALE, 0, [machine]))
    benchmark = [bundle for bundle in every if bundle.facts.kind == "rajaperf"]
    return benchmark, [bundle for bundle in every if bundle.facts.kind == "profile"]


def land_bundles(installation: Installation, bundles: Iterable[SimulatedBundle]) -> None:
    for bundle in bundles:
        land(installation.lake, bundle.facts, bundle.name, bundle.write)


def train_quickly(installation: Installation) -> None:
    """Source models of the machines that were ingested, of two methods instead of all; notes what its steps read."""
    script = PROJECT / "tests" / "integration" / "noted_training.py"
    # The other core has other tests.
    environment = {**installation.environment(), "PERF_ASSETS_THREADS": "1"}
    done = run_script(script, ["train", "--quick", "--json"], environment, installation.root, 1500)
    assert done.returncode == 0, done.stderr
