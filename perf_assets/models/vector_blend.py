"""`best`: a blend of methods whose weights, intervals and orders come from predictions of held-out training rows."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from perf_assets.features.folds import Unseen
from perf_assets.features.paired import Floats
from perf_assets.features.vectors import SLOWEST, VectorSamples, relative
from perf_assets.models import archive
from perf_assets.models.vector_methods import (
    COMPONENTS,
    Majority,
    VectorPredictor,
    fit_method,
    load_method,
    save_method,
)

Progress = Callable[[str], None]
_FOLDS = 3
_STEPS = 5
"""Weights are fifths: finer ones only fit noise."""
_AS_GOOD = 1.01
_NEIGHBOURS = 50
_MOST_KEPT = 6000
_CHUNK = 512
_BLEND_FILE = "blend.json"
_HELD_OUT_FILE = "held_out.npz"


@dataclass(frozen=True)
class Ranking:
    """The order of the machines for each sample."""

    places: Floats
    """Samples x machines: 0 is the fastest; infinite where it is not asked for."""
    probability: Floats
    """That the whole order is right."""


@dataclass(frozen=True)
class VectorBlend:
    """Weighted mean of the components' centred log times, and what held-out rows taught about its errors."""

    components: Mapping[str, VectorPredictor]
    weights: Mapping[str, float]
    majority: Majority
    predicted: Floats
    """Held-out training samples x machines."""
    log_seconds: Floats
    """True log times of the same, NaN where it did not run."""

    def predict(self, samples: VectorSamples) -> Floats:
        """Centred log times."""
        return _mixed({name: model.predict(samples) for name, model in self.components.items()}, self.weights)

    def rank(self, predicted: Floats, asked: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]") -> Ranking:
        """The most probable order: how did times turn out where held-out predictions looked like this one?

        Candidates are the orders that the errors of the nearest held-out predictions lead to.
        """
        places, probability = np.full(predicted.shape, np.inf), np.zeros(len(predicted))
        errors = _level(self.log_seconds - self.predicted)
        for start in range(0, len(predicted), _CHUNK):
            rows = slice(start, start + _CHUNK)
            distances = ((predicted[rows, None, :] - self.predicted[None]) ** 2).sum(axis=2)
            nearest = np.argsort(distances, axis=1)[:, :_NEIGHBOURS]
            for offset, near in enumerate(nearest):
                row = start + offset
                where = np.flatnonzero(asked[row])
                order, probability[row] = _most_probable(predicted[row, where], errors[near][:, where])
                places[row, where[order]] = np.arange(len(where))
        return Ranking(places, probability)

    def half_widths(self, reference: str, machines: tuple[str, ...], level: float = 0.9) -> Floats:
        """Of each machine, the log error of its relative time that `level` of the held-out rows stay within."""
        ran = np.isfinite(self.log_seconds)
        if reference in machines:
            ran = ran & ran[:, [machines.index(reference)]]
        kept = ran.any(axis=1)
        true, found = (
            np.log(relative(np.where(ran, logs, np.nan)[kept], reference, machines))
            for logs in (self.log_seconds, self.predicted)
        )
        errors = np.abs(true - found)
        return np.array([_quantile(errors[r, m], level) for m, r in enumerate(ran[kept].T)])

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, component in self.components.items():
            save_method(name, component, folder / "components" / name)
        save_method("majority", self.majority, folder / "majority")
        archive.save(
            folder / _HELD_OUT_FILE, {}, {"predicted": self.predicted.astype(np.float32), "true": self.log_seconds}
        )
        (folder / _BLEND_FILE).write_text(json.dumps({"weights": dict(self.weights)}))

    @classmethod
    def load(cls, folder: Path) -> "VectorBlend":
        """A saved one."""
        weights = json.loads((folder / _BLEND_FILE).read_text())["weights"]
        components = {name: load_method(folder / "components" / name) for name in weights}
        held_out = archive.load(folder / _HELD_OUT_FILE)[1]
        majority = load_method(folder / "majority")
        assert isinstance(majority, Majority)
        return cls(components, weights, majority, held_out["predicted"].astype(float), held_out["true"])


