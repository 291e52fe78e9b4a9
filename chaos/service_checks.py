"""What must hold of runs, pools, services and models when all is quiet again. One line for everything that is wrong."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg
import psutil

from tests.installation import Installation, Up

UNFINISHED = [
    status
    for status in dg.DagsterRunStatus
    if status not in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
]
_EXCUSED = ("Dagster port", "MLflow port", "versions", "models")
"""Warnings of the doctor that are not of the lake: who else uses a port, what is installed, what has yet to land."""
_ASK_CHAMPIONS = """
import json, sys
from perf_assets.registry.versions import all_aliases, load
told = {}
for name, aliases in all_aliases().items():
    for alias in aliases:
        try:
            model = load(name, alias)
            answer = model.predict(model.input_example)
            numbers = answer.select_dtypes("number")
            good = len(answer) > 0 and numbers.shape[1] > 0 and bool(numbers.notna().any(axis=1).all())
            told[f"{name}@{alias}"] = "" if good else "answers nothing"
        except Exception as error:
            told[f"{name}@{alias}"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


def runs(instance: dg.DagsterInstance) -> Iterator[str]:
    """No run waits or seems to be at work."""
    for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
        machine = run.tags.get("dagster/partition", "all machines")
        yield f"run {run.run_id[:8]} ({run.job_name}, {machine}) is {run.status.value}"


def slots(instance: dg.DagsterInstance) -> Iterator[str]:
    """No slot of a pool is held, or waited for, by a run that has ended."""
    storage = instance.event_log_storage
    for pool in sorted(storage.get_concurrency_keys()):
        info = storage.get_concurrency_info(pool)
        holding = [(slot.run_id, "holds a slot") for slot in info.claimed_slots]
        waiting = [(step.run_id, "waits for a slot") for step in info.pending_steps]
        for run_id, what in [*holding, *waiting]:
            run = instance.get_run_by_id(run_id)
            if run is None or run.is_finished:
                status = "unknown" if run is None else run.status.value
                yield f"pool {pool}: run {run_id[:8]} {what}, but it is {status}"


def champions(installation: Installation) -> Iterator[str]:
    """Every model that an alias points to loads in a fresh process and answers its input example; there is one."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK_CHAMPIONS],
        env=installation.environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        yield f"the registry cannot be asked: {done.stderr.strip().splitlines()[-1]}"
        return
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    yield from (f"{model}: {problem}" for model, problem in sorted(told.items()) if problem)
    if not any(model.startswith("perf-target-") and model.endswith("@champion") for model in told):
        yield "no machine has a champion"


def services(up: Up | None) -> Iterator[str]:
    """Dagster's page, its daemons and MLflow answer."""
    if up is None or up.process.poll() is not None:
        yield "perf-assets up does not run"
        return
    try:
        question = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"
        daemons = up.ask(question)["instance"]["daemonHealth"]["allDaemonStatuses"]
        sick = [daemon["daemonType"] for daemon in daemons if daemon["required"] and not daemon["healthy"]]
        yield from (f"the daemon {name} is not healthy" for name in sick)
    except (OSError, ValueError, KeyError) as error:
        yield f"{up.dagster} does not answer: {error}"
    try:
        with urllib.request.urlopen(f"{up.mlflow}/health", timeout=30) as response:
            if response.read() != b"OK":
                yield f"{up.mlflow} is not well"
    except OSError as error:
        yield f"{up.mlflow} does not answer: {error}"


def stopped(code: int | None, left: Sequence[psutil.Process]) -> Iterator[str]:
    """After `up` was told to stop it has ended well, and nothing of it runs."""
    if code != 0:
        yield "perf-assets up did not run, or did not end" if code is None else f"perf-assets up ended with {code}"
    for process in left:
        with suppress(psutil.NoSuchProcess):
            yield f"process {process.pid} still runs: {' '.join(process.cmdline())[:100]}"


def doctor(installation: Installation) -> Iterator[str]:
    """The doctor has nothing to say against home and lake."""
    done = installation.run("doctor", "--json")
    try:
        findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    except (ValueError, KeyError):
        yield f"perf-assets doctor failed: {done.stderr.strip()[-200:]}"
        return
    for finding in findings:
        if finding["state"] == "problem" or (finding["state"] != "ok" and finding["check"] not in _EXCUSED):
            yield f"doctor: {finding['check']}: {finding['state']}, {finding['found']}"
