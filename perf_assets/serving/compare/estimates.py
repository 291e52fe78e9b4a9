"""How long configurations take on a machine: measured where they ran there, predicted by registered models else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perf_assets.core.comparison import Estimate
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.registry.source import NAME as SOURCE_MODELS
from perf_assets.serving.answers import Prediction
from perf_assets.serving.compare.workloads import Configuration, Portfolio
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import Run
from perf_assets.serving.runs import stored_runs
from perf_assets.serving.target import ServedTarget


@dataclass(frozen=True)
class KnownTime:
    """How long a configuration takes on a machine."""

    seconds: Estimate
    origin: Literal["measured", "champion", "prior"]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class MachineAnswers:
    """What is known of a machine."""

    by_configuration: dict[Configuration, KnownTime]
    left_out: str
    """Why it has no answer for the others."""


class TimeEstimator:
    """Answers for the configurations of a portfolio that ran on a baseline."""

    def __init__(self, predictor: Predictor, portfolio: Portfolio, baseline: str) -> None:
        self._predictor = predictor
        self._portfolio = portfolio
        self._baseline = baseline
        self.configurations = portfolio.configurations(baseline)
        """That are asked for."""
        self._stored: dict[str, dict[Configuration, Run]] = {}

    def answers(self, machine: str, *, with_measured: bool) -> MachineAnswers:
        """Measured runs first, then what models say of the others."""
        times = self._measured(machine) if with_measured or machine == self._baseline else {}
        others = [key for key in self.configurations if key not in times]
        if not others:
            return MachineAnswers(times, "")
        own, foreign = self._to_ask(machine, others)
        unasked = [key for key in others if key not in own and key not in foreign]
        reasons = [f"{unasked[0][0]} has no counters that models need on {self._baseline}"] if unasked else []
        for asked in (own, foreign):
            try:
                times |= self._predicted(machine, asked)
            except UnknownError as error:
                reasons.append(str(error))
        missing = {key[0] for key in self.configurations} - {key[0] for key in times}
        if missing:
            raise UnknownError(f"{machine} cannot be compared: {reasons[0]}")
        return MachineAnswers(times, f"{machine}: {reasons[0]}" if reasons else "")

    def _measured(self, machine: str) -> dict[Configuration, KnownTime]:
        width, said = self._portfolio.half_width(machine)
        factor = math.exp(width)
        return {
            key: KnownTime(Estimate(run.seconds, run.seconds / factor, run.seconds * factor), "measured", said)
            for key, run in self._portfolio.runs.get(machine, {}).items()
        }

    def _to_ask(
        self, machine: str, keys: Sequence[Configuration]
    ) -> tuple[dict[Configuration, Run], dict[Configuration, Run]]:
        """Runs that the machine's champion starts from, and runs on the baseline for the source models."""
        champion = self._predictor.models.target(machine)
        own: dict[Configuration, Run] = {}
        foreign: dict[Configuration, Run] = {}
        for key in keys:
            run = self._runs(self._baseline).get(key)
            if run is None:
                continue
            reference = None if champion is None else champion.reference_of(run)
            there = None if reference is None else self._runs(reference).get(key)
            if champion is not None and there is not None and _is_answered(champion, there):
                own[key] = there
            elif reference != self._baseline:
                foreign[key] = run
        return own, foreign

    def _runs(self, machine: str) -> dict[Configuration, Run]:
        """Runs of the portfolio on a machine that have counters."""
        if machine not in self._stored:
            runs = [
                run
                for app in {key[0] for key in self._portfolio.runs.get(machine, {})}
                for run in stored_runs(self._predictor.lake, machine, app, uses_gpus=self._portfolio.uses_gpus(app))
            ]
            self._stored[machine] = {(r.app, r.args, r.ranks, r.threads): r for r in runs if r.measured}
        return self._stored[machine]

    def _predicted(self, machine: str, asked: Mapping[Configuration, Run]) -> dict[Configuration, KnownTime]:
        answers = self._predictor.predict(list(asked.values()), machine) if asked else []
        return {key: _told(answer) for key, answer in zip(asked, answers, strict=True)}


def _is_answered(champion: ServedTarget, run: Run) -> bool:
    """Whether it has at least one of the counters that the model needs."""
    try:
        champion.ask(run)
    except BadInputError:
        return False
    return True


def _told(answer: Prediction) -> KnownTime:
    interval = Estimate(answer.predicted_seconds, answer.lower_seconds, answer.upper_seconds)
    return KnownTime(interval, "prior" if answer.model == SOURCE_MODELS else "champion", answer.warnings)
