"""Landing without a pause: bundles of several machines of the simulated fleet, in several formats."""

import random
import threading
import time
from collections.abc import Iterator

from chaos.expected import Expected, Key
from chaos.log import Log
from perf_assets.demo.fleet import fleet_bundles
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land

MACHINES = ("quartz", "ruby", "dane", "epyc-vm", "tioga")
"""Caliper and HPCToolkit XML, HPCToolkit v4, PAPI, perf stat, samples as CSV; RAJAPerf reports of all."""
_SCALES = tuple(0.1 * step for step in range(1, 41))
"""Of the fleet: each is a part of the next, and the tables of samples of the next supersede those of the one before."""
_PAUSE_SECONDS = 1.0
_COPY_SHARE = 0.03
"""Of bundles that land a second time under another name: the same content must count once."""
_COPY = "again-"


class Lander:
    """A thread that lands bundles until it is told to stop."""

    def __init__(self, lake: Lake, expected: Expected, log: Log, chance: random.Random) -> None:
        self._lake = lake
        self._expected = expected
        self._log = log
        self._chance = chance
        self._streams = {machine: _stream(machine) for machine in MACHINES}
        self._sources: dict[Key, SimulatedBundle] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="landing")
        self.landed_count = 0
        self.refused_landings = 0
        """Tries that ended with an error, as on a full disk: the producer knows, and tries again."""
        self.fault: BaseException | None = None

    def start(self) -> None:
        """Land from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Come to an end, with one more bundle of each machine, and wait for that."""
        self._stopped.set()
        self._thread.join()
        if self.fault is not None:
            raise self.fault

    def land(self, bundle: SimulatedBundle, name: str) -> bool:
        """Land one bundle, and expect it; False where the disk does not take it."""
        with self._expected.lock:
            try:
                landing = land(self._lake, bundle.facts, name, bundle.write)
            except OSError as error:
                self.refused_landings += 1
                self._log.note("landing", name=name, error=str(error))
                return False
            self._expected.landed(landing.bundle)
        key = (bundle.facts.machine, name)
        self._sources[key] = bundle
        self.landed_count += landing.is_new
        self._log.note("landed", machine=key[0], name=name, digest=landing.bundle.digest)
        return True

    def mend(self, key: Key) -> bool:
        """Land again what was spoiled, as the quarantine says; False where that is not known here or has no room."""
        bundle = self._sources.get(key)
        return bundle is not None and self.land(bundle, key[1])

    def _work(self) -> None:
        try:
            while not self._stopped.wait(self._chance.expovariate(1 / _PAUSE_SECONDS)):
                self._next(self._chance.choice(MACHINES))
            for machine in MACHINES:
                # What was mended without a new manifest is taken by the run that something new starts.
                while not self._next(machine):
                    pass
        except BaseException as error:
            self.fault = error

    def _next(self, machine: str) -> bool:
        """The next bundle of a machine, again and again while the disk is full; whether its content is new."""
        bundle, before = next(self._streams[machine]), self.landed_count
        while not self.land(bundle, bundle.name):
            time.sleep(1.0)
        is_new = self.landed_count > before
        if bundle.facts.kind == "profile" and self._chance.random() < _COPY_SHARE:
            self.land(bundle, f"{_COPY}{bundle.name}")
        return is_new


def may_be_spoiled(expected: Expected, key: Key) -> bool:
    """Whether a bundle is as it was landed, and its content stands under one name only."""
    machine, name = key
    fate = expected.fates[key]
    has_copy = name.startswith(_COPY) or (machine, f"{_COPY}{name}") in expected.fates
    return not has_copy and not fate.is_refused and not fate.why


def _stream(machine: str) -> Iterator[SimulatedBundle]:
    """Bundles of a machine, each content once; later ones supersede earlier ones of the same name, if they differ."""
    seen: set[str] = set()
    for scale in _SCALES:
        for bundle in fleet_bundles(scale, 0, [machine]):
            if bundle.facts.kind == "samples" or bundle.name not in seen:
                seen.add(bundle.name)
                yield bundle
