"""Machines beside each other for a portfolio: means over configurations and applications, costs, places."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perf_assets.core.comparison import (
    WORK_NODE_HOURS,
    ComparedApplication,
    ComparedMachine,
    Comparison,
    Estimate,
    Evidence,
    Measure,
    Ranked,
    ranked,
    total,
    typical,
)
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.registry.source import NAME as SOURCE_MODELS
from perf_assets.serving.answers import Prediction
from perf_assets.serving.asked_runs import stored_runs
from perf_assets.serving.compare.workloads import Configuration, Portfolio
from perf_assets.serving.predictor import FEW_SHOTS, Predictor
from perf_assets.serving.requests import Run
from perf_assets.serving.target import ServedTarget


@dataclass(frozen=True)
class KnownTime:
    """Time of a configuration on a machine."""

    seconds: Estimate
    origin: Literal["measured", "champion", "prior"]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class MachineAnswers:
    """Knowledge about a machine."""

    by_configuration: dict[Configuration, KnownTime]
    left_out: str
    """Reason why it has no answer for the others."""


class TimeEstimator:
    """Answers for the configurations of a portfolio that ran on a baseline."""

    def __init__(self, predictor: Predictor, portfolio: Portfolio, baseline: str) -> None:
        self._predictor = predictor
        self._portfolio = portfolio
        self._baseline = baseline
        self.configurations = portfolio.configurations(baseline)
        """Configurations that are asked for."""
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
        width, notes = self._portfolio.half_width(machine)
        factor = math.exp(width)
        return {
            key: KnownTime(Estimate(run.seconds, run.seconds / factor, run.seconds * factor), "measured", notes)
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
        return {key: _known_time(answer) for key, answer in zip(asked, answers, strict=True)}


def _is_answered(champion: ServedTarget, run: Run) -> bool:
    """Whether it has at least one of the counters that the model needs."""
    try:
        champion.ask(run)
    except BadInputError:
        return False
    return True


def _known_time(answer: Prediction) -> KnownTime:
    interval = Estimate(answer.predicted_seconds, answer.lower_seconds, answer.upper_seconds)
    return KnownTime(interval, "prior" if answer.model == SOURCE_MODELS else "champion", answer.warnings)


_WATTS_A_KILOWATT = 1000.0
_RankedBy = Mapping[Measure, Mapping[str, Ranked]]


@dataclass(frozen=True)
class Costs:
    """Costs of a node of each machine; empty where they were not given."""

    prices: Mapping[str, float]
    """Price of a node-hour, in any one currency."""
    watts: Mapping[str, float]
    """Power that a node draws."""

    def check(self, machines: Sequence[str]) -> None:
        """Each must be given for all machines, or for none."""
        for name, given in (("price", self.prices), ("power", self.watts)):
            for machine, value in given.items():
                if machine not in machines:
                    raise BadInputError(f"--{name} {machine}: is none of the machines that are compared")
                if not (math.isfinite(value) and value > 0):
                    raise BadInputError(f"--{name} {machine}={value:g}: must be above 0")
            missing = [machine for machine in machines if machine not in given]
            if given and missing:
                raise BadInputError(f"--{name} is missing for {', '.join(missing)}: give it for all machines or none")


class Comparer:
    """Compares machines for one portfolio."""

    def __init__(self, predictor: Predictor, portfolio: Portfolio, baseline: str | None) -> None:
        self._predictor = predictor
        self._portfolio = portfolio
        self._asked_baseline = baseline

    def compare(self, machines: Sequence[str], costs: Costs, *, with_measured: bool) -> Comparison:
        """All machines over the configurations that each of them has an answer for."""
        repeated = [machine for machine, count in Counter(machines).items() if count > 1]
        if repeated or not machines:
            raise BadInputError(f"{repeated[0]} is named twice" if repeated else "name the machines to compare")
        costs.check(machines)
        baseline = self._baseline(machines)
        estimator = TimeEstimator(self._predictor, self._portfolio, baseline)
        every = estimator.configurations
        answers = {machine: estimator.answers(machine, with_measured=with_measured) for machine in machines}
        shared = [key for key in every if all(key in of_machine.by_configuration for of_machine in answers.values())]
        self._check_shared(shared, answers)
        applications = {
            machine: [self._application(machine, baseline, app, shared, of_machine) for app in self._portfolio.weights]
            for machine, of_machine in answers.items()
        }
        measures = _measures(applications, costs)
        by: Measure = "price" if costs.prices else "energy_kwh" if costs.watts else "relative_time"
        compared = [self._machine(machine, by, measures, shared, answers[machine]) for machine in machines]
        compared.sort(key=lambda one: measures[by][one.machine].value)
        notes = [
            f"{len(every) - len(shared)} of {len(every)} configurations are left out: {of_machine.left_out}"
            for of_machine in answers.values()
            if of_machine.left_out
        ]
        return Comparison(
            baseline,
            by,
            tuple(compared),
            tuple(application for one in compared for application in applications[one.machine]),
            tuple(notes),
        )

    def _baseline(self, machines: Sequence[str]) -> str:
        if self._asked_baseline is not None:
            if self._asked_baseline not in self._predictor.lake.machines():
                raise UnknownError(f"machine {self._asked_baseline!r} is not known: nothing of it has landed")
            return self._asked_baseline
        champions = [self._predictor.models.target(machine) for machine in machines]
        return self._portfolio.usual_baseline([champion.reference for champion in champions if champion is not None])

    def _check_shared(self, shared: Sequence[Configuration], answers: Mapping[str, MachineAnswers]) -> None:
        for app in self._portfolio.weights:
            if not any(key[0] == app for key in shared):
                reasons = [of_machine.left_out for of_machine in answers.values() if of_machine.left_out]
                raise UnknownError(f"no configuration of {app} is known on all machines: {reasons[0]}")

    def _application(
        self, machine: str, baseline: str, app: str, shared: Sequence[Configuration], answers: MachineAnswers
    ) -> ComparedApplication:
        portfolio = self._portfolio
        keys = [key for key in shared if key[0] == app]
        known_times = [answers.by_configuration[key] for key in keys]
        to_time = [1 / portfolio.runs[baseline][key].seconds for key in keys]
        to_node_time = [
            factor * portfolio.nodes(machine, key) / portfolio.nodes(baseline, key)
            for factor, key in zip(to_time, keys, strict=True)
        ]
        weight = portfolio.weights[app]
        return ComparedApplication(
            machine=machine,
            app=app,
            weight_ratio=weight,
            configurations=_evidence(known_times),
            seconds=_typical(known_times, [1.0] * len(known_times)),
            relative_time=_typical(known_times, to_time),
            node_hours=_typical(known_times, to_node_time).times(weight * WORK_NODE_HOURS),
        )

    def _machine(
        self, machine: str, by: Measure, measures: _RankedBy, shared: Sequence[Configuration], answers: MachineAnswers
    ) -> ComparedMachine:
        known_times = [answers.by_configuration[key] for key in shared]
        evidence = _evidence(known_times)
        return ComparedMachine(
            place=measures[by][machine].place,
            machine=machine,
            relative_time=measures["relative_time"][machine],
            node_hours=measures["node_hours"][machine],
            energy_kwh=measures["energy_kwh"][machine] if "energy_kwh" in measures else None,
            price=measures["price"][machine] if "price" in measures else None,
            configurations=evidence,
            is_simulated=machine in self._portfolio.simulated,
            warnings=(
                *self._placement_warnings(machine, shared),
                *(self._champion_warnings(machine) if evidence.champion else ()),
                *_warnings(known_times),
            ),
        )

    def _champion_warnings(self, machine: str) -> list[str]:
        shots = self._predictor.models.champion(machine).shots
        few = f"its champion was made of {shots} runs of {machine}: its intervals may be too narrow"
        return [few] if shots < FEW_SHOTS else []

    def _placement_warnings(self, machine: str, shared: Sequence[Configuration]) -> list[str]:
        sheet = self._portfolio.sheets.get(machine)
        if sheet is None:
            return [f"{machine} has no data sheet: nodes are those that other machines needed"]
        ran = self._portfolio.runs.get(machine, {})
        never = [
            key for key in shared if key not in ran and not sheet.holds(key[3], self._portfolio.nodes(machine, key))
        ]
        note = (
            f"{len(never)} of {len(shared)} configurations do not fit there by its data sheet: predicted as if they did"
        )
        return [note] if never else []


def _measures(applications: Mapping[str, Sequence[ComparedApplication]], costs: Costs) -> _RankedBy:
    """Measures of the whole portfolio that are known."""
    time = {
        machine: total([one.relative_time.times(one.weight_ratio) for one in by_app])
        for machine, by_app in applications.items()
    }
    node_hours = {machine: total([one.node_hours for one in by_app]) for machine, by_app in applications.items()}
    measures: dict[Measure, Mapping[str, Ranked]] = {"relative_time": ranked(time), "node_hours": ranked(node_hours)}
    kilowatts = {machine: watts / _WATTS_A_KILOWATT for machine, watts in costs.watts.items()}
    of_a_node_hour: dict[Measure, Mapping[str, float]] = {"energy_kwh": kilowatts, "price": costs.prices}
    for name, factors in of_a_node_hour.items():
        if factors:
            measures[name] = ranked({machine: one.times(factors[machine]) for machine, one in node_hours.items()})
    return measures


def _typical(known_times: Sequence[KnownTime], factors: Sequence[float]) -> Estimate:
    """Mean of the times, each in its own unit."""
    scaled = [(one.origin, one.seconds.times(factor)) for one, factor in zip(known_times, factors, strict=True)]
    return typical(
        [one for origin, one in scaled if origin != "measured"], [one for origin, one in scaled if origin == "measured"]
    )


def _evidence(known_times: Sequence[KnownTime]) -> Evidence:
    counts = Counter(one.origin for one in known_times)
    return Evidence(counts["measured"], counts["champion"], counts["prior"])


def _warnings(known_times: Sequence[KnownTime]) -> list[str]:
    """Each kind once, in the words of the first, with the number of configurations that have it."""
    kinds: dict[str, list[str]] = {}
    for one in known_times:
        for warning in one.warnings:
            kinds.setdefault(warning.split(": ")[0], []).append(warning)
    return [
        f"{'for example ' if len(set(alike)) > 1 else ''}{alike[0]} ({len(alike)} of {len(known_times)} configurations)"
        for alike in kinds.values()
    ]
