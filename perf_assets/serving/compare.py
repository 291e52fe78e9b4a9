"""Machines beside each other for a portfolio: measured where they ran it, predicted by registered models elsewhere."""

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
from perf_assets.serving.asked import Run
from perf_assets.serving.portfolio import Configuration, Portfolio
from perf_assets.serving.predictor import FEW_SHOTS, Predictor
from perf_assets.serving.reading import stored_runs

_WATTS_A_KILOWATT = 1000.0
_RankedBy = Mapping[Measure, Mapping[str, Ranked]]


@dataclass(frozen=True)
class Costs:
    """Of a node of each machine; empty where they were not given."""

    prices: Mapping[str, float]
    """Of a node-hour, in any one currency."""
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


@dataclass(frozen=True)
class _Told:
    """How long a configuration takes on a machine."""

    seconds: Estimate
    origin: Literal["measured", "champion", "prior"]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Answers:
    """What is known of a machine."""

    by_configuration: dict[Configuration, _Told]
    left_out: str
    """Why it has no answer for the others."""


class Comparer:
    """Compares machines for one portfolio."""

    def __init__(self, predictor: Predictor, portfolio: Portfolio, baseline: str | None) -> None:
        self._predictor = predictor
        self._portfolio = portfolio
        self._asked_baseline = baseline
        self._stored: dict[str, dict[Configuration, Run]] = {}

    def compare(self, machines: Sequence[str], costs: Costs, *, with_measured: bool) -> Comparison:
        """All machines over the configurations that each of them has an answer for."""
        repeated = [machine for machine, count in Counter(machines).items() if count > 1]
        if repeated or not machines:
            raise BadInputError(f"{repeated[0]} is named twice" if repeated else "name the machines to compare")
        costs.check(machines)
        baseline = self._baseline(machines)
        every = self._portfolio.configurations(baseline)
        answers = {
            machine: self._answers(machine, baseline, every, with_measured=with_measured) for machine in machines
        }
        shared = [key for key in every if all(key in found.by_configuration for found in answers.values())]
        self._check_shared(shared, answers)
        applications = {
            machine: [self._application(machine, baseline, app, shared, found) for app in self._portfolio.weights]
            for machine, found in answers.items()
        }
        measures = _measures(applications, costs)
        by: Measure = "price" if costs.prices else "energy_kwh" if costs.watts else "relative_time"
        compared = [self._machine(machine, by, measures, shared, answers[machine]) for machine in machines]
        compared.sort(key=lambda one: measures[by][one.machine].value)
        notes = [
            f"{len(every) - len(shared)} of {len(every)} configurations are left out: {found.left_out}"
            for found in answers.values()
            if found.left_out
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
        return self._portfolio.usual_baseline([found.reference for found in champions if found is not None])

    def _answers(self, machine: str, baseline: str, keys: Sequence[Configuration], *, with_measured: bool) -> _Answers:
        """Measured runs first, then what models say of the others."""
        found: dict[Configuration, _Told] = {}
        if with_measured or machine == baseline:
            found = self._measured(machine)
        others = [key for key in keys if key not in found]
        if not others:
            return _Answers(found, "")
        own, foreign = self._to_ask(machine, baseline, others)
        reasons = [f"{others[0][0]} has no counters on {baseline}"] if len(own) + len(foreign) < len(others) else []
        for asked in (own, foreign):
            try:
                found |= self._predicted(machine, asked)
            except UnknownError as error:
                reasons.append(str(error))
        missing = {key[0] for key in keys} - {key[0] for key in found}
        if missing:
            raise UnknownError(f"{machine} cannot be compared: {reasons[0]}")
        return _Answers(found, f"{machine}: {reasons[0]}" if reasons else "")

    def _measured(self, machine: str) -> dict[Configuration, _Told]:
        width, said = self._portfolio.half_width(machine)
        factor = math.exp(width)
        return {
            key: _Told(Estimate(run.seconds, run.seconds / factor, run.seconds * factor), "measured", said)
            for key, run in self._portfolio.runs.get(machine, {}).items()
        }

    def _to_ask(
        self, machine: str, baseline: str, keys: Sequence[Configuration]
    ) -> tuple[dict[Configuration, Run], dict[Configuration, Run]]:
        """Runs that the machine's champion starts from, and runs on the baseline for all that it has none of."""
        champion = self._predictor.models.target(machine)
        own: dict[Configuration, Run] = {}
        foreign: dict[Configuration, Run] = {}
        for key in keys:
            run = self._runs(baseline).get(key)
            if champion is not None and run is not None:
                reference = champion.reference_of(run)
                there = self._runs(reference).get(key) if reference != machine else None
                if there is not None:
                    own[key] = there
                    continue
            if run is not None:
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

    def _predicted(self, machine: str, asked: Mapping[Configuration, Run]) -> dict[Configuration, _Told]:
        answers = self._predictor.predict(list(asked.values()), machine) if asked else []
        return {key: _told(answer) for key, answer in zip(asked, answers, strict=True)}

    def _check_shared(self, shared: Sequence[Configuration], answers: Mapping[str, _Answers]) -> None:
        for app in self._portfolio.weights:
            if not any(key[0] == app for key in shared):
                reasons = [found.left_out for found in answers.values() if found.left_out]
                raise UnknownError(f"no configuration of {app} is known on all machines: {reasons[0]}")

    def _application(
        self, machine: str, baseline: str, app: str, shared: Sequence[Configuration], answers: _Answers
    ) -> ComparedApplication:
        portfolio = self._portfolio
        keys = [key for key in shared if key[0] == app]
        told = [answers.by_configuration[key] for key in keys]
        to_time = [1 / portfolio.runs[baseline][key].seconds for key in keys]
        to_node_time = [
            factor * portfolio.nodes(machine, key) / portfolio.nodes(baseline, key)
            for factor, key in zip(to_time, keys, strict=True)
        ]
        weight = portfolio.weights[app]
        return ComparedApplication(
            machine,
            app,
            weight,
            _evidence(told),
            _typical(told, [1.0] * len(told)),
            _typical(told, to_time),
            _typical(told, to_node_time).times(weight * WORK_NODE_HOURS),
        )

    def _machine(
        self, machine: str, by: Measure, measures: _RankedBy, shared: Sequence[Configuration], answers: _Answers
    ) -> ComparedMachine:
        told = [answers.by_configuration[key] for key in shared]
        evidence = _evidence(told)
        return ComparedMachine(
            measures[by][machine].place,
            machine,
            measures["relative_time"][machine],
            measures["node_hours"][machine],
            measures["energy_kwh"][machine] if "energy_kwh" in measures else None,
            measures["price"][machine] if "price" in measures else None,
            evidence,
            machine in self._portfolio.simulated,
            (
                *self._placement_warnings(machine, shared),
                *(self._champion_warnings(machine) if evidence.champion else ()),
                *_warnings(told),
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
        return [f"{len(never)} of {len(shared)} configurations do not fit there"] if never else []


def _measures(applications: Mapping[str, Sequence[ComparedApplication]], costs: Costs) -> _RankedBy:
    """Of the whole portfolio, those that are known."""
    time = {
        machine: total([one.relative_time.times(one.weight_ratio) for one in found])
        for machine, found in applications.items()
    }
    node_hours = {machine: total([one.node_hours for one in found]) for machine, found in applications.items()}
    measures: dict[Measure, Mapping[str, Ranked]] = {"relative_time": ranked(time), "node_hours": ranked(node_hours)}
    kilowatts = {machine: watts / _WATTS_A_KILOWATT for machine, watts in costs.watts.items()}
    of_a_node_hour: dict[Measure, Mapping[str, float]] = {"energy_kwh": kilowatts, "price": costs.prices}
    for name, factors in of_a_node_hour.items():
        if factors:
            measures[name] = ranked({machine: one.times(factors[machine]) for machine, one in node_hours.items()})
    return measures


def _told(answer: Prediction) -> _Told:
    interval = Estimate(answer.predicted_seconds, answer.lower_seconds, answer.upper_seconds)
    return _Told(interval, "prior" if answer.model == SOURCE_MODELS else "champion", answer.warnings)


def _typical(told: Sequence[_Told], factors: Sequence[float]) -> Estimate:
    """Mean of the times, each in its own unit."""
    scaled = [(one.origin, one.seconds.times(factor)) for one, factor in zip(told, factors, strict=True)]
    return typical(
        [one for origin, one in scaled if origin != "measured"], [one for origin, one in scaled if origin == "measured"]
    )


def _evidence(told: Sequence[_Told]) -> Evidence:
    counts = Counter(one.origin for one in told)
    return Evidence(counts["measured"], counts["champion"], counts["prior"])


def _warnings(told: Sequence[_Told]) -> list[str]:
    """Each kind once, in the words of the first, with the number of configurations that have it."""
    kinds: dict[str, list[str]] = {}
    for one in told:
        for warning in one.warnings:
            kinds.setdefault(warning.split(": ")[0], []).append(warning)
    return [
        f"{'for example ' if len(set(found)) > 1 else ''}{found[0]} ({len(found)} of {len(told)} configurations)"
        for found in kinds.values()
    ]
