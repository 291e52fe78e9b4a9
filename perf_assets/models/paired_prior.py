"""What is expected of runs on a machine of which only the benchmark is known: the prior that shots then correct.

A blend of attention over benchmark rows, trees anchored on the benchmark, the bilinear model and the mixture of known
machines. Its weights, and how far it is off, come from machines that are held out inside the training data: of the
target nothing but its benchmark is seen. The mixture takes what a configuration took on other known machines where it
ran there; where it ran on the source only, it is the bilinear model.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Examples, Floats, PairedSamples
from perf_assets.models import archive
from perf_assets.models.additive_gp import Spreads
from perf_assets.models.anchored import AnchoredTrees
from perf_assets.models.attention import BenchmarkAttention
from perf_assets.models.bilinear import BilinearModel
from perf_assets.models.blend import HeldOut, choose_weights, held_out_predictions
from perf_assets.models.machine_mixture import MachineMixture

_FILE = "prior.npz"
_LOADERS: dict[str, Callable[[Path], "_Component"]] = {
    "anchored": AnchoredTrees.load,
    "attention": BenchmarkAttention.load,
    "bilinear": BilinearModel.load,
    "mixture": MachineMixture.load,
}
COMPONENTS = tuple(_LOADERS)
_UNMEASURED = Spreads(offset=0.2, run=0.2)
"""Where too few machines are known to hold one out."""
_LEAST_SPREAD = 0.02


class _Component(Protocol):
    def predict(self, samples: PairedSamples, examples: Examples) -> Floats: ...

    def save(self, folder: Path) -> None: ...


@dataclass(frozen=True)
class Prior:
    """A fitted prior; its error on machines that were held out goes with it."""

    components: dict[str, _Component]
    weights: dict[str, float]
    """Share of each component, above 0, with sum 1."""
    spreads: Spreads
    """Standard deviations of log(true / predicted) over held-out machines."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times. Looks at times on the source and on known machines, never at those on the target."""
        found = [weight * self.components[name].predict(samples, examples) for name, weight in self.weights.items()]
        return np.asarray(np.sum(found, axis=0))

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        for name, component in self.components.items():
            component.save(folder / name)
        archive.save(folder / _FILE, {"weights": self.weights, "spreads": asdict(self.spreads)}, {})

    @classmethod
    def load(cls, folder: Path) -> "Prior":
        """A saved one. The samples it is used on must have the same counters and benchmark rows."""
        description, _ = archive.load(folder / _FILE)
        weights = description["weights"]
        components = {name: _LOADERS[name](folder / name) for name in weights}
        return cls(components, weights, Spreads(**description["spreads"]))


class PriorParts:
    """Fits the components of priors, each once: priors of several targets hold out the same pairs of machines."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._fitted: dict[tuple[str, str], _Component] = {}

    def fit(self, name: str, samples: PairedSamples) -> _Component:
        """A component, fitted on what can be seen."""
        key = (name, samples.digest)
        if key not in self._fitted:
            self._fitted[key] = self._fit(name, samples)
        return self._fitted[key]

    def _fit(self, name: str, samples: PairedSamples) -> _Component:
        if name == "anchored":
            return AnchoredTrees(self._seed).fit(samples)
        if name == "attention":
            return BenchmarkAttention(seed=self._seed).fit(samples)
        if name == "bilinear":
            return BilinearModel(seed=self._seed).fit(samples)
        return MachineMixture(self._seed).fit(samples)


def attention_prior(
    samples: PairedSamples,
    target: int,
    seed: int,
    parts: PriorParts | None = None,
    names: Sequence[str] = COMPONENTS,
) -> Prior:
    """The prior for a target machine, fitted with the target's application runs hidden, of the named components.

    Give the same `parts` (of the same seed) for several targets of one fleet to fit shared components once.
    """
    hidden = samples.hide_machine(target)
    if not samples.is_benchmark.any():
        raise BadInputError("a prior for a new machine needs benchmark rows: name the benchmark applications")
    if not len(hidden.examples()):
        raise BadInputError(
            "a prior for a new machine needs two other machines on which the same application configurations ran"
        )
    parts = parts or PriorParts(seed)
    held_out = [
        # Of the blend's caution nothing is wanted: the correction by shots estimates the offset itself.
        replace(fold, distance=np.zeros_like(fold.distance))
        for fold in held_out_predictions(hidden, "machine", names, parts.fit)
    ]
    shares, _ = choose_weights(held_out, len(names))
    weights = {name: float(share) for name, share in zip(names, shares, strict=True) if share > 0}
    return Prior({name: parts.fit(name, hidden) for name in weights}, weights, _spreads(held_out, shares))


def _spreads(held_out: Sequence[HeldOut], weights: Floats) -> Spreads:
    """Of held-out machines: root mean square of the mean error, and of the spread around it.

    That spread is what makes the interval of nine tenths of the runs right: errors have long tails.
    """
    if not held_out:
        return _UNMEASURED
    errors = [fold.true - weights @ fold.found for fold in held_out]
    offset = np.sqrt(np.mean([error.mean() ** 2 for error in errors]))
    run = np.sqrt(np.mean([(np.quantile(np.abs(error - error.mean()), 0.9) / 1.645) ** 2 for error in errors]))
    return Spreads(max(float(offset), _LEAST_SPREAD), max(float(run), _LEAST_SPREAD))
