"""A new machine's times from those of known ones, by what its benchmark says about their likeness.

Runs of an application are looked up where the fleet has run them, the source always among them. A run that only the
source knows changes by the bilinear model: one machine alone says nothing about others.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.models.common import archive
from perf_assets.models.common.averaged_gp import squared_distances
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.precomputed import RunTerms

_NEARLY_ALL = 0.9
_LEVEL = 3.0
"""The level a is a free shift of all times: it is penalised a ninth as much as the weights, and never strongly."""
_LEVEL_PENALTY = 1e-2


class TimesElsewhere(ABC):
    """Predicts from a run's times on the known machines; the target's benchmark is looked at when it is asked for."""

    FILE: ClassVar[str]
    SETTINGS: ClassVar[tuple[float, ...]]
    """Values of `setting`; the one is taken that would have been best for the machines that are known."""

    def __init__(self, seed: int = 0, settings: Sequence[float] | None = None) -> None:
        self._seed = seed
        self._settings = tuple(settings or self.SETTINGS)
        self._machines: tuple[str, ...] = ()
        self._times: dict[str, Floats] = {}
        self.bilinear: BilinearModel
        """Predicts runs that only the source knows."""
        self.setting = self._settings[0]

    @abstractmethod
    def expected(self, samples: PairedSamples, target: int, machines: Indices, known: Floats) -> Floats:
        """Log times on a target of runs whose log times on some training machines (by position) are known."""

    def fit(self, samples: PairedSamples, bilinear: BilinearModel | None = None) -> Self:
        """Keep the times that can be seen, and a model for runs that were seen nowhere else, which may be given."""
        self._machines = tuple(samples.machines[m] for m in samples.training_machines)
        times = samples.log_seconds[samples.training_machines].T
        known = np.isfinite(times).any(axis=1) & ~samples.is_benchmark
        self._times = {samples.configurations[row]: times[row] for row in np.flatnonzero(known)}
        self.bilinear = bilinear or BilinearModel(seed=self._seed).fit(samples)
        self.setting = min(self._settings, key=lambda setting: self._error(samples, times[known], setting))
        return self

    def _error(self, samples: PairedSamples, times: Floats, setting: float) -> float:
        """Median absolute log error when each known machine is predicted from the others."""
        self.setting = setting
        errors = []
        for position, name in enumerate(self._machines):
            wanted = np.isfinite(times[:, position])
            others = np.isfinite(times) & (np.arange(len(self._machines)) != position)
            for pattern in np.unique(others[wanted & (others.sum(axis=1) > 1)], axis=0):
                chosen = wanted & (others == pattern).all(axis=1)
                machines, target = np.flatnonzero(pattern), samples.machines.index(name)
                expected = self.expected(samples, target, machines, times[np.ix_(chosen, machines)])
                errors.append(np.abs(expected - times[chosen, position]))
        return float(np.median(np.concatenate(errors))) if errors else 0.0

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        predicted = self.bilinear.predict(samples, examples)
        known, source_times = self._known_times(samples, examples)
        self._fill_gaps(samples, examples, known, source_times)
        has_run = np.isfinite(known)
        questions = np.column_stack([examples.target, has_run])
        for question in np.unique(questions[has_run.sum(axis=1) > 1], axis=0):
            chosen = (questions == question).all(axis=1)
            machines = np.flatnonzero(question[1:])
            times = self.expected(samples, int(question[0]), machines, known[np.ix_(chosen, machines)])
            predicted[chosen] = times - source_times[chosen]
        return predicted

    def _fill_gaps(self, samples: PairedSamples, examples: Examples, known: Floats, source_times: Floats) -> None:
        """Where a machine that ran nearly everything lacks a run, the bilinear model says what it would have taken.

        Machines that ran a part only, by their nature or so far, are left out where they did not run.
        """
        for position in self._complete:
            missing = np.isnan(known[:, position])
            if missing.any() and self._machines[position] in samples.machines:
                asked = examples.where(missing)
                machine = samples.machines.index(self._machines[position])
                there = Examples(asked.source, np.full(len(asked), machine, np.intp), asked.row)
                known[missing, position] = source_times[missing] + self.bilinear.predict(samples, there)

    @property
    def _complete(self) -> Indices:
        ran = np.isfinite(list(self._times.values())).mean(axis=0) if self._times else np.zeros(len(self._machines))
        return np.flatnonzero(ran >= _NEARLY_ALL)

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        self.bilinear.save(folder)
        description = {"seed": self._seed, "machines": self._machines, "configurations": list(self._times)}
        times = np.array(list(self._times.values())).reshape(len(self._times), len(self._machines))
        archive.save(folder / self.FILE, description, {"times": times, "penalty": np.array(self.setting)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote. The samples it is used on must have the same counters and benchmark rows."""
        description, arrays = archive.load(folder / cls.FILE)
        model = cls(description["seed"])
        model._machines = tuple(description["machines"])
        model._times = dict(zip(description["configurations"], arrays["times"], strict=True))
        model.setting = float(arrays["penalty"])
        model.bilinear = BilinearModel.load(folder)
        return model

    def _known_times(self, samples: PairedSamples, examples: Examples) -> tuple[Floats, Floats]:
        """Log times of each example's run: examples x training machines, NaN where it did not run; on the source."""
        nowhere = np.full(len(self._machines), np.nan)
        known = np.stack([self._times.get(samples.configurations[row], nowhere) for row in examples.row])
        source_times = samples.log_seconds[examples.source, examples.row]
        position = {name: index for index, name in enumerate(self._machines)}
        of_source = np.array([position.get(samples.machines[source], -1) for source in examples.source])
        here = np.flatnonzero(of_source >= 0)
        # The run that is asked about is measured on its source, whether or not it was there in training.
        known[here, of_source[here]] = source_times[here]
        return known, source_times


