"""Processes are killed in the middle of runs: afterwards nothing is lost, doubled or half written."""

import signal
import urllib.request

import psutil
import pytest

from tests.defs.conftest import land_perf_stat
from tests.installation import Installation, Up, rows, wait_for
from tests.integration.conftest import Services
from tests.processes import service

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.xdist_group("services")]

JOB, MANY = "refresh_machine", 40
PATIENCE = 300.0


def runs_of(up: Up, machine: str) -> list[dict[str, object]]:
    return [run for run in up.runs(JOB) if {"key": "dagster/partition", "value": machine} in run["tags"]]


def land_many(installation: Installation, machine: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        land_perf_stat(installation.lake, machine, f"b{number}", number)


def is_done(up: Up, installation: Installation, machine: str, count: int) -> bool:
    statuses = [run["status"] for run in runs_of(up, machine)]
    return bool(statuses) and statuses[0] == "SUCCESS" and rows(installation, machine) == count


_EVENTS = """
query ($run: ID!) {
  logsForRun(runId: $run) {
    ... on EventConnection {
      events { ... on EngineEvent { metadataEntries { label ... on TextMetadataEntry { text } } } }
    }
  }
}
"""


def begun(up: Up, machine: str) -> psutil.Process:
    """The process of the machine's run, once it is at work."""
    run = wait_for(
        lambda: next((run for run in runs_of(up, machine) if run["status"] == "STARTED"), None), "the run", PATIENCE
    )
    events = up.ask(_EVENTS, run=str(run["runId"]))["logsForRun"]["events"]
    entries = [entry for event in events for entry in event.get("metadataEntries", [])]
    return psutil.Process(next(int(entry["text"]) for entry in entries if entry["label"] == "pid"))


def test_a_killed_worker_is_noticed_and_another_run_succeeds(services: Services) -> None:
    up, installation = services.up, services.installation
    land_many(installation, "quartz", MANY)
    begun(up, "quartz").send_signal(signal.SIGKILL)
    wait_for(lambda: any(run["status"] == "FAILURE" for run in runs_of(up, "quartz")), "the failure", PATIENCE)
    wait_for(lambda: is_done(up, installation, "quartz", MANY), "another run that succeeds", PATIENCE)


def test_killed_services_come_back_and_nothing_is_lost(services: Services) -> None:
    up, installation = services.up, services.installation
    others = {machine: rows(installation, machine) for machine in installation.lake.machines()}
    land_many(installation, "ruby", MANY)
    begun(up, "ruby")
    names = ("dagster-daemon", "dagster-webserver", "dagster code-server")
    killed = [service(up, name) for name in names]
    for process in killed:
        assert process is not None
        process.send_signal(signal.SIGKILL)
    for name, process in zip(names, killed, strict=True):
        wait_for(lambda n=name, p=process: service(up, n) not in (None, p), f"a new {name}", PATIENCE)
    wait_for(lambda: answers(up), "a new webserver", PATIENCE)
    wait_for(lambda: is_done(up, installation, "ruby", MANY), "the run, or one after it", PATIENCE)
    land_many(installation, "ruby", 1, start=MANY)
    wait_for(lambda: is_done(up, installation, "ruby", MANY + 1), "what landed afterwards", PATIENCE)
    assert up.process.poll() is None
    assert {machine: rows(installation, machine) for machine in others} == others


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


def test_two_runs_of_one_machine_never_overlap(services: Services) -> None:
    up, installation, machine = services.up, services.installation, "lassen"
    land_many(installation, machine, MANY)
    wait_for(lambda: runs_of(up, machine), "the sensor's run", PATIENCE)
    assert up.ask(_LAUNCH, machine=machine)["launchPipelineExecution"]["__typename"] == "LaunchRunSuccess"
    wait_for(lambda: [run["status"] for run in runs_of(up, machine)] == ["SUCCESS"] * 2, "both", PATIENCE)
    own = {run["runId"] for run in runs_of(up, machine)}
    question = "{ runsOrError { ... on Runs { results { runId startTime endTime } } } }"
    runs = [run for run in up.ask(question)["runsOrError"]["results"] if run["runId"] in own]
    first, second = sorted(runs, key=lambda run: float(run["startTime"]))
    assert first["endTime"] <= second["startTime"]
    assert rows(installation, machine) == MANY


def test_all_of_it_killed_the_next_start_goes_on(services: Services) -> None:
    """As a machine that lost power: nobody was told to stop."""
    up, installation, machine = services.up, services.installation, "dane"
    land_many(installation, machine, MANY)
    begun(up, machine)
    family = [psutil.Process(up.process.pid), *psutil.Process(up.process.pid).children(recursive=True)]
    for process in family:
        process.kill()
    up.process.wait(30)
    services.start_again()
    wait_for(lambda: is_done(services.up, installation, machine, MANY), "a run after the next start", PATIENCE)
    statuses = [run["status"] for run in runs_of(services.up, machine)]
    assert statuses[-1] == "FAILURE", "the run of the dead process was ended"
