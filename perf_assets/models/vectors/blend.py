"""`best`: a blend of methods that learns weights, intervals and orders from predictions of held-out training rows.

Where an application will be new, a few held-out applications say too little to weigh methods by: all count the same,
and their mean is shrunk towards the mean vector of the known applications, as far as held-out applications ask for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.folds import Unseen
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.vectors import SLOWEST, VectorSamples, levelled, relative
from perf_assets.models.common.blending import most_even, weight_grid
from perf_assets.models.common.conformal import conformal_quantile
from perf_assets.models.vectors.methods import (
    MEAN,
    PAIRWISE,
    VectorMethod,
    fit_method,
)
from perf_assets.models.vectors.scores import log_errors, same_orders

Progress = Callable[[str], None]
_FOLDS = 3
_APPLICATION_FOLDS = 2
"""Each is a fit of every method, and there is one blend for each application that is held out outside."""
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the methods in a blend for new applications; the rest is the mean vector."""
_MOST_SAMPLES = 3000
"""Samples that are learned from where weights are chosen: those of a configuration say almost the same."""
_NEIGHBOURS = 100
_MOST_HELD_OUT = 6000
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class Ranking:
    """The order of the machines for each sample."""

    places: Floats
    """Samples x machines: 0 is the fastest; infinite where it is not asked for."""
    probability: Floats
    """Probability that the whole order is right."""


@dataclass(frozen=True)
class HeldOutVectors:
    """Training samples as fits that did not see them predict them: samples x machines."""

    values: Floats
    """Centred log times of samples x machines."""
    orders: Floats
    """Centred log times that machines are ranked by."""
    log_seconds: Floats
    """True log times, NaN where it did not run."""
    samples: tuple[str, ...] = ()
    """Configuration and machine of each."""


