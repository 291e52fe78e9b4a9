"""Which model answers which run, for the command line, Python and HTTP alike."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from perf_assets.core.errors import BadInputError, BusyError, UnknownError
from perf_assets.core.tables.landing import RUNS, SPECS, TIMINGS
from perf_assets.serving.answers import KnownMachine, Noted, Prediction
from perf_assets.serving.champions import Models, next_step
from perf_assets.serving.requests import Observation, Run
from perf_assets.serving.source import ServedSource
from perf_assets.serving.target import ServedTarget
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.fleet import open_warehouse

FEW_SHOTS = 20
"""Runs of a machine below which more of them are the best advice."""


class Predictor:
    """Answers from registered models only."""

    def __init__(self, lake: Lake, say: Callable[[str], None] = lambda line: None) -> None:
        self.lake = lake
        self.models = Models(lake, say)

    def champion_for(self, run: Run, target: str) -> ServedTarget | None:
        """The target model that answers this run, where it is loaded; never waits."""
        champion = self.models.loaded_target(target)
        return champion if champion is not None and run.machine != target and champion.serves(run) else None

    def predict(self, runs: Sequence[Run], target: str) -> list[Prediction]:
        """How long each run takes on the target: by its champion where runs are of the champion's reference machine,
        by the source models otherwise.
        """
        self._check_machines(runs, target)
        champion = self.models.target(target)
        found: dict[int, Prediction] = {}
        own = [i for i, run in enumerate(runs) if champion is not None and champion.serves(run)]
        if champion is not None and own:
            asked = [champion.ask(runs[i]) for i in own]
            found |= dict(zip(own, champion.predict(asked), strict=True))
        others = [i for i in range(len(runs)) if i not in found]
        if others:
            asked_of_source = [runs[i] for i in others]
            source, why = self._source_for(asked_of_source, target, champion)
            architectures = {run.machine: _microarchitecture(self.lake, run.machine) for run in asked_of_source}
            answers = source.predict(asked_of_source, target, architectures, why)
            found |= dict(zip(others, answers, strict=True))
        return [found[i] for i in range(len(runs))]

    def predict_everywhere(self, runs: Sequence[Run]) -> tuple[list[Prediction], list[str]]:
        """The same for every machine that has a model for these runs, and why others are left out."""
        sources = {run.machine for run in runs}
        found: list[Prediction] = []
        left_out = []
        for target in self.targets():
            if target not in sources:
                try:
                    found += self.predict(runs, target)
                except UnknownError as error:
                    left_out.append(f"{target} is left out: {error}")
        if not found:
            raise UnknownError(left_out[0] if left_out else "no machine has a model yet: run 'perf-assets train'")
        return found, left_out

    def observe(self, observations: Sequence[Observation]) -> list[Noted]:
        """Hand in measured runs: all are checked before one lands."""
        for observation in observations:
            self.models.check(observation)
        return [self.models.observe(observation) for observation in observations]

    def targets(self) -> list[str]:
        """Machines that some model knows."""
        known = set(self.models.machines())
        model = self.models.source()
        if model is not None:
            known |= set(model.model.machines.samples.physical_machines.tolist())
        return sorted(known)

    def machines(self) -> list[KnownMachine]:
        """All machines of the lake and of the registry."""
        return [self._described(m) for m in sorted({*self.lake.machines(), *self.models.machines()})]

    def _described(self, machine: str) -> KnownMachine:
        record = MachineRecord(self.lake.record, machine)
        champion = self.models.target(machine)
        advice = self._advice(machine) if champion is None else "predictions are ready"
        if champion is not None and champion.shots < FEW_SHOTS:
            advice = f"predictions are ready; 'perf-assets plan {machine}' names the runs that would improve them most"
        return KnownMachine(
            machine,
            bool(record.live_parts(TIMINGS)),
            bool(record.live_parts(RUNS)),
            None if champion is None else champion.version,
            None if champion is None else champion.reference,
            None if champion is None else champion.shots,
            0 if champion is None else champion.observed_count,
            None if champion is None else champion.severity,
            advice,
        )

    def _advice(self, machine: str) -> str:
        """What to do about a machine that has no champion which starts from runs on another machine."""
        name = self.models.asked_with_tables(machine)
        if name is None:
            return next_step(self.lake, machine)
        return f"ask {name} with a table of counters measured on {machine}: 'perf-assets predict --model {name} TABLE'"

    def _check_machines(self, runs: Sequence[Run], target: str) -> None:
        """Refuse machines of which nothing is known."""
        if not runs:
            raise BadInputError("there is no run to predict")
        if any(run.machine == target for run in runs):
            raise BadInputError(f"the run was measured on {target} itself: ask for another machine")
        champion = self.models.target(target)
        known = {*self.lake.machines(), *self.models.machines(), *(champion.references.values() if champion else ())}
        for machine in sorted({target, *(run.machine for run in runs)} - known):
            model = self.models.source()
            if model is None or not model.knows(machine):
                raise UnknownError(f"machine {machine!r} is not known: {next_step(self.lake, machine)}")

    def _source_for(self, runs: Sequence[Run], target: str, champion: ServedTarget | None) -> tuple[ServedSource, str]:
        """The source models, and why they and no target model answer."""
        model = self.models.source()
        first = runs[0].machine
        if champion is not None:
            why = f"the model of {target} starts from runs on {champion.reference} (give one), not on {first}"
        elif self.models.asked_with_tables(target):
            why = f"the runs of {target} pair with those of no other machine ({self._advice(target)})"
        else:
            why = f"{target} has no champion yet ({next_step(self.lake, target)})"
        if model is None:
            raise UnknownError(f"{why}, and no source model is registered: run 'perf-assets train'")
        if not model.knows(target):
            raise UnknownError(
                f"{why}, and nothing describes it yet: 'perf-assets ingest' does once its RAJAPerf runs have landed"
            )
        return model, f"{why}: answered by the source models"


def _microarchitecture(lake: Lake, machine: str) -> str | None:
    """As the machine's data sheet says that is ingested by now; None where there is none."""
    ledger = MachineRecord(lake.record, machine).ledger_file()
    return _read_microarchitecture(lake, machine, ledger.stat().st_mtime_ns) if ledger.is_file() else None


@lru_cache(maxsize=1024)
def _read_microarchitecture(lake: Lake, machine: str, ingested_at: int) -> str | None:
    """Read once for each state of the machine's record, also where this host has made no warehouse yet."""
    query = f"SELECT microarchitecture FROM {SPECS.name} WHERE machine = ?"
    try:
        rows = open_warehouse(lake, wait_seconds=5.0).frame(query, [machine])
    except BusyError:
        raise
    except BadInputError:
        return None
    return None if rows.empty else str(rows["microarchitecture"].iloc[0])
