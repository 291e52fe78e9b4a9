"""Machines beside each other for a portfolio of applications, and how far they can be put into an order."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["relative_time", "node_hours", "energy_kwh", "price"]
MEASURES: dict[Measure, str] = {
    "relative_time": "time",
    "node_hours": "node-hours",
    "energy_kwh": "energy",
    "price": "price",
}
"""Measures by which machines are compared, in words; less is better."""
WORK_NODE_HOURS = 100.0
"""Node-hours on the baseline of the work that costs are given for."""


@dataclass(frozen=True)
class Estimate:
    """A figure above 0 with its 90% interval."""

    value: float
    lower: float
    upper: float

    def times(self, factor: float) -> "Estimate":
        """Scale all values, into another unit."""
        return Estimate(factor * self.value, factor * self.lower, factor * self.upper)

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.lower:.3g} to {self.upper:.3g})"


@dataclass(frozen=True)
class Ranked(Estimate):
    """An estimate of a machine among those of others; where intervals overlap, there is no order."""

    best_place: int
    """1 + machines whose whole interval lies below this one's."""
    worst_place: int
    """Machines less those whose whole interval lies above this one's."""
    not_told_from: tuple[str, ...]
    """Machines whose intervals overlap this one's."""

    @property
    def place(self) -> str:
        """Place as people read it."""
        return (
            str(self.best_place) if self.best_place == self.worst_place else f"{self.best_place} to {self.worst_place}"
        )


@dataclass(frozen=True)
class Evidence:
    """Evidence behind the figures of a machine, in configurations."""

    measured: int
    """They ran on the machine itself."""
    champion: int
    """Predicted by the machine's target model."""
    prior: int
    """Predicted by the source models, which know the machine's benchmark at best: wide intervals."""

    @property
    def is_mostly_prior(self) -> bool:
        """Whether the prior contributes more than all other evidence."""
        return self.prior > self.measured + self.champion

    def __str__(self) -> str:
        counts = {"measured": self.measured, "champion": self.champion, "prior": self.prior}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


@dataclass(frozen=True)
class ComparedApplication:
    """An application on a machine; means over configurations are geometric."""

    machine: str
    app: str
    weight_ratio: float
    """Its share of the portfolio."""
    configurations: Evidence
    seconds: Estimate
    """Mean over its configurations."""
    relative_time: Estimate
    """Time on the machine / time on the baseline, mean over its configurations: above 1 is slower."""
    node_hours: Estimate
    """Its part of those of the machine."""


