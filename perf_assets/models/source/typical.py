"""Typical times: a run's level over all machines where it ran, and how fast each machine typically is.

    log time(run, machine) = level of the run + effect of the machine

Effects are means over applications, each of which counts the same, shrunk towards no effect by how much applications
differ; what one application alone shows of a machine may be its own, and is not taken for the machine's. A machine
that is known by its benchmark alone has the effect that its mean benchmark time gives it beside those of the known
machines; one of which nothing is known is as the average machine. The level of a run is a mean over all machines where
it was seen, not of its source alone: one run is a noisy sign of how long it takes elsewhere.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Examples, Floats, Mask, PairedSamples
from perf_assets.models.common.archive import Stored

_MOST_ROUNDS = 100
_CONVERGED = 1e-6


@dataclass(frozen=True, eq=False)
class TypicalTimes(Stored):
    """Additive model of runs and machines."""

    machines: tuple[str, ...]
    effects: Floats
    """Machines: log time beside that of the average known machine; NaN where no application run was seen."""
    configurations: tuple[str, ...]
    times: Floats
    """Machines x configurations: log times that can be seen."""

    @classmethod
    def fit(cls, samples: PairedSamples, settings: None = None, seed: int = 0) -> "TypicalTimes":
        """Fit to all application runs that can be seen."""
        seen = np.isfinite(samples.log_seconds).any(axis=0) & ~samples.is_benchmark
        names = tuple(np.array(samples.configurations)[seen].tolist())
        times = samples.log_seconds[:, seen]
        return cls(samples.machines, _effects(times, samples.apps[seen]), names, times)

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times of examples."""
        effects = self._effects_of(samples)
        here = [self.machines.index(name) if name in self.machines else -1 for name in samples.machines]
        known = np.vstack([self.times, np.full((1, self.times.shape[1]), np.nan)])[here]
        place = np.array([self._place.get(name, -1) for name in samples.configurations])
        padded = np.hstack([known, np.full((len(known), 1), np.nan)])
        times = padded[:, place[examples.row]]
        every = np.arange(len(examples))
        own = samples.log_seconds[examples.source, examples.row]
        times[examples.target, every] = np.nan
        times[examples.source, every] = own
        levels = np.nanmean(times - effects[:, None], axis=0)
        return np.asarray(levels + effects[examples.target] - own)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.configurations)}

    def _effects_of(self, samples: PairedSamples) -> Floats:
        """Effects of the machines of samples, known ones or new ones."""
        learned = dict(zip(self.machines, self.effects, strict=True))
        effects = np.array([learned.get(name, np.nan) for name in samples.machines])
        is_known, rows = np.isfinite(effects), samples.benchmark_rows()
        if is_known.any() and len(rows):
            benchmark = samples.log_seconds[:, rows].mean(axis=1)
            effects = np.where(is_known, effects, benchmark - benchmark[is_known].mean())
        return np.asarray(np.nan_to_num(effects))


def _effects(times: Floats, apps: NDArray[np.str_]) -> Floats:
    """Effects of machines from log times (machines x runs); NaN where too few applications ran there and elsewhere."""
    shared = np.isfinite(times).sum(axis=0) > 1
    times, apps = times[:, shared], apps[shared]
    seen = np.isfinite(times)
    counts = np.array([len(np.unique(apps[own])) for own in seen])
    is_known = counts >= max(1, min(2, counts.max(initial=0)))
    effects, by_app = np.zeros(len(times)), np.zeros((0, len(times)))
    for _ in range(_MOST_ROUNDS if shared.any() else 0):
        levels = np.where(seen, times - effects[:, None], 0.0).sum(axis=0) / seen.sum(axis=0)
        by_app = np.stack([_means(times[:, apps == app] - levels[apps == app]) for app in np.unique(apps)])
        before, effects = effects, np.nan_to_num(_means(by_app.T))
        effects -= effects[is_known].mean()
        if np.abs(effects - before).max() < _CONVERGED:
            break
    return np.where(is_known, effects * _trust(effects, by_app, is_known), np.nan)


def _trust(effects: Floats, by_app: Floats, is_known: Mask) -> Floats:
    """Share of each effect that stays: the variance of effects over that plus the error of this one's mean."""
    count = np.isfinite(by_app).sum(axis=0)
    squares = np.nansum((by_app - effects) ** 2, axis=0)
    errors = np.where(count > 1, squares / np.maximum(count * (count - 1), 1), 0.0)
    variance = max(0.0, float(np.mean((effects**2 - errors)[is_known]))) if is_known.any() else 0.0
    return np.asarray(variance / np.maximum(variance + errors, np.finfo(float).tiny))


def _means(values: Floats) -> Floats:
    """Means of rows over what is known; NaN where nothing is."""
    count = np.isfinite(values).sum(axis=1)
    return np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)
