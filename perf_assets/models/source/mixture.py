"""A new machine's times from those of known ones, with its benchmark: as a mixture of machines, or of kernels.

Runs of an application are looked up where the fleet has run them, the source always among them. A run that only the
source knows changes by the bilinear model: one machine alone says nothing about others.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from pydantic import BaseModel, Field

from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.models.amm.relative import ROWS_PER_BENCHMARK
from perf_assets.models.common.archive import Stored
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.precomputed import RunTerms

_NEARLY_ALL = 0.9
_LEVEL = 3.0
"""The level a is a free shift of all times: it is penalised a ninth as much as the weights, and never strongly."""
_LEVEL_PENALTY = 1e-2
_SHARE_OF_LEVEL = 0.3
"""Weight of a difference between whole machines, beside differences of single rows, in their distance."""
_FALL = 3.0
"""Power of the distance by which the importance of a machine falls. Both were chosen on GPUs and simulated fleet."""
_NOISE = 0.01
"""Distance of two machines that are equal within the noise."""
_RUNS_AT_ONCE = 256
_STEPS, _HALVINGS, _SOLVED = 30, 8, 1e-6


class ElsewhereSettings(BaseModel, frozen=True, extra="forbid"):
    """Candidates for `setting`; of several, the best one for the known machines is taken."""

    tried: tuple[float, ...] = Field(min_length=1)


@dataclass(frozen=True, eq=False)
class TimesElsewhere(Stored, ABC):
    """Predicts from a run's times on the known machines; the target's benchmark is looked at when it is asked for.

    The samples it is used on must have the same counters and benchmark rows.
    """

    DEFAULTS: ClassVar[ElsewhereSettings]

    machines: tuple[str, ...]
    """Training machines."""
    configurations: tuple[str, ...]
    times: Floats
    """Configurations x training machines: log times, NaN where it did not run."""
    bilinear: BilinearModel
    """Predicts runs that only the source knows."""
    setting: float

    @abstractmethod
    def expected(self, samples: PairedSamples, target: int, machines: Indices, known: Floats) -> Floats:
        """Log times on a target of runs whose log times on some training machines (by position) are known."""

    @classmethod
    def fit(
        cls,
        samples: PairedSamples,
        settings: ElsewhereSettings | None = None,
        seed: int = 0,
        bilinear: BilinearModel | None = None,
    ) -> Self:
        """Keep the times that can be seen, and a model for runs that were seen nowhere else, which may be given."""
        tried = (settings or cls.DEFAULTS).tried
        times = samples.log_seconds[samples.training_machines].T
        known = np.isfinite(times).any(axis=1) & ~samples.is_benchmark
        model = cls(
            machines=tuple(samples.machines[m] for m in samples.training_machines),
            configurations=tuple(samples.configurations[row] for row in np.flatnonzero(known)),
            times=times[known],
            bilinear=bilinear or BilinearModel.fit(samples, seed=seed),
            setting=tried[0],
        )
        if len(tried) == 1:
            return model
        models = [replace(model, setting=setting) for setting in tried]
        return min(models, key=lambda one: one._error(samples, times[known]))

    def _error(self, samples: PairedSamples, times: Floats) -> float:
        """Median absolute log error when each known machine is predicted from the others."""
        errors = []
        for position, name in enumerate(self.machines):
            wanted = np.isfinite(times[:, position])
            others = np.isfinite(times) & (np.arange(len(self.machines)) != position)
            for pattern in np.unique(others[wanted & (others.sum(axis=1) > 1)], axis=0):
                chosen = wanted & (others == pattern).all(axis=1)
                machines, target = np.flatnonzero(pattern), samples.machines.index(name)
                expected = self.expected(samples, target, machines, times[np.ix_(chosen, machines)])
                errors.append(np.abs(expected - times[chosen, position]))
        return float(np.median(np.concatenate(errors))) if errors else 0.0

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times of examples."""
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
        """Fill in missing runs of machines that ran nearly everything, by the bilinear model.

        Machines that ran a part only, by their nature or so far, are left out where they did not run.
        """
        for position in self._complete:
            missing = np.isnan(known[:, position])
            if missing.any() and self.machines[position] in samples.machines:
                asked = examples.where(missing)
                machine = samples.machines.index(self.machines[position])
                there = Examples(asked.source, np.full(len(asked), machine, np.intp), asked.row)
                known[missing, position] = source_times[missing] + self.bilinear.predict(samples, there)

    @property
    def _complete(self) -> Indices:
        ran = np.isfinite(self.times).mean(axis=0) if len(self.times) else np.zeros(len(self.machines))
        return np.flatnonzero(ran >= _NEARLY_ALL)

    def _elsewhere(self, configurations: Sequence[str]) -> Floats:
        """Log times of configurations on the training machines; NaN where they did not run."""
        padded = np.vstack([self.times, np.full(len(self.machines), np.nan)])
        return padded[[self._place.get(name, -1) for name in configurations]]

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.configurations)}

    def _known_times(self, samples: PairedSamples, examples: Examples) -> tuple[Floats, Floats]:
        """Log times of each example's run: examples x training machines, NaN where it did not run; on the source."""
        known = self._elsewhere([samples.configurations[row] for row in examples.row])
        source_times = samples.log_seconds[examples.source, examples.row]
        position = {name: index for index, name in enumerate(self.machines)}
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

    DEFAULTS = ElsewhereSettings(tried=(1e-3, 1e-2, 1e-1, 1.0))
    """Penalties."""

    def expected(self, samples: PairedSamples, target: int, machines: Indices, known: Floats) -> Floats:
        """Log times on a target: weighted sums of those on the other machines, and the level."""
        mixture, level = self.weights(samples, target, machines)
        return np.asarray(known @ mixture + level)

    def terms(self, samples: PairedSamples, source: int, target: int, configurations: Sequence[str]) -> RunTerms:
        """Sums from which `predict` follows for runs of configurations, for one pair of machines."""
        known = self._elsewhere(configurations)
        is_source = np.array([name == samples.machines[source] for name in self.machines])
        fillable = [p for p in self._complete if self.machines[p] in samples.machines]
        filled = np.isnan(known) & ~is_source & np.isin(np.arange(len(self.machines)), fillable)
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
        towards = [target, *(samples.machines.index(self.machines[p]) for p in fillable)]
        return RunTerms(constant, slope, along, self.bilinear.toward(samples, source, towards))

    def weights(self, samples: PairedSamples, target: int, machines: Indices) -> tuple[Floats, float]:
        """Weights of some training machines (by position) in the target, and the level a. A machine is itself."""
        names = [self.machines[machine] for machine in machines]
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