def fit_blend(
    samples: VectorSamples,
    unseen: Unseen | None,
    seed: int,
    fitted: Mapping[str, VectorPredictor] | None = None,
    progress: Progress = lambda _: None,
) -> VectorBlend:
    """Choose the weights on folds within `samples` (of applications where those will be new), fit on all of them."""
    parts: list[dict[str, Floats]] = []
    truths: list[Floats] = []
    folds = _inner_folds(samples, unseen, seed)
    for number, test in enumerate(folds, 1):
        train, tested = samples.at(~test), samples.at(test)
        parts.append({name: _level(fit_method(name, train, seed).predict(tested)) for name in COMPONENTS})
        truths.append(tested.targets)
        progress(f"held-out part {number} of {len(folds)} predicted")
    found = {name: np.vstack([part[name] for part in parts]) for name in COMPONENTS}
    true = np.vstack(truths)
    weights = choose_weights(found, true)
    kept = {name: weight for name, weight in weights.items() if weight > 0}
    models = {name: (fitted or {}).get(name) or fit_method(name, samples, seed) for name in kept}
    chosen = np.random.default_rng(seed).permutation(len(true))[:_MOST_KEPT]
    return VectorBlend(models, kept, Majority.fit(samples), _mixed(found, kept)[chosen], true[chosen])


def choose_weights(found: Mapping[str, Floats], true: Floats) -> dict[str, float]:
    """Non-negative fifths with sum 1 whose relative times have the smallest squared error; even ones where equal."""
    names, ran = list(found), np.isfinite(true)
    wanted = relative(true, SLOWEST, ())
    grid = [np.array(g) / _STEPS for g in product(range(_STEPS + 1), repeat=len(names)) if sum(g) == _STEPS]
    errors = []
    for weights in grid:
        mixed = _mixed(found, dict(zip(names, weights, strict=True)))
        errors.append(float(np.nansum((relative(np.where(ran, mixed, np.nan), SLOWEST, ()) - wanted) ** 2)))
    good = [weights for weights, error in zip(grid, errors, strict=True) if error <= _AS_GOOD * min(errors)]
    even = min(good, key=lambda weights: float(np.sum(weights**2)))
    return dict(zip(names, map(float, even), strict=True))


def _inner_folds(
    samples: VectorSamples, unseen: Unseen | None, seed: int
) -> list["np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Masks over configurations, each configuration once; whole applications where one will be new."""
    generator = np.random.default_rng(seed)
    apps = np.unique(samples.apps)
    if unseen == "application" and len(apps) > 1:
        folds = min(_FOLDS, len(apps))
        of_app = dict(zip(apps[generator.permutation(len(apps))], np.arange(len(apps)) % folds, strict=True))
        number = np.array([of_app[app] for app in samples.apps])
    else:
        folds = _FOLDS
        number = generator.permutation(len(samples.configurations)) % folds
    return [number == fold for fold in range(folds)]


def _mixed(found: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    return np.asarray(sum(weight * _level(found[name]) for name, weight in weights.items()))


def _level(logs: Floats) -> Floats:
    """Less the mean over the machines that are known."""
    return np.asarray(logs - np.nanmean(logs, axis=1, keepdims=True))


def _most_probable(predicted: Floats, errors: Floats) -> tuple[tuple[int, ...], float]:
    """The order that most draws of errors lead to, and their share; the predicted one where none stands out."""
    own = tuple(np.argsort(predicted, kind="stable").tolist())
    draws = errors[np.isfinite(errors).all(axis=1)]
    orders = Counter(map(tuple, np.argsort(predicted + draws, axis=1, kind="stable").tolist()))
    order, count = max(orders.items(), key=lambda item: (item[1], item[0] == own), default=(own, 0))
    return order, count / max(len(draws), 1)


def _quantile(errors: Floats, level: float) -> float:
    """Conformal: with n errors the ceil(level (n + 1))-th; infinite where there is none."""
    position = int(np.ceil(level * (len(errors) + 1)))
    return float(np.sort(errors)[min(position, len(errors)) - 1]) if len(errors) else float("inf")
