"""One run: make a site ready, land and do faults for some minutes, wait until all is quiet, look at everything."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from chaos import checks, service_checks
from chaos.expected import Expected
from chaos.faults import WEIGHTS, Faults, Planned, plan
from chaos.landing import Lander
from chaos.log import Log
from chaos.site import Site, made_ready
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.fleet import open_warehouse
from perf_assets.workflows.landing.ingest import needs_work
from tests.installation import bundles_of, land_bundles, train_quickly

_MEASURED = ("quartz", "ruby", "lassen")
"""Machines that source models are trained on before the faults begin."""
_FIRST_TARGET, _FIRST_RUNS = "dane", 12
"""Machine with a champion before the faults begin, and how many of its runs that is made of."""
_COUNTS_SECONDS = 30.0
_QUIET_SECONDS = 45.0
"""So long nothing must happen: longer than the sensor sleeps."""


@dataclass
class Outcome:
    """What happened, and what was found afterwards."""

    seed: int
    minutes: float
    faults: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, str] = field(default_factory=dict)
    """Faults that cannot be done here, and why."""
    checks: dict[str, list[str]] = field(default_factory=dict)
    """What is wrong, by check."""
    landed: int = 0
    good: int = 0
    refused: int = 0
    full_disk_landings: int = 0
    restarts: int = 0
    runs: dict[str, int] = field(default_factory=dict)
    """Runs of Dagster by how they ended."""
    settle_seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether all checks were made, and found nothing."""
        return bool(self.checks) and not any(self.checks.values())


def chaos(root: Path, seed: int, minutes: float, patience_seconds: float, log: Log) -> Outcome:
    """Do all of it in a folder."""
    outcome = Outcome(seed, minutes)
    with made_ready(root, log) as site:
        expected = Expected()
        _prepare(site, expected, log)
        site.start()
        log.say("up", f"Dagster {site.up.dagster if site.up else ''}, MLflow {site.up.mlflow if site.up else ''}")
        lander = Lander(site.installation.lake, expected, log, random.Random(f"landing {seed}"))
        faults = Faults(site, expected, lander, log, random.Random(f"faults {seed}"))
        if site.disk is None:
            outcome.left_out["disk"] = site.no_disk
        with _Telling(site.installation.lake, expected, lander, log):
            _under_fire(lander, faults, plan(seed, [k for k in WEIGHTS if k not in outcome.left_out]), 60 * minutes)
        log.say("quiet", f"no more faults and no more landing: waiting up to {patience_seconds:.0f} s")
        outcome.settle_seconds = _settle(site, patience_seconds, log)
        outcome.faults, outcome.missed = faults.done, faults.missed
        outcome.landed, outcome.full_disk_landings = lander.landed_count, lander.refused_landings
        outcome.good, outcome.refused = expected.counts()
        outcome.restarts = site.restarts
        _look(site, expected, outcome, log)
    return outcome


def _prepare(site: Site, expected: Expected, log: Log) -> None:
    """Source models and a champion, by the commands that people use, with PostgreSQL from the beginning."""
    installation = site.installation
    log.say("prepare", f"in {installation.root}: PostgreSQL, source models of {', '.join(_MEASURED)}")
    done = installation.run("database", site.server.database())
    assert done.returncode == 0, done.stderr
    for machine in _MEASURED:
        land_bundles(installation, (bundle for part in bundles_of(machine) for bundle in part))
    installation.json("ingest")
    train_quickly(installation)
    benchmark, runs = bundles_of(_FIRST_TARGET)
    land_bundles(installation, [*benchmark, *runs[:_FIRST_RUNS]])
    installation.json("ingest")
    log.say("prepare", f"a champion of {_FIRST_TARGET}")
    installation.json("adapt", "--machine", _FIRST_TARGET, "--seeds", "1")
    for folder in sorted(installation.lake.landing.glob("*/*")):
        expected.landed(LandedBundle(folder))


def _under_fire(lander: Lander, faults: Faults, planned: Iterator[Planned], seconds: float) -> None:
    """Land, and do one fault after the other, until the time is over."""
    deadline = time.monotonic() + seconds
    lander.start()
    try:
        for fault in planned:
            if time.monotonic() + fault.gap_seconds + fault.hold_seconds > deadline:
                break
            time.sleep(fault.gap_seconds)
            faults.do(fault)
        time.sleep(max(deadline - time.monotonic(), 0.0))
    finally:
        lander.stop()


