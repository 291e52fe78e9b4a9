"""Processes are killed in the middle of runs: afterwards nothing is lost, doubled or half written."""

import itertools
import signal
import urllib.request

import psutil
import pytest

from perf_assets.storage.warehouse import Warehouse
from tests.defs.conftest import land_perf_stat
from tests.installation import Installation, Up, running, wait_for
from tests.processes import service, worker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

JOB, MANY = "refresh_machine", 600
PATIENCE = 300.0


def runs_of(up: Up, machine: str) -> list[dict[str, object]]:
    return [run for run in up.runs(JOB) if {"key": "dagster/partition", "value": machine} in run["tags"]]


def rows(installation: Installation, machine: str) -> int:
    if not installation.lake.warehouse.is_file():
        return 0
    found = Warehouse(installation.lake).frame(
        "SELECT count(*) AS n FROM raw_profiles__runs WHERE machine = ?", [machine]
    )
    return int(found["n"].iloc[0])


def land_many(installation: Installation, machine: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        land_perf_stat(installation.lake, machine, f"b{number}", number)


def is_done(up: Up, installation: Installation, machine: str, count: int) -> bool:
    statuses = [run["status"] for run in runs_of(up, machine)]
    return bool(statuses) and statuses[0] == "SUCCESS" and rows(installation, machine) == count


def test_killed_processes_come_back_and_nothing_is_lost(up: Up, installation: Installation) -> None:
    land_many(installation, "quartz", MANY)
    killed = wait_for(lambda: worker(up), "a worker of the run", PATIENCE)
    killed.send_signal(signal.SIGKILL)
    wait_for(lambda: any(run["status"] == "FAILURE" for run in runs_of(up, "quartz")), "the failure", PATIENCE)
    wait_for(lambda: is_done(up, installation, "quartz", MANY), "another run that succeeds", PATIENCE)

    land_many(installation, "ruby", MANY)
    wait_for(lambda: worker(up), "a worker of the run", PATIENCE)
    killed_too = [service(up, "dagster-daemon"), service(up, "dagster-webserver")]
    for process in killed_too:
        assert process is not None
        process.send_signal(signal.SIGKILL)
    for name, process in zip(("dagster-daemon", "dagster-webserver"), killed_too, strict=True):
        wait_for(lambda n=name, p=process: service(up, n) not in (None, p), f"a new {name}", PATIENCE)
    wait_for(lambda: answers(up), "a new webserver", PATIENCE)
    wait_for(lambda: is_done(up, installation, "ruby", MANY), "the run, or one after it", PATIENCE)
    land_many(installation, "ruby", 1, start=MANY)
    wait_for(lambda: is_done(up, installation, "ruby", MANY + 1), "what landed afterwards", PATIENCE)
    assert up.process.poll() is None
    assert rows(installation, "quartz") == MANY


def answers(up: Up) -> bool:
    try:
        with urllib.request.urlopen(f"{up.dagster}/server_info", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


_LAUNCH = """
mutation ($machine: String!) {
  launchPipelineExecution(executionParams: {
    selector: {
      repositoryName: "__repository__", repositoryLocationName: "perf_assets.definitions",
      pipelineName: "refresh_machine"
    },
    executionMetadata: {tags: [{key: "dagster/partition", value: $machine}]}
  }) { __typename ... on PythonError { message } }
}
"""


def test_two_runs_of_one_machine_never_overlap(up: Up, installation: Installation) -> None:
    land_many(installation, "quartz", MANY)
    wait_for(lambda: runs_of(up, "quartz"), "the sensor's run", PATIENCE)
    launched = [up.ask(_LAUNCH, machine="quartz")["launchPipelineExecution"]["__typename"] for _ in range(2)]
    assert launched == ["LaunchRunSuccess"] * 2
    wait_for(lambda: [run["status"] for run in runs_of(up, "quartz")] == ["SUCCESS"] * 3, "all three", PATIENCE)
    question = "{ runsOrError { ... on Runs { results { jobName startTime endTime } } } }"
    runs = [run for run in up.ask(question)["runsOrError"]["results"] if run["jobName"] == JOB]
    ordered = sorted(runs, key=lambda run: float(run["startTime"]))
    assert all(before["endTime"] <= after["startTime"] for before, after in itertools.pairwise(ordered))
    assert rows(installation, "quartz") == MANY


def test_all_of_it_killed_the_next_start_goes_on(installation: Installation, up: Up) -> None:
    """As a machine that lost power: nobody was told to stop."""
    land_many(installation, "quartz", MANY)
    wait_for(lambda: worker(up), "a worker of the run", PATIENCE)
    family = [psutil.Process(up.process.pid), *psutil.Process(up.process.pid).children(recursive=True)]
    for process in family:
        process.kill()
    up.process.wait(30)
    with running(installation) as again:
        wait_for(lambda: is_done(again, installation, "quartz", MANY), "a run after the next start", PATIENCE)
        statuses = [run["status"] for run in runs_of(again, "quartz")]
        assert statuses[-1] == "FAILURE", "the run of the dead process was ended"