@dataclass(frozen=True)
class VectorBlend:
    """Weighted means of the components' centred log times, and what held-out rows taught about their errors."""

    components: Mapping[str, VectorMethod]
    weights: Mapping[str, float]
    """Weights for times: smallest squared error of relative times; where an application is new, equal but for that of
    the mean vector."""
    order_weights: Mapping[str, float]
    """Weights for the ranking: most held-out rows in the right order; those for times where an application is new."""
    held_out: HeldOutVectors
    seen: frozenset[str]
    """Machines, or hosts of machines with GPUs, that programs ran on in training."""

    def predict(self, samples: VectorSamples) -> Floats:
        """Centred log times."""
        return self._mix(samples, self.weights)

    def _mix(self, samples: VectorSamples, weights: Mapping[str, float]) -> Floats:
        is_strange = strangers(samples, self.seen)
        names = set(weights)
        if is_strange.any() and PAIRWISE in self.components:
            names.add(PAIRWISE)
        return _mixed(_answered({name: self.components[name].predict(samples) for name in names}, is_strange), weights)

    def rank(self, samples: VectorSamples, asked: Mask) -> Ranking:
        """The order of the machines that are asked for, and how often an order that is as clear turned out right."""
        ranked = self.ranked(samples)
        places = places_of(np.where(asked, ranked, np.inf))
        return Ranking(np.where(asked, places, np.inf), self.probability(ranked, asked))

    def ranked(self, samples: VectorSamples) -> Floats:
        """Centred log times that machines are put in order by."""
        return self._mix(samples, self.order_weights)

    def probability(self, ranked: Floats, asked: Mask) -> Floats:
        """Share of right orders among the held-out rows whose order was about as clear."""
        known = self.held_out
        errors = levelled(known.log_seconds) - levelled(known.orders)
        squares = (errors[:, :, None] - errors[:, None, :]) ** 2
        known_pairs = np.maximum(np.isfinite(squares).sum(axis=0), 1)
        spread = np.sqrt(np.nansum(squares, axis=0) / known_pairs) + _LEAST_SPREAD
        seen = clearness(known.orders, np.isfinite(known.log_seconds), spread)
        by_clearness = np.argsort(seen)
        is_right = same_orders(known.orders, known.log_seconds)[by_clearness].astype(float)
        sums = np.concatenate([[0.0], np.cumsum(is_right)])
        count = min(_NEIGHBOURS, len(seen))
        middle = np.searchsorted(seen[by_clearness], clearness(ranked, asked, spread))
        start = np.clip(middle - count // 2, 0, len(seen) - count)
        return np.asarray((sums[start + count] - sums[start]) / count)

    def half_widths(self, reference: str, machines: tuple[str, ...], level: float = 0.9) -> Floats:
        """Per machine, the log error of its relative time that `level` of the held-out rows stay within."""
        errors = log_errors(self.held_out.log_seconds, self.held_out.values, reference, machines)
        return np.array([conformal_quantile(own[np.isfinite(own)], level) for own in errors.T])


def fit_blend(
    samples: VectorSamples,
    unseen: Unseen | None,
    seed: int,
    settings: VectorSettings,
    fitted: Mapping[str, VectorMethod] | None = None,
    progress: Progress = lambda _: None,
) -> VectorBlend:
    """Choose weights and learn errors on folds within `samples` (of whole applications where those will be new)."""
    components = settings.components
    tried = [*components, MEAN] if unseen == "application" else components
    parts: list[dict[str, Floats]] = []
    truths: list[Floats] = []
    names: list[str] = []
    apps: list[str] = []
    folds = _inner_folds(samples, unseen, seed)
    for number, test in enumerate(folds, 1):
        train, tested = samples.at(~test).at_most(_MOST_SAMPLES, seed), samples.at(test)
        predicted = {name: fit_method(name, train, seed, settings).predict(tested) for name in tried}
        parts.append(_answered(predicted, strangers(tested, seen_by(train))))
        truths.append(tested.targets)
        names += tested.names
        apps += tested.apps[tested.row].tolist()
        progress(f"held-out part {number} of {len(folds)} predicted")
    predicted = {name: np.vstack([part[name] for part in parts]) for name in tried}
    true = np.vstack(truths)
    if unseen == "application":
        weights = order_weights = shrunk_weights(predicted, true, np.array(apps))
    else:
        weights, order_weights = (choose_weights(predicted, true, loss) for loss in (_squared_error, _wrong_orders))
    models = {
        name: (fitted or {}).get(name) or fit_method(name, samples, seed, settings)
        for name in tried
        if name in weights or name in order_weights or name == PAIRWISE
    }
    kept = np.random.default_rng(seed).permutation(len(true))[:_MOST_HELD_OUT]
    held_out = HeldOutVectors(
        _mixed(predicted, weights)[kept],
        _mixed(predicted, order_weights)[kept],
        true[kept],
        tuple(names[row] for row in kept),
    )
    return VectorBlend(models, weights, order_weights, held_out, seen_by(samples))


def seen_by(samples: VectorSamples) -> frozenset[str]:
    """Machines that the programs ran on; a machine with GPUs and its host are two."""
    return frozenset(np.array(samples.paired.machines)[np.unique(samples.views)].tolist())


def strangers(samples: VectorSamples, seen: frozenset[str]) -> Mask:
    """Samples of programs that run on what none ran on in training: on hosts, when all known ones use GPUs."""
    machines = np.array(samples.paired.machines)[samples.views[samples.row]]
    return np.asarray(~np.isin(machines, sorted(seen)).all(axis=1))


def _answered(predictions: Mapping[str, Floats], is_strange: Mask) -> dict[str, Floats]:
    """Answer for strangers by models of pairs alone: only those know a host, by its benchmark."""
    if PAIRWISE not in predictions or not is_strange.any():
        return dict(predictions)
    return {name: np.where(is_strange[:, None], predictions[PAIRWISE], values) for name, values in predictions.items()}


def places_of(values: Floats) -> Floats:
    """Place of each value in its row; 0 is the smallest."""
    places = np.empty(values.shape)
    order = np.argsort(values, axis=1, kind="stable")
    np.put_along_axis(places, order, np.arange(values.shape[1], dtype=float)[None], axis=1)
    return places


def choose_weights(
    predictions: Mapping[str, Floats], true: Floats, loss: Callable[[Floats, Floats], float]
) -> dict[str, float]:
    """Positive fifths with sum 1 that make the loss small; among those that are as good, the most even ones."""
    names = list(predictions)
    grid = weight_grid(len(names))
    losses = np.array([loss(_mixed(predictions, dict(zip(names, weights, strict=True))), true) for weights in grid])
    even = grid[most_even(grid, losses)]
    return {name: float(weight) for name, weight in zip(names, even, strict=True) if weight > 0}


def shrunk_weights(
    predicted: Mapping[str, Floats], true: Floats, apps: "np.ndarray[tuple[int], np.dtype[np.str_]]"
) -> dict[str, float]:
    """Equal weights of the methods, and that of the mean vector, with the smallest squared error over applications.

    The mean vector alone answers where shares that are chosen on the other applications do no better than it.
    """
    methods = [name for name in predicted if name != MEAN]
    blends = [
        {MEAN: 1 - share} | dict.fromkeys(methods, share / len(methods)) if share else {MEAN: 1.0} for share in _SHARES
    ]
    rows = [apps == app for app in np.unique(apps)]
    losses = np.array(
        [[_squared_error(_mixed(predicted, w)[own], true[own]) / own.sum() for own in rows] for w in blends]
    )
    best = int(losses.mean(axis=1).argmin())
    if len(rows) > 1:
        others = [int(np.delete(losses, place, axis=1).mean(axis=1).argmin()) for place in range(len(rows))]
        if np.mean([losses[share, place] for place, share in enumerate(others)]) >= losses[0].mean():
            best = 0
    return {name: weight for name, weight in blends[best].items() if weight > 0}


def clearness(ranked: Floats, asked: Mask, spread: Floats) -> Floats:
    """Smallest step between neighbours of the order, in standard errors of the difference of those two machines."""
    order = np.argsort(np.where(asked, ranked, np.inf), axis=1, kind="stable")
    first, second = order[:, :-1], order[:, 1:]
    rows = np.arange(len(ranked))[:, None]
    steps = (ranked[rows, second] - ranked[rows, first]) / spread[first, second]
    return np.asarray(np.where(asked[rows, second], steps, np.inf).min(axis=1))


def _squared_error(mixed: Floats, true: Floats) -> float:
    ran = np.isfinite(true)
    ratios = relative(np.where(ran, mixed, np.nan), SLOWEST, ())
    return float(np.nansum((ratios - relative(true, SLOWEST, ())) ** 2))


def _wrong_orders(mixed: Floats, true: Floats) -> float:
    return float(1 - same_orders(mixed, true).mean())


def _inner_folds(
    samples: VectorSamples, unseen: Unseen | None, seed: int
) -> list["np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Masks over configurations, each configuration once; whole applications where one will be new."""
    generator = np.random.default_rng(seed)
    apps = np.unique(samples.apps)
    if unseen == "application" and len(apps) > 1:
        folds = min(_APPLICATION_FOLDS, len(apps))
        of_app = dict(zip(apps[generator.permutation(len(apps))], np.arange(len(apps)) % folds, strict=True))
        number = np.array([of_app[app] for app in samples.apps])
    else:
        folds = _FOLDS
        number = generator.permutation(len(samples.configurations)) % folds
    return [number == fold for fold in range(folds)]


def _mixed(predictions: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    return np.asarray(sum(weight * levelled(predictions[name]) for name, weight in weights.items()))
