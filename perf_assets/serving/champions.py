"""Registered models in use: loaded once, watched, and replaced when an alias moves."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.core.tables.models import AMMS
from perf_assets.features.fleet.descriptions import Descriptions
from perf_assets.registry.source import NAME, WITH_AMM
from perf_assets.registry.target import UnpairedTargetError, registered_name
from perf_assets.registry.versions import CHAMPION, all_aliases
from perf_assets.serving.answers import Noted
from perf_assets.serving.observations import check_counters, land_observation, landing_changed, observed_runs
from perf_assets.serving.requests import Observation
from perf_assets.serving.source import ServedSource
from perf_assets.serving.target import CheckedRun, ServedTarget
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored_or_empty, written_at
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.machines.readiness import Readiness

_PREFIX = registered_name("")


class Models:
    """Champions by machine and the source models, as the aliases were when last read.

    Whoever asks for a model keeps it for one answer: a replaced one ends with the last answer that uses it.
    """

    def __init__(self, lake: Lake, say: Callable[[str], None] = lambda line: None) -> None:
        self.lake = lake
        self.catalogue = load_catalogue(lake.site_catalogues())
        self._say = say
        self._aliases = all_aliases()
        self._targets: dict[str, ServedTarget] = {}
        self._unpaired: dict[str, int] = {}
        self._known_bundles: dict[str, set[str]] = {}
        self._landings: dict[str, int] = {}
        self._source: ServedSource | None = None
        self._described: tuple[int, ...] = ()
        self._reported: dict[str, str] = {}
        self._loading, self._loading_source = threading.RLock(), threading.Lock()

    def machines(self) -> list[str]:
        """Machines that have a champion."""
        aliases = self._aliases
        return sorted(name.removeprefix(_PREFIX) for name, given in aliases.items() if _is_served(name, given))

    def aliases(self) -> dict[str, dict[str, int]]:
        """Version that each alias pointed to when they were last looked at, by registered model."""
        return self._aliases

    def loaded_target(self, machine: str) -> ServedTarget | None:
        """The champion of a machine if it is loaded: never waits."""
        return self._targets.get(machine)

    def target(self, machine: str) -> ServedTarget | None:
        """The champion of a machine, loaded if need be; None where there is none."""
        served = self._targets.get(machine)
        if served is not None:
            return served
        with self._loading:
            version = self._aliases.get(registered_name(machine), {}).get(CHAMPION)
            if machine not in self._targets and version is not None and version != self._unpaired.get(machine):
                self._take(machine, version)
            return self._targets.get(machine)

    def asked_with_tables(self, machine: str) -> str | None:
        """Name of a champion that answers tables of counters of its own machine, and nothing else."""
        name = registered_name(machine)
        version = self._aliases.get(name, {}).get(CHAMPION)
        return name if version is not None and version == self._unpaired.get(machine) else None

    def source(self) -> ServedSource | None:
        """The source models, loaded if need be; None where none is registered."""
        with self._loading_source:
            versions = self._aliases.get(NAME, {})
            if WITH_AMM not in versions:
                return None
            described = written_at(self.lake, AMMS)
            if self._source is None or (dict(self._source.versions), self._described) != (versions, described):
                loaded = ServedSource.load(versions, self.catalogue)
                self._source, self._described = loaded.knowing(self._descriptions(loaded)), described
            return self._source

    def _descriptions(self, source: ServedSource) -> Descriptions:
        """Machines as they are described now by the encoder that the source models take."""
        return Descriptions.of(stored_or_empty(self.lake, AMMS), source.model.encoder_version)

    def load_all(self) -> None:
        """Load all champions of the lake."""
        for machine in self.machines():
            if machine not in self._targets:
                with self._telling_once(machine):
                    self.target(machine)

    def refresh(self) -> None:
        """Look where the aliases point now, and replace what has moved."""
        aliases = all_aliases()
        with self._loading:
            self._aliases = aliases
            for machine, present in list(self._targets.items()):
                version = aliases.get(present.name, {}).get(CHAMPION)
                if version is None:
                    del self._targets[machine]
                    self._say(f"{present.name} has no champion any more")
                elif version != present.version:
                    with self._telling_once(machine):
                        self._take(machine, version)
                        self._say(f"{present.name}: version {version} instead of {present.version}")
        self.load_all()
        if self._source is not None:
            self.source()

    def catch_up(self) -> None:
        """Take runs into account that others have handed in since."""
        for machine, target in list(self._targets.items()):
            changed = landing_changed(self.lake, machine)
            if changed != self._landings.get(machine):
                with self._loading:
                    self._replay(target)
                self._landings[machine] = changed

    def champion(self, machine: str) -> ServedTarget:
        """The champion of a machine that must have one."""
        served = self.target(machine)
        if served is None:
            raise UnknownError(f"{machine} has no champion: {next_step(self.lake, machine)}")
        return served

    def check(self, observation: Observation) -> CheckedRun:
        """Say what is wrong with a measured run before it lands; the same run on the reference machine."""
        check_counters(observation)
        return reference_run(self.champion(observation.machine), observation)

    def observe(self, observation: Observation) -> Noted:
        """Let a measured run land and count from the next prediction on; one that is wrong does not land."""
        asked = self.check(observation)
        target = self.champion(observation.machine)
        before = target.predict([asked])[0]
        bundle, is_new = land_observation(self.lake, observation, is_simulated=target.is_simulated)
        with self._loading:
            # The champion may have been replaced meanwhile.
            target = self._targets.get(observation.machine, target)
            self._replay(target)
        return Noted(
            machine=observation.machine,
            app=observation.app,
            args=observation.args,
            ranks=observation.ranks,
            threads=observation.threads,
            measured_seconds=observation.wall_seconds,
            predicted_seconds=before.predicted_seconds,
            lower_seconds=before.lower_seconds,
            upper_seconds=before.upper_seconds,
            bundle=bundle,
            is_new=is_new,
            observed_count=target.observed_count,
        )

    @contextmanager
    def _telling_once(self, machine: str) -> Iterator[None]:
        """A champion that cannot be loaded does not hold up the others, and is reported once."""
        try:
            yield
            self._reported.pop(machine, None)
        except BadInputError as error:
            if self._reported.get(machine) != str(error):
                self._reported[machine] = str(error)
                self._say(f"the champion of {machine} cannot be used: {error}")

    def _take(self, machine: str, version: int) -> None:
        """Put a version in the place of the one in use; one that answers tables alone leaves that place empty."""
        try:
            self._targets[machine] = self._load(machine, version)
        except UnpairedTargetError:
            self._targets.pop(machine, None)
            self._unpaired[machine] = version

    def _load(self, machine: str, version: int) -> ServedTarget:
        """A champion with the observed runs that it was not made of."""
        made = ServedTarget.load(machine, version, self.catalogue)
        self._known_bundles[machine] = set()
        # Nobody has it yet: all observed runs are looked at again.
        self._replay(made)
        return made

    def _replay(self, target: ServedTarget) -> None:
        known = self._known_bundles.setdefault(target.machine, set())
        runs = []
        for landed in observed_runs(self.lake, target.machine, known):
            known.add(landed.bundle)
            try:
                asked = reference_run(target, landed.observation)
            except BadInputError as error:
                self._say(f"observed run {landed.bundle} of {target.machine} is left to adaptation: {error}")
                continue
            if landed.handed_in_at > target.made_at or not target.learned_from(asked):
                runs.append((asked, landed.observation.wall_seconds))
        target.take(runs)


def reference_run(target: ServedTarget, observation: Observation) -> CheckedRun:
    """The observed run as it was on the model's reference machine: given with it, or known to the model."""
    seen_as = target.seen_as(observation.gpus)
    given = observation.reference
    if given is not None:
        same = ("app", "ranks", "threads")
        wrong = [name for name in same if getattr(given, name) != getattr(observation, name)]
        wrong += ["target_ranks"] if given.ranks_there != given.ranks else []
        if wrong:
            raise BadInputError(f"reference.{wrong[0]}: differs: it must be the same run, elsewhere")
        return target.ask(given.model_copy(update={"uses_gpus": seen_as == target.machine}))
    run = target.known_run(observation.app, observation.args, observation.ranks, observation.threads, seen_as=seen_as)
    if run is None:
        raise BadInputError(
            f"{observation.app} {observation.args} ({observation.ranks} x {observation.threads}) is not known on "
            f"{target.references[seen_as]}, from whose runs the model of {target.machine} starts: give that run as "
            "reference, or land this one with 'perf-assets land'"
        )
    return run


def next_step(lake: Lake, machine: str) -> str:
    """Advice on how to get a target model of a machine that has none."""
    return Readiness.of(Fleet(lake), machine).next_step


def _is_served(name: str, aliases: dict[str, int]) -> bool:
    return name.startswith(_PREFIX) and CHAMPION in aliases


OBSERVED_SECONDS = 0.3
"""Seconds between two looks at the landing zone: a run that somebody hands in counts within a second."""
ALIAS_SECONDS = 2.0
"""Seconds between two looks at the registry."""
_log = logging.getLogger("perf_assets.serve")


class Watcher:
    """A thread that brings models up to date. What goes wrong is logged, and the present models stay in use."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._last_problem = ""

    def start(self) -> None:
        """Start to follow the aliases."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following the aliases."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._ended.wait(OBSERVED_SECONDS):
            try:
                self._models.catch_up()
                if time.monotonic() - looked >= ALIAS_SECONDS:
                    self._models.refresh()
                    looked = time.monotonic()
                self._last_problem = ""
            except Exception as error:
                if str(error) != self._last_problem:
                    self._last_problem = str(error)
                    _log.warning("models stay as they are: %s", " ".join(str(error).split()))