class MachineMixture(TimesElsewhere):
    """The new machine as a mixture of known ones.

    log t_T(b) = a + sum_m w_m log t_m(b)        fitted on benchmark rows b, ridge regression
    log t_T(x) = a + sum_m w_m log t_m(x)        for a run x of an application
    """

    FILE = "mixture.npz"
    SETTINGS = (1e-3, 1e-2, 1e-1, 1.0)

    def expected(self, samples: PairedSamples, target: int, machines: Indices, known: Floats) -> Floats:
        """Log times on a target: weighted sums of those on the other machines, and the level."""
        mixture, level = self.weights(samples, target, machines)
        return np.asarray(known @ mixture + level)

    def terms(self, samples: PairedSamples, source: int, target: int, configurations: Sequence[str]) -> RunTerms:
        """What `predict` says of runs of configurations, for one pair of machines."""
        nowhere = np.full(len(self._machines), np.nan)
        known = np.stack([self._times.get(name, nowhere) for name in configurations])
        is_source = np.array([name == samples.machines[source] for name in self._machines])
        fillable = [p for p in self._complete if self._machines[p] in samples.machines]
        filled = np.isnan(known) & ~is_source & np.isin(np.arange(len(self._machines)), fillable)
        has_run = np.isfinite(known) | is_source | filled
        is_mixed = has_run.sum(axis=1) > 1
        weights, constant = np.zeros(known.shape), np.zeros(len(known))
        for pattern in np.unique(has_run[is_mixed], axis=0):
            chosen, machines = is_mixed & (has_run == pattern).all(axis=1), np.flatnonzero(pattern)
            mixture, level = self.weights(samples, target, machines)
            weights[np.ix_(chosen, machines)] = mixture
            constant[chosen] = level
        moves = filled | is_source
        constant += (weights * np.where(moves | np.isnan(known), 0.0, known)).sum(axis=1)
        slope = np.where(is_mixed, (weights * moves).sum(axis=1) - 1, 0.0)
        along = np.column_stack([~is_mixed, (weights * filled)[:, fillable]])
        towards = [target, *(samples.machines.index(self._machines[p]) for p in fillable)]
        return RunTerms(constant, slope, along, self.bilinear.toward(samples, source, towards))

    def weights(self, samples: PairedSamples, target: int, machines: Indices) -> tuple[Floats, float]:
        """Weights of some training machines (by position) in the target, and the level a. A machine is itself."""
        names = [self._machines[machine] for machine in machines]
        if samples.machines[target] in names:
            return np.array([name == samples.machines[target] for name in names], float), 0.0
        rows = samples.benchmark_rows()
        known = samples.log_seconds[[samples.machines.index(name) for name in names]][:, rows].T
        wanted = samples.log_seconds[target, rows]
        mean = known.mean(axis=1)
        inputs = np.column_stack([known - mean[:, None], np.full(len(rows), _LEVEL)])
        importance = _each_application_equal(samples, rows)
        penalties = np.append(np.full(len(names), self.setting), min(self.setting, _LEVEL_PENALTY))
        gram = (inputs * importance[:, None]).T @ inputs + np.diag(penalties)
        coefficients = np.linalg.solve(gram, inputs.T @ (importance * (wanted - mean)))
        # Weights act on deviations from the mean machine, so what they lack to 1 is spread over all.
        mixture = coefficients[:-1] + (1 - coefficients[:-1].sum()) / len(names)
        return np.asarray(mixture), float(_LEVEL * coefficients[-1])


class KernelLikeness(TimesElsewhere):
    """A run departs from the mean of the known machines as those benchmark rows do that are like it on all of them.

        log t_T(x) = mean_m log t_m(x) + sum_b w_b(x) (log t_T(b) - mean_m log t_m(b))

    w falls with the distance of the profiles, which are log times on the known machines less their mean.
    """

    FILE = "likeness.npz"
    SETTINGS = (0.2, 0.4, 0.7, 1.0)

    def expected(self, samples: PairedSamples, target: int, machines: Indices, known: Floats) -> Floats:
        """Log times on a target, with `setting` as the distance at which likeness falls off."""
        places = [samples.machines.index(self._machines[machine]) for machine in machines]
        if target in places:
            return known[:, places.index(target)]
        rows = samples.benchmark_rows()
        benchmark = samples.log_seconds[places][:, rows].T
        level, of_run = benchmark.mean(axis=1), known.mean(axis=1)
        far = squared_distances(known - of_run[:, None], benchmark - level[:, None]) / len(places)
        nearest = far.min(axis=1, keepdims=True)
        weights = _each_application_equal(samples, rows) * np.exp((nearest - far) / (2 * self.setting**2))
        departures = samples.log_seconds[target, rows] - level
        return np.asarray(of_run + weights @ departures / weights.sum(axis=1))


def _each_application_equal(samples: PairedSamples, rows: Indices) -> Floats:
    _, of_row, counts = np.unique(samples.apps[rows], return_inverse=True, return_counts=True)
    return np.asarray(1.0 / (len(counts) * counts[of_row]))
