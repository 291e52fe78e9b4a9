"""Choice of the model that answers a run, for the command line, Python and HTTP alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from perf_assets.core.errors import BadInputError, BusyError, UnknownError
from perf_assets.core.tables.landing import RUNS, SPECS, TIMINGS
from perf_assets.serving.answers import KnownMachine, Noted, Prediction
from perf_assets.serving.champions import Models, next_step
from perf_assets.serving.measurements import Measurements
from perf_assets.serving.requests import Observation, Run
from perf_assets.serving.source import ServedSource
from perf_assets.serving.target import ServedTarget
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.fleet import Fleet, open_warehouse
from perf_assets.workflows.machines.readiness import Readiness

_SLIP_FACTOR = 5.0
"""Factor beyond an interval from which on a measured time is taken for a slip."""
FEW_SHOTS = 20
"""Runs of a machine below which more of them are the best advice."""


class Predictor:
    """Answers from registered models only."""

    def __init__(self, lake: Lake, say: Callable[[str], None] = lambda line: None) -> None:
        self.lake = lake
        self.models = Models(lake, say)
        self.measured = Measurements(lake)

    def champion_for(self, run: Run, target: str) -> ServedTarget | None:
        """The target model that answers this run, where it is loaded; never waits."""
        champion = self.models.loaded_target(target)
        return champion if champion is not None and run.machine != target and champion.serves(run) else None

    def predict(self, runs: Sequence[Run], target: str, *, with_measured: bool = False) -> list[Prediction]:
        """Predicted time of each run on the target, by the source that knows most of it.

        That is a measurement there (if wanted); the target's champion, from the run itself if it is of the champion's
        reference machine, else from the same configuration there; the source models.
        """
        known, others = self._by_the_target(runs, target, with_measured=with_measured)
        answers = known | (self._by_the_source(runs, others, target) if others else {})
        return [answers[i] for i in range(len(runs))]

    def predict_known(
        self, runs: Sequence[Run], target: str, *, with_measured: bool = False
    ) -> tuple[list[Prediction], list[str]]:
        """Predict those of the runs that some model can answer, and tell why others are left out."""
        known, others = self._by_the_target(runs, target, with_measured=with_measured)
        left_out = []
        try:
            known |= self._by_the_source(runs, others, target) if others else {}
        except UnknownError as error:
            if not known:
                raise
            left_out = [f"{len(others)} of {len(runs)} runs are left out: {error}"]
        return [known[i] for i in sorted(known)], left_out

    def _by_the_target(
        self, runs: Sequence[Run], target: str, *, with_measured: bool
    ) -> tuple[dict[int, Prediction], list[int]]:
        """Answers of what was measured on the target and of its champion, by position; positions of all other runs."""
        self._check_machines(runs, target)
        known = self.measured.of_runs(runs, target) if with_measured else {}
        champion = self.models.target(target)
        if champion is not None:
            known |= _of_champion(champion, {i: run for i, run in enumerate(runs) if i not in known})
        return known, [i for i in range(len(runs)) if i not in known]

    def _by_the_source(self, runs: Sequence[Run], positions: Sequence[int], target: str) -> dict[int, Prediction]:
        """Answers of the source models for the runs at some positions; refuses where they do not know the target."""
        asked = [runs[i] for i in positions]
        source, why = self._source_for(asked, target, self.models.target(target))
        if any(run.ranks_there != run.ranks for run in asked):
            raise UnknownError(f"{why}: only a target model knows other numbers of ranks, leave target_ranks out")
        architectures = {run.machine: _microarchitecture(self.lake, run.machine) for run in asked}
        return dict(zip(positions, source.predict(asked, target, architectures, why), strict=True))

    def predict_everywhere(
        self, runs: Sequence[Run], *, with_measured: bool = False
    ) -> tuple[list[Prediction], list[str]]:
        """Predict for every machine that has a model for these runs, and tell why others are left out."""
        sources = {run.machine for run in runs}
        predictions: list[Prediction] = []
        left_out = []
        for target in self.targets():
            if target not in sources:
                try:
                    predictions += self.predict(runs, target, with_measured=with_measured)
                except UnknownError as error:
                    left_out.append(f"{target} is left out: {error}")
        if not predictions:
            nothing = f"no machine has a model yet: {next_step(self.lake, runs[0].machine)}"
            raise UnknownError(left_out[0] if left_out else nothing)
        return predictions, left_out

    def observe(self, observations: Sequence[Observation], *, force: bool = True) -> list[Noted]:
        """Hand in measured runs: all are checked before one lands, also whether they are plausible unless forced."""
        for observation in observations:
            asked = self.models.check(observation)
            if not force:
                _check_plausible(observation, self.models.champion(observation.machine).predict([asked])[0])
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
            machine=machine,
            has_benchmark=bool(record.live_parts(TIMINGS)),
            has_runs=bool(record.live_parts(RUNS)),
            champion_version=None if champion is None else champion.version,
            reference_machine=None if champion is None else champion.reference,
            shots=None if champion is None else champion.shots,
            observed_count=0 if champion is None else champion.observed_count,
            severity=None if champion is None else champion.severity,
            next_step=advice,
        )

    def _advice(self, machine: str) -> str:
        """Advice for a machine without a champion that starts from runs on another machine."""
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
            kernels = Readiness.of(Fleet(self.lake), target).kernels.summary
            raise UnknownError(f"{why}; nor can the source models answer for it, which is not described ({kernels})")
        return model, f"{why}: answered by the source models"


def _of_champion(champion: ServedTarget, runs: Mapping[int, Run]) -> dict[int, Prediction]:
    """Answers by position, of runs that the champion can answer."""
    asked = {}
    for position, run in runs.items():
        checked_run = champion.ask(run) if champion.serves(run) else champion.same_run(run)
        if checked_run is not None:
            asked[position] = checked_run
    answers = champion.predict(list(asked.values())) if asked else []
    return {i: _about(runs[i], answer) for i, answer in zip(asked, answers, strict=True)}


def _check_plausible(observation: Observation, expected: Prediction) -> None:
    """Refuse a time that is implausibly far outside the predicted interval."""
    least, most = expected.lower_seconds / _SLIP_FACTOR, expected.upper_seconds * _SLIP_FACTOR
    if not least <= observation.wall_seconds <= most:
        raise BadInputError(
            f"{observation.app} took {observation.wall_seconds:.4g} s where {expected.lower_seconds:.4g} to "
            f"{expected.upper_seconds:.4g} s are predicted: are these seconds? --force (force=True) takes it as it is"
        )


def _about(run: Run, answer: Prediction) -> Prediction:
    """An answer in terms of the run that was asked about."""
    return replace(
        answer,
        source_machine=run.machine,
        args=run.args,
        source_seconds=run.wall_seconds,
        relative_time=answer.predicted_seconds / run.wall_seconds,
    )


def _microarchitecture(lake: Lake, machine: str) -> str | None:
    """Microarchitecture as the data sheet says that is ingested by now; None where there is none."""
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