def _settle(site: Site, patience_seconds: float, log: Log) -> float:
    """Wait until nothing is left to do for a while, or patience ends; seconds."""
    started = time.monotonic()
    quiet_since: float | None = None
    told_at = started
    while (now := time.monotonic()) - started < patience_seconds:
        busy = _busy(site)
        if busy is not None:
            quiet_since = None
            if now - told_at >= _COUNTS_SECONDS:
                told_at = now
                log.say("quiet", f"not yet: {busy}")
        elif quiet_since is None:
            quiet_since = now
        elif now - quiet_since >= _QUIET_SECONDS:
            log.say("quiet", f"after {quiet_since - started:.0f} s")
            return quiet_since - started
        time.sleep(3.0)
    log.say("quiet", f"patience is over: {_busy(site)}")
    return time.monotonic() - started


def _busy(site: Site) -> str | None:
    """What is still to be done."""
    if site.up is None:
        return "perf-assets up is being started"
    with dg.DagsterInstance.from_config(str(site.installation.home)) as instance:
        unfinished = next(service_checks.runs(instance), None)
    lake = site.installation.lake
    if unfinished is not None:
        return unfinished
    try:
        behind = [machine for machine in lake.machines() if needs_work(lake, open_warehouse(lake), machine)]
    except BadInputError as error:
        return str(error)
    return f"not all of {', '.join(behind)} is ingested" if behind else None


def _look(site: Site, expected: Expected, outcome: Outcome, log: Log) -> None:
    """Make all checks: with the services as they are, stopped, and after the next start."""
    lake, installation = site.installation.lake, site.installation
    found = outcome.checks

    def check(name: str, lines: Iterator[str]) -> None:
        problems = checks.in_lines(lines)
        found[name] = [*found.get(name, []), *problems]
        log.say(
            "check", f"{name}: {'ok' if not problems else f'{len(problems)} wrong, as {problems[0]}'}", all=problems
        )

    check("services answer", service_checks.services(site.up))
    with dg.DagsterInstance.from_config(str(installation.home)) as instance:
        check("no run is stuck", service_checks.runs(instance))
        check("no slot is held by an ended run", service_checks.slots(instance))
        outcome.runs = dict(Counter(run.status.value for run in instance.get_runs()))
    code = site.stop()
    check("up stops and leaves nothing running", service_checks.stopped(code, site.processes()))
    check("it starts again, and ingests", _next_start(site))
    check("services answer", service_checks.services(site.up))
    check("every good bundle is there once", checks.bundles(lake, expected))
    check("quarantine explains every bad bundle", checks.quarantine(lake, expected))
    check("no lock is held", checks.locks(lake))
    check("no temporary file is left", checks.leftovers(lake))
    check("every champion answers", service_checks.champions(installation))
    check("the doctor is content", service_checks.doctor(installation))
    site.stop()


def _next_start(site: Site) -> Iterator[str]:
    """Start the services again, and ingest by the command: what killed processes left is tidied up."""
    try:
        site.start()
    except AssertionError as error:
        yield str(error)
    done = site.installation.run("ingest", "--json")
    if done.returncode:
        yield done.stderr.strip()[-300:]


class _Telling:
    """While in here, every half minute a line with what landed, was ingested and was refused."""

    def __init__(self, lake: Lake, expected: Expected, lander: Lander, log: Log) -> None:
        self._told = (lake, expected, lander, log)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="counts")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        lake, expected, lander, log = self._told
        while not self._ended.wait(_COUNTS_SECONDS):
            states: Counter[str] = Counter()
            for machine in expected.machines():
                states.update(MachineRecord(lake.record, machine).ledger(["status"])["status"].to_pylist())
            waiting = len(expected.fates) - sum(states.values())
            log.say(
                "counts",
                f"{lander.landed_count} landed under fire; of {len(expected.fates)} bundles {states['ingested']} "
                f"ingested, {states['quarantined']} quarantined, {states['duplicate']} the same as another, "
                f"{waiting} waiting",
            )
