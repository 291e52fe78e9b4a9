"""Bilinear machine model: what a run is, times how two machines differ, in closed form.

    log relative_time(x, S->T) = mean benchmark log ratio + f(x)^T B v(S, T)

f are radial basis functions of the counters on S (Nystroem features around training runs), v the relative AMM of the
pair. B is found by ridge regression. Because the features are a Kronecker product, the normal equations are sums of
small products over machines, and fitting takes a fraction of a second.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from perf_assets.features.samples import Examples, Floats, PairedSamples, balanced_weights
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.relative import RelativeAmm
from perf_assets.models.common import archive
from perf_assets.models.common.averaged_gp import squared_distances
from perf_assets.models.source.precomputed import RadialSums, RunTerms

_FILE = "bilinear.npz"


@dataclass(frozen=True)
class BilinearSettings:
    """Settings of the ridge regression."""

    landmarks: int = 200
    length: float = 0.7
    """Width of a basis function; 1 is the distance of two runs whose counters all differ by one spread."""
    penalty: float = 1e-4
    width: int = 5


class BilinearModel:
    """Ridge regression on (functions of the run) x (components of the pair)."""

    def __init__(self, settings: BilinearSettings | None = None, seed: int = 0) -> None:
        self.settings = settings or BilinearSettings()
        self.seed = seed
        self._scaler: Scaler
        self._machine: RelativeAmm
        self._landmarks: Floats
        self._whiten: Floats
        self._effect: Floats

    def fit(self, samples: PairedSamples) -> "BilinearModel":
        """Learn from all visible runs, those of the benchmark among them; every application counts the same."""
        self._machine = RelativeAmm.fit(samples, self.settings.width)
        self._scaler = fit_scaler(samples, with_benchmark=True)
        examples = samples.examples(with_benchmark=samples.learns_from_benchmark)
        weights = balanced_weights(samples, examples)
        self._choose_landmarks(samples, examples, weights)
        anchor = self._machine.anchor(samples)[examples.source, examples.target]
        residual = samples.log_relative_time(examples) - anchor
        vectors = self._vectors(samples)
        functions = {s: self._functions(samples.counters[s]) for s in samples.training_machines}
        count, width = len(self._landmarks) + 1, self._machine.width
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
        gram += self.settings.penalty * np.eye(len(gram))
        self._effect = np.asarray(np.linalg.solve(gram, moment.ravel() / len(examples))).reshape(count, width)
        return self

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        effects = np.full((*samples.log_seconds.shape, self._machine.width), np.nan)
        for source in np.unique(examples.source):
            rows = np.unique(examples.row[examples.source == source])
            effects[source, rows] = self._functions(samples.counters[source, rows]) @ self._effect
        pairs = self._vectors(samples)[examples.source, examples.target]
        log_ratios: Floats = np.sum(effects[examples.source, examples.row] * pairs, axis=1)
        return log_ratios + np.asarray(self._machine.anchor(samples)[examples.source, examples.target])

    def toward(self, samples: PairedSamples, source: int, targets: Sequence[int]) -> RadialSums:
        """The log relative times from one source to some targets, made ready for many runs."""
        pairs = self._vectors(samples)[source, targets].T
        constants = self._effect[0] @ pairs + self._machine.anchor(samples)[source, targets]
        weights = self._whiten @ (self._effect[1:] @ pairs)
        return RadialSums(self._scaler, self._landmarks, (self.settings.length,), weights[None], constants)

    def terms(self, samples: PairedSamples, source: int, target: int, configurations: Sequence[str]) -> RunTerms:
        """What `predict` says of runs for one pair of machines; the configuration does not matter."""
        none, one = np.zeros(len(configurations)), np.ones((len(configurations), 1))
        return RunTerms(none, none, one, self.toward(samples, source, [target]))

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        folder.mkdir(parents=True, exist_ok=True)
        own = {"landmarks": self._landmarks, "whiten": self._whiten, "effect": self._effect}
        description = {"settings": asdict(self.settings), "seed": self.seed}
        archive.save(folder / _FILE, description, {**own, **self._scaler.arrays(), **self._machine.arrays()})

    @classmethod
    def load(cls, folder: Path) -> "BilinearModel":
        """Read what `save` wrote. The samples it is used on must have the same counters and benchmark rows."""
        description, arrays = archive.load(folder / _FILE)
        model = cls(BilinearSettings(**description["settings"]), description["seed"])
        model._landmarks, model._whiten, model._effect = arrays["landmarks"], arrays["whiten"], arrays["effect"]
        model._scaler, model._machine = Scaler.from_arrays(arrays), RelativeAmm.from_arrays(arrays)
        return model

    def _vectors(self, samples: PairedSamples) -> Floats:
        return self._machine.vectors(samples) / self._machine.scale

    def _choose_landmarks(self, samples: PairedSamples, examples: Examples, weights: Floats) -> None:
        count = min(self.settings.landmarks, len(examples))
        chosen = np.random.default_rng(self.seed).choice(len(examples), count, replace=False, p=weights / weights.sum())
        runs = samples.counters[examples.source[chosen], examples.row[chosen]]
        self._landmarks = np.unique(self._scaled(runs), axis=0)
        values, directions = np.linalg.eigh(self._similarity(self._landmarks))
        # A small floor keeps directions that rounding has made out of nothing from being blown up.
        self._whiten = directions / np.sqrt(np.maximum(values, 0) + 1e-6)

    def _scaled(self, counters: Floats) -> Floats:
        scaled = self._scaler.transform(counters)
        return np.asarray(scaled / np.sqrt(scaled.shape[-1]))

    def _functions(self, counters: Floats) -> Floats:
        basis = self._similarity(self._scaled(counters)) @ self._whiten
        return np.column_stack([np.ones(len(basis)), basis])

    def _similarity(self, runs: Floats) -> Floats:
        return np.asarray(np.exp(-squared_distances(runs, self._landmarks) / (2 * self.settings.length**2)))
