"""The faults: when each comes, by the seed, and what it does."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from chaos.corruption import WAYS, corrupt
from chaos.expected import Expected, Key
from chaos.landing import Lander, may_be_spoiled
from chaos.log import Log
from chaos.site import Site
from perf_assets.core.errors import BusyError
from perf_assets.storage.record import MachineRecord
from tests.installation import wait_for
from tests.processes import command, service

WEIGHTS = {
    "worker": 5.0,
    "daemon": 2.0,
    "webserver": 1.5,
    "code_server": 1.5,
    "mlflow": 1.5,
    "postgres": 2.0,
    "disk": 2.0,
    "corrupt": 8.0,
    "mend": 2.0,
    "up": 0.7,
    "power": 0.7,
}
"""How often each comes, relative to the others; each comes once before any comes twice."""
_GAP_SECONDS = (3.0, 18.0)
_HOLD_SECONDS = {"postgres": (3.0, 20.0), "disk": (8.0, 25.0)}
"""How long it stays away, or full."""
_WORKER_SECONDS = 25.0
"""So long a run is waited for."""
_START_SECONDS = 180.0
_NEW_SHARE = 0.75
"""Of the bundles to spoil: those that are not in the record yet."""


@dataclass(frozen=True)
class Planned:
    """One fault of the plan."""

    kind: str
    gap_seconds: float
    """Since the end of the one before."""
    hold_seconds: float


def plan(seed: int, kinds: list[str]) -> Iterator[Planned]:
    """Faults without an end; the same for the same seed and kinds."""
    chance = random.Random(f"plan {seed}")
    first = chance.sample(kinds, len(kinds))
    while True:
        kind = first.pop() if first else chance.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        yield Planned(kind, chance.uniform(*_GAP_SECONDS), chance.uniform(*_HOLD_SECONDS.get(kind, (0.0, 0.0))))


@dataclass
class Faults:
    """Doing them to a site."""

    site: Site
    expected: Expected
    lander: Lander
    log: Log
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    """Faults that found nothing to hit."""

    def do(self, fault: Planned) -> None:
        """One fault, with a line for it."""
        ways: dict[str, Callable[[Planned], str | None]] = {
            "worker": lambda _: self._kill_worker(),
            "daemon": lambda _: self._kill_service("dagster-daemon"),
            "webserver": lambda _: self._kill_service("dagster-webserver"),
            "code_server": lambda _: self._kill_service("dagster code-server"),
            "mlflow": lambda _: self._kill_service("mlflow"),
            "postgres": self._lose_database,
            "disk": self._fill_disk,
            "corrupt": lambda _: self._corrupt(),
            "mend": lambda _: self._mend(),
            "up": lambda _: self._kill_up(),
            "power": lambda _: f"all {self.site.kill_all()} processes killed at once",
        }
        told = ways[fault.kind](fault)
        (self.missed if told is None else self.done)[fault.kind] += 1
        self.log.say(f"! {fault.kind}", told or "nothing there to hit", kind=fault.kind, is_done=told is not None)

    def _kill_service(self, program: str) -> str | None:
        up = self.site.up
        process = service(up, program) if up else None
        return None if process is None else _killed(process, program)

    def _kill_up(self) -> str | None:
        up = self.site.up
        return None if up is None else _killed(psutil.Process(up.process.pid), "perf-assets up, without its services,")

    def _kill_worker(self) -> str | None:
        deadline = time.monotonic() + _WORKER_SECONDS
        while time.monotonic() < deadline:
            workers = [process for process in self.site.processes() if _is_of_a_run(process)]
            if workers:
                # Somewhere in its work, not always at its beginning; some come to their end before.
                time.sleep(self.chance.uniform(0.0, _WORKER_SECONDS))
                return _killed(self.chance.choice(workers), "the process of a run")
            time.sleep(0.5)
        return None

    def _lose_database(self, fault: Planned) -> str:
        self.site.server.kill()
        time.sleep(fault.hold_seconds)
        wait_for(self._database_starts, "PostgreSQL after kill -9", _START_SECONDS)
        return f"PostgreSQL killed, and started again after {fault.hold_seconds:.0f} s"

    def _database_starts(self) -> bool:
        try:
            self.site.server.start()
        except AssertionError as error:
            # Processes of the killed one may still be there.
            self.log.note("postgres", line=str(error))
            return False
        return True

    def _fill_disk(self, fault: Planned) -> str:
        assert self.site.disk is not None
        taken = self.site.disk.fill()
        time.sleep(fault.hold_seconds)
        self.site.disk.free()
        return f"the lake's disk was full for {fault.hold_seconds:.0f} s ({taken / 1e9:.1f} GB taken)"

    def _corrupt(self) -> str | None:
        with self.expected.lock:
            candidates = [key for key in self.expected.fates if may_be_spoiled(self.expected, key)]
        recorded = self._recorded()
        new = [key for key in candidates if key not in recorded]
        chosen = new if new and self.chance.random() < _NEW_SHARE else candidates
        if not chosen:
            return None
        try:
            key = self.chance.choice(chosen)
            return corrupt(self.site.installation.lake, self.expected, key, self.chance.choice(WAYS), self.chance)
        except (BusyError, OSError) as error:
            self.log.note("corrupt", line=str(error))
            return None

    def _recorded(self) -> set[Key]:
        """Bundles that some ledger names."""
        found: set[Key] = set()
        for machine in self.expected.machines():
            ledger = MachineRecord(self.site.installation.lake.record, machine).ledger(["bundle"])
            found |= {(machine, name) for name in ledger["bundle"].to_pylist()}
        return found

    def _mend(self) -> str | None:
        with self.expected.lock:
            spoiled = [key for key, fate in self.expected.fates.items() if fate.why and fate.is_refused]
            chosen = self.chance.choice(spoiled) if spoiled else None
        if chosen is None or not self.lander.mend(chosen):
            return None
        return f"{chosen[0]}/{chosen[1]} landed again"


def _is_of_a_run(process: psutil.Process) -> bool:
    """Whether a process executes a run, or a part of one; the MLflow server has processes of the same kind."""
    with suppress(psutil.Error):
        return "spawn_main" in command(process) and not any(
            name.startswith("_MLFLOW_SERVER") for name in process.environ()
        )
    return False


def _killed(process: psutil.Process, what: str) -> str | None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return None
    return f"{what} killed (process {process.pid})"