class KernelMixture(TimesElsewhere):
    """A run as a sum of parts: on every machine the same amount of each benchmark row.

        t_m(x) = sum_b w_b(x) t_b(m), w_b >= 0

    Rows are relative to their own mean over the machines where the run is known, and the run to its own. There are more
    rows than machines, so weights are held near the even mixture by `setting`. Errors are relative ones, and those on
    machines that are like the target count more.
    """

    DEFAULTS = ElsewhereSettings(tried=(0.03,))
    """One value: from 0.01 to 0.1 GPUs and simulated fleet hardly differ, and a choice on few machines is luck."""

    def expected(self, samples: PairedSamples, target: int, machines: Indices, known: Floats) -> Floats:
        """Log times on a target: of each distinct run once."""
        places = [samples.machines.index(self.machines[machine]) for machine in machines]
        if target in places:
            return known[:, places.index(target)]
        rows = samples.benchmark_rows(ROWS_PER_BENCHMARK)
        even = _each_application_equal(samples, rows)
        benchmark, wanted = samples.log_seconds[places][:, rows], samples.log_seconds[target, rows]
        importance = _importance(benchmark - wanted, even)
        center = importance @ benchmark
        runs, of_run = np.unique(known, axis=0, return_inverse=True)
        times = np.empty(len(runs))
        for start in range(0, len(runs), _RUNS_AT_ONCE):
            some = runs[start : start + _RUNS_AT_ONCE]
            level = some @ importance
            ratios = np.exp((benchmark - center)[None] - (some - level[:, None])[:, :, None])
            parts = _non_negative(ratios, np.sqrt(importance), even, self.setting)
            times[start : start + _RUNS_AT_ONCE] = level + np.log(parts @ np.exp(wanted - center))
        return np.asarray(times[of_run.ravel()])


def _importance(log_ratios: Floats, even: Floats) -> Floats:
    """Share of each machine (machines x benchmark rows), by its distance to the target: as a whole, and row by row."""
    level = log_ratios @ even
    far = (log_ratios - level[:, None]) ** 2 @ even + _SHARE_OF_LEVEL * level**2 + _NOISE**2
    shares = far ** (-_FALL / 2)
    return np.asarray(shares / shares.sum())


def _non_negative(ratios: Floats, importance: Floats, even: Floats, penalty: float) -> Floats:
    """Weights w >= 0 with the smallest importance^2 (ratios w - 1)^2 + penalty (w - even)^2 / even, runs x rows.

    They are w = max(0, even (1 + A^T e / penalty)) with the errors e = importance - A w that they leave. So there are
    as few unknowns as machines; Newton's method finds them, with steps that are halved until they make it better.
    """
    a = importance[:, None] * ratios

    def weights(errors: Floats) -> Floats:
        return np.asarray(np.maximum(0.0, even * (1 + (errors[:, None] @ a)[:, 0] / penalty)))

    def missed(errors: Floats) -> Floats:
        return np.asarray(errors - importance + (a @ weights(errors)[:, :, None])[:, :, 0])

    errors = np.zeros(ratios.shape[:2])
    wrong = missed(errors)
    for _ in range(_STEPS):
        size = np.abs(wrong).max(axis=1)
        if size.max(initial=0.0) < _SOLVED:
            break
        slopes = even / penalty * (weights(errors) > 0)
        matrix = np.eye(a.shape[1]) + (a * slopes[:, None]) @ a.transpose(0, 2, 1)
        step = np.linalg.solve(matrix, -wrong[:, :, None])[:, :, 0]
        for _ in range(_HALVINGS):
            wrong = missed(errors + step)
            is_worse = (np.abs(wrong).max(axis=1) > size) & (size > _SOLVED)
            if not is_worse.any():
                break
            step = np.where(is_worse[:, None], step / 2, step)
        errors = errors + step
        wrong = missed(errors)
    return np.maximum(weights(errors), np.finfo(float).tiny)


def _each_application_equal(samples: PairedSamples, rows: Indices) -> Floats:
    _, of_row, counts = np.unique(samples.apps[rows], return_inverse=True, return_counts=True)
    return np.asarray(1.0 / (len(counts) * counts[of_row]))