@dataclass(frozen=True)
class ComparedMachine:
    """A machine for the whole portfolio."""

    place: str
    """Place by the measure that the comparison ranks by; more than one where intervals overlap."""
    machine: str
    relative_time: Ranked
    """Mean of those of the applications by their weights: above 1 is slower than the baseline."""
    node_hours: Ranked
    """Node-hours for the work that takes `WORK_NODE_HOURS` on the baseline."""
    energy_kwh: Ranked | None
    """Energy for the work, where power was given."""
    price: Ranked | None
    """Price of the work, where prices were given, in their currency."""
    configurations: Evidence
    is_simulated: bool
    """Whether its data are simulated."""
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """All machines, the least value first, and what was left out."""

    baseline: str
    """Machine that the portfolio runs on today: times are relative to those measured there."""
    ranked_by: Measure
    machines: tuple[ComparedMachine, ...]
    applications: tuple[ComparedApplication, ...]
    """Applications on every machine, in the order of machines."""
    notes: tuple[str, ...]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures that are known."""
        return tuple(name for name in MEASURES if self.of(name))

    @property
    def weights(self) -> dict[str, float]:
        """Share of each application."""
        return {one.app: one.weight_ratio for one in self.applications}

    def of(self, measure: Measure) -> dict[str, Ranked]:
        """A measure by machine; empty where it is not known."""
        values = {one.machine: getattr(one, measure) for one in self.machines}
        return {machine: ranked for machine, ranked in values.items() if ranked is not None}

    def findings(self) -> list[str]:
        """Sentences about machines that differ beyond their intervals, by measure; the measure of the ranking first."""
        order = sorted(self.measures, key=lambda name: name != self.ranked_by)
        return [_finding(MEASURES[name], self.of(name)) for name in order] if len(self.machines) > 1 else []

    def to_dict(self) -> dict[str, Any]:
        """The whole comparison as a dictionary, for JSON."""
        return {**asdict(self), "findings": self.findings()}

    def to_frame(self) -> "pd.DataFrame":
        """A row for each machine, then one for each machine and application; what does not apply is missing."""
        import pandas as pd

        rows: list[dict[str, Any]] = [{**asdict(one), "app": ""} for one in self.machines]
        rows += [asdict(one) for one in self.applications]
        frame = pd.json_normalize(rows, sep="_").dropna(axis="columns", how="all")
        for column in frame.columns[frame.columns.str.endswith(("not_told_from", "warnings"))]:
            frame[column] = frame[column].map(lambda texts: "; ".join(texts) if isinstance(texts, tuple) else "")
        first = ["machine", "app", "weight_ratio"]
        return frame[[*first, *frame.columns.difference(first, sort=False)]]


def typical(predicted: Sequence[Estimate], measured: Sequence[Estimate] = ()) -> Estimate:
    """Geometric mean. Errors of predictions go together, those of measured runs are independent.

    Errors of one model go together to an unknown part: it is cautious that the interval does not shrink with the
    number of predictions.
    """
    count = len(predicted) + len(measured)
    middle = math.fsum(math.log(one.value) for one in (*predicted, *measured)) / count
    below, above = (
        math.hypot(math.fsum(map(side, predicted)), *map(side, measured)) / count for side in (_log_below, _log_above)
    )
    return Estimate(*(math.exp(end) for end in (middle, middle - below, middle + above)))


def _log_below(one: Estimate) -> float:
    return math.log(one.value / one.lower)


def _log_above(one: Estimate) -> float:
    return math.log(one.upper / one.value)


def total(estimates: Sequence[Estimate]) -> Estimate:
    """Sum, as if all errors went together."""
    ends = zip(*((one.value, one.lower, one.upper) for one in estimates), strict=True)
    return Estimate(*(math.fsum(values) for values in ends))


def ranked(estimates: Mapping[str, Estimate]) -> dict[str, Ranked]:
    """Places of machines, the least first: all that are possible while each value lies anywhere in its interval."""
    return {
        machine: Ranked(
            own.value,
            own.lower,
            own.upper,
            1 + sum(other.upper < own.lower for other in estimates.values()),
            len(estimates) - sum(other.lower > own.upper for other in estimates.values()),
            tuple(name for name, other in estimates.items() if name != machine and _overlap(own, other)),
        )
        for machine, own in estimates.items()
    }


def _overlap(one: Estimate, other: Estimate) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper


def _finding(measure: str, by_machine: Mapping[str, Ranked]) -> str:
    """The machine that is first, and groups whose order is open."""
    first = sorted(
        (name for name, one in by_machine.items() if one.best_place == 1), key=lambda name: by_machine[name].value
    )
    if len(first) == len(by_machine):
        return f"By {measure} no order can be given: the intervals of {_and(first)} overlap."
    start = (
        f"{first[0]} needs least: its whole interval lies below all others"
        if len(first) == 1
        else f"no machine is surely better than {_and(first, 'or')}"
    )
    groups = "; ".join(_and(names) for names in _not_told_apart(by_machine))
    return f"By {measure} {start}{f'. Cannot be told apart: {groups}' if groups else ''}."


def _not_told_apart(by_machine: Mapping[str, Ranked]) -> list[list[str]]:
    """Largest groups in which all intervals overlap: such a group has a point in common, a lower end of one of them."""
    groups = [
        [name for name, other in sorted(by_machine.items(), key=lambda item: item[1].value) if _holds(other, one.lower)]
        for one in sorted(by_machine.values(), key=lambda one: one.lower)
    ]
    largest = [group for group in groups if len(group) > 1 and not any(set(group) < set(other) for other in groups)]
    return [group for position, group in enumerate(largest) if group not in largest[:position]]


def _holds(one: Estimate, point: float) -> bool:
    return one.lower <= point <= one.upper


def _and(names: Sequence[str], word: str = "and") -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else names[0]
