"""The real command line on a home and a lake of its own."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from perf_assets.demo.fleet import fleet_bundles
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land

PROJECT = Path(__file__).resolve().parents[2]
SCALE = 0.12
"""Of the simulated fleet: 78 configurations a machine."""
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
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            env=self.environment(),
            cwd=self.root,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def install(root: Path) -> Installation:
    """An empty lake and a home."""
    made = Installation(root)
    made.home.mkdir(parents=True)
    shutil.copyfile(PROJECT / "dagster_home" / "dagster.yaml", made.home / "dagster.yaml")
    return made


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return install(tmp_path / "installation")


@dataclass
class Up:
    """A running `perf-assets up`."""

    process: "subprocess.Popen[str]"
    dagster: str
    mlflow: str

    def runs(self, job: str) -> list[dict[str, Any]]:
        """Runs of a job, newest first: runId, status, tags."""
        question = (
            "query ($job: String) { runsOrError(filter: {pipelineName: $job}) "
            "{ ... on Runs { results { runId status tags { key value } } } } }"
        )
        return list(self.ask(question, job=job)["runsOrError"]["results"])

    def ask(self, question: str, **variables: str) -> dict[str, Any]:
        """What the webserver answers to a GraphQL question."""
        body = json.dumps({"query": question, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.dagster}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)["data"]
        return answer


@contextmanager
def running(installation: Installation) -> Iterator[Up]:
    """Start `perf-assets up` and stop it."""
    process = subprocess.Popen(
        [PROGRAM, "up", "--port", "0", "--mlflow-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=installation.environment(),
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    if not all(lines):
        pytest.fail(f"perf-assets up ended: {process.communicate()[1]}")
    try:
        yield Up(process, *(line.split()[1] for line in lines))
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


@pytest.fixture
def up(installation: Installation) -> Iterator[Up]:
    with running(installation) as started:
        yield started


def wait_for(condition: Callable[[], _Found | None], what: str, seconds: float) -> _Found:
    """Ask every other second until there is an answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(2)
    raise AssertionError(f"{what}: not within {seconds:.0f} s")


def bundles_of(machine: str) -> tuple[list[SimulatedBundle], list[SimulatedBundle]]:
    """Benchmark bundles, and those of applications, one a configuration; none is damaged."""
    every = list(fleet_bundles(SCALE, 0, [machine]))
    benchmark = [bundle for bundle in every if bundle.facts.kind == "rajaperf"]
    return benchmark, [bundle for bundle in every if bundle.facts.kind == "profile"]


def land_bundles(installation: Installation, bundles: Iterable[SimulatedBundle]) -> None:
    for bundle in bundles:
        land(installation.lake, bundle.facts, bundle.name, bundle.write)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A small fleet with source models, as a site has it that runs for a while."""
    made = install(tmp_path_factory.mktemp("trained"))
    for machine in ("quartz", "ruby", "lassen"):
        land_bundles(made, (bundle for part in bundles_of(machine) for bundle in part))
    made.json("ingest")
    script = Path(__file__).with_name("quick_training.py")
    done = subprocess.run(
        [sys.executable, script], env=made.environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def live(trained: Installation) -> Iterator[Up]:
    """`perf-assets up` on the small fleet."""
    with running(trained) as started:
        yield started
