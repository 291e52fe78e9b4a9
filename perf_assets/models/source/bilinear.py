"""Bilinear machine model: what a run is, times how two machines differ, in closed form.

    log relative_time(x, S->T) = mean benchmark log ratio + f(x)^T B v(S, T)

f are radial basis functions of the counters on S (Nystroem features around training runs), v the relative AMM of the
pair. B is found by ridge regression. Because the features are a Kronecker product, the normal equations are sums of
small products over machines, and fitting takes a fraction of a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel

from perf_assets.features.samples import Examples, Floats, PairedSamples, balanced_weights
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.relative import RelativeAmm
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.averaged_gp import squared_distances
from perf_assets.models.source.precomputed import RadialSums, RunTerms


class BilinearSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings of the ridge regression."""

    landmarks: int = 200
    length: float = 0.7
    """Width of a basis function; 1 is the distance of two runs whose counters all differ by one spread."""
    penalty: float = 1e-4
    width: int = 5


@dataclass(frozen=True, eq=False)
class _RunFunctions:
    """Radial basis functions of a run's counters."""

    scaler: Scaler
    landmarks: Floats
    """Training runs x counters, standardised and divided by the root of their number."""
    whiten: Floats
    length: float

    @classmethod
    def fit(
        cls, samples: PairedSamples, settings: BilinearSettings, seed: int, examples: Examples, weights: Floats
    ) -> "_RunFunctions":
        scaler = fit_scaler(samples, with_benchmark=True)
        count = min(settings.landmarks, len(examples))
        chosen = np.random.default_rng(seed).choice(len(examples), count, replace=False, p=weights / weights.sum())
        landmarks = np.unique(_scaled(scaler, samples.counters[examples.source[chosen], examples.row[chosen]]), axis=0)
        values, directions = np.linalg.eigh(_similarity(landmarks, landmarks, settings.length))
        # A small floor keeps directions that rounding has made out of nothing from being blown up.
        return cls(scaler, landmarks, directions / np.sqrt(np.maximum(values, 0) + 1e-6), settings.length)

    def of(self, counters: Floats) -> Floats:
        """Runs x (1 and the functions)."""
        basis = _similarity(_scaled(self.scaler, counters), self.landmarks, self.length) @ self.whiten
        return np.column_stack([np.ones(len(basis)), basis])


@dataclass(frozen=True, eq=False)
class BilinearModel(Stored):
    """Ridge regression on (functions of the run) x (components of the pair).

    The samples it is used on must have the same counters and benchmark rows.
    """

    machine: RelativeAmm
    functions: _RunFunctions
    effect: Floats
    """(1 and the functions) x components."""

    @classmethod
    def fit(cls, samples: PairedSamples, settings: BilinearSettings | None = None, seed: int = 0) -> "BilinearModel":
        """Learn from all visible runs, those of the benchmark among them; every application counts the same."""
        settings = settings or BilinearSettings()
        machine = RelativeAmm.fit(samples, settings.width)
        examples = samples.examples(with_benchmark=samples.learns_from_benchmark)
        weights = balanced_weights(samples, examples)
        of_runs = _RunFunctions.fit(samples, settings, seed, examples, weights)
        residual = samples.log_relative_time(examples) - machine.anchor_of(samples, examples)
        vectors = machine.vectors(samples) / machine.scale
        functions = {s: of_runs.of(samples.counters[s]) for s in samples.training_machines}
        count, width = len(of_runs.landmarks) + 1, machine.width
        gram: Floats = np.zeros((count * width, count * width))
        moment: Floats = np.zeros((count, width))
        for source in samples.training_machines:
            for target in samples.training_machines:
                chosen = (examples.source == source) & (examples.target == target)
                if not chosen.any():
                    continue
                f, w, v = functions[source][examples.row[chosen]], weights[chosen], vectors[source, target]
                gram += np.asarray(np.kron((f * w[:, None]).T @ f, np.outer(v, v)), np.float64)
                moment += np.outer(f.T @ (w * residual[chosen]), v)
        gram /= len(examples)
        gram += settings.penalty * np.eye(len(gram))
        effect = np.asarray(np.linalg.solve(gram, moment.ravel() / len(examples))).reshape(count, width)
        return cls(machine, of_runs, effect)

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times of examples."""
        effects = np.full((*samples.log_seconds.shape, self.machine.width), np.nan)
        for source in np.unique(examples.source):
            rows = np.unique(examples.row[examples.source == source])
            effects[source, rows] = self.functions.of(samples.counters[source, rows]) @ self.effect
        pairs = self._vectors(samples)[examples.source, examples.target]
        log_ratios: Floats = np.sum(effects[examples.source, examples.row] * pairs, axis=1)
        return log_ratios + self.machine.anchor_of(samples, examples)

    def toward(self, samples: PairedSamples, source: int, targets: Sequence[int]) -> RadialSums:
        """The log relative times from one source to some targets, made ready for many runs."""
        pairs, functions = self._vectors(samples)[source, targets].T, self.functions
        constants = self.effect[0] @ pairs + self.machine.anchor(samples)[source, targets]
        weights = functions.whiten @ (self.effect[1:] @ pairs)
        return RadialSums(functions.scaler, functions.landmarks, (functions.length,), weights[None], constants)

    def terms(self, samples: PairedSamples, source: int, target: int, configurations: Sequence[str]) -> RunTerms:
        """Sums from which `predict` follows for one pair of machines; the configuration does not matter."""
        none, one = np.zeros(len(configurations)), np.ones((len(configurations), 1))
        return RunTerms(none, none, one, self.toward(samples, source, [target]))

    def _vectors(self, samples: PairedSamples) -> Floats:
        return self.machine.vectors(samples) / self.machine.scale


def _scaled(scaler: Scaler, counters: Floats) -> Floats:
    scaled = scaler.transform(counters)
    return np.asarray(scaled / np.sqrt(scaled.shape[-1]))


def _similarity(runs: Floats, landmarks: Floats, length: float) -> Floats:
    return np.asarray(np.exp(-squared_distances(runs, landmarks) / (2 * length**2)))
