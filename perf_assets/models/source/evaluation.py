"""Scores of methods side by side, on folds that hide an application or a machine.

Everything is fitted once. What `best` weighs its components by are folds within folds: what is fitted without A and B
is a fit without B inside of the fold without A, and the other way round. So the work is cut into pieces by what is
hidden, each fits and predicts on its own core, and the scores are put together from their predictions.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.samples import uses_device
from perf_assets.features.folds import PROTOCOLS, Fold
from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.source.blend import (
    HeldOutFold,
    blended,
    choose_weights,
    distance,
    fold_predictions,
    held_out_fold,
    inner_folds,
    plain_among,
)
from perf_assets.models.source.methods import MethodFactory, best_components, check_method

Progress = Callable[[str], None]
_Scores = dict[str, float]
_BEST = "best"
_Key = tuple[str, int, str]
"""Protocol, seed, what is held out."""


def evaluate_relative(
    samples: PairedSamples,
    methods: Sequence[str],
    protocols: Iterable[str] = tuple(PROTOCOLS),
    seeds: int = 1,
    progress: Progress = lambda _: None,
) -> dict[str, dict[str, dict[str, object]]]:
    """Protocol -> method -> scores, each the mean over held-out folds of the mean over ordered pairs.

    `mape` is a ratio (0.1 is ten percent) and the mean over seeds, `mape_std` its spread over seeds, `mape_median` the
    median over folds, `mape_by_fold` what each held-out application or machine got. A protocol that these samples do
    not allow is left out, and said so before the work begins; it is an error where none is left.
    """
    for name in methods:
        check_method(name, samples)
    folds = _possible_folds(samples, protocols, progress)
    pieces = [piece for seed in range(seeds) for name in folds for piece in _pieces(name, folds[name], methods, seed)]
    made = _Predictions()
    clock = _TimeLeft(sum(piece.fits for piece in pieces))
    for piece, result in side_by_side(_fit_piece, samples, pieces):
        made.add(piece, result)
        hidden = " and ".join(piece.hidden)
        progress(f"{piece.protocol} without {hidden}, seed {piece.seed}: {clock.after(piece.fits)}")
    return {
        protocol: _scored(samples, protocol, listed, methods, seeds, made, progress)
        for protocol, listed in folds.items()
    }


def _scored(
    samples: PairedSamples,
    protocol: str,
    folds: Sequence[Fold],
    methods: Sequence[str],
    seeds: int,
    made: "_Predictions",
    progress: Progress,
) -> dict[str, dict[str, object]]:
    """Scores of a protocol by method, with a line of progress per fold."""
    scores: dict[str, list[list[_Scores]]] = {name: [[] for _ in range(seeds)] for name in methods}
    for seed in range(seeds):
        for fold in folds:
            predictions = made.of_fold(samples, fold, (protocol, seed, fold.held_out), with_best=_BEST in methods)
            for name in methods:
                scores[name][seed].append(mean_over_pairs(samples, fold.test, predictions[name]))
            shown = ", ".join(f"{name} {scores[name][seed][-1]['mape_ratio']:.1%}" for name in methods)
            progress(f"{protocol} without {fold.held_out}, seed {seed}: {shown}")
    return {name: _summary(folds, by_seed) for name, by_seed in scores.items()}


def _possible_folds(samples: PairedSamples, protocols: Iterable[str], progress: Progress) -> dict[str, list[Fold]]:
    """Folds by protocol; obstacles are reported at once."""
    folds: dict[str, list[Fold]] = {}
    obstacles = []
    for protocol in protocols:
        try:
            folds[protocol] = list(PROTOCOLS[protocol](samples))
        except BadInputError as error:
            obstacles.append(f"{protocol} cannot be computed: {error}")
    if not folds:
        raise BadInputError("; ".join(obstacles))
    for obstacle in obstacles:
        progress(obstacle)
    return folds


@dataclass(frozen=True)
class _Piece:
    """Models that are fitted without some applications or machines."""

    protocol: str
    seed: int
    hidden: tuple[str, ...]
    """One: a fold. Two: a fold within a fold, in either order."""
    methods: tuple[str, ...]
    fits: int
    """Models to fit: what the time that is left is estimated by."""


@dataclass(frozen=True, eq=False)
class _Result:
    """Predictions of one piece."""

    outer: dict[str, dict[str, Floats]]
    """Predictions by what is held out and by method."""
    inner: dict[tuple[str, str], HeldOutFold]
    """Predictions of inner folds by what is held out outside and inside."""


def _pieces(protocol: str, folds: Sequence[Fold], methods: Sequence[str], seed: int) -> list[_Piece]:
    """Pieces of a protocol, the largest first, so that no core is left with one at the end."""
    outer, pairs = [], dict[tuple[str, ...], int]()
    for fold in folds:
        train = fold.train
        components = best_components(train, fold.unseen) if _BEST in methods else []
        names = dict.fromkeys([*(name for name in methods if name != _BEST), *components])
        outer.append(_Piece(protocol, seed, (fold.held_out,), tuple(names), len(names)))
        if components:
            for within in inner_folds(train, fold.unseen):
                pairs[tuple(sorted((fold.held_out, within.held_out)))] = len(components)
    return outer + [_Piece(protocol, seed, hidden, (), fits) for hidden, fits in pairs.items()]


def _fit_piece(samples: PairedSamples, piece: _Piece) -> _Result:
    factory = MethodFactory(piece.seed)
    folds = {fold.held_out: fold for fold in PROTOCOLS[piece.protocol](samples)}
    if len(piece.hidden) == 1:
        fold = folds[piece.hidden[0]]
        fit = partial(factory.fit, unseen=fold.unseen)
        return _Result({fold.held_out: fold_predictions(samples, fold, piece.methods, fit)}, {})
    inner = {}
    for held_out, other in (piece.hidden, piece.hidden[::-1]):
        train = folds[held_out].train
        for within in inner_folds(train, folds[held_out].unseen):
            if within.held_out == other:
                names = best_components(train, within.unseen)
                fit = partial(factory.fit, unseen=within.unseen)
                inner[held_out, other] = held_out_fold(train, within, names, fit)
    return _Result({}, inner)


class _Predictions:
    """Predictions of pieces, by protocol, seed and held-out application or machine."""

    def __init__(self) -> None:
        self._outer: dict[_Key, dict[str, Floats]] = {}
        self._inner: dict[_Key, dict[str, HeldOutFold]] = {}

    def add(self, piece: _Piece, result: _Result) -> None:
        """Keep the predictions of a piece."""
        for held_out, by_method in result.outer.items():
            self._outer[piece.protocol, piece.seed, held_out] = by_method
        for (held_out, other), within in result.inner.items():
            self._inner.setdefault((piece.protocol, piece.seed, held_out), {})[other] = within

    def of_fold(self, samples: PairedSamples, fold: Fold, key: _Key, *, with_best: bool) -> dict[str, Floats]:
        """Predictions of a fold by method; `best` is put together from those of its components, there and within."""
        by_method = self._outer[key]
        if not with_best:
            return by_method
        names = best_components(fold.train, fold.unseen)
        inner = self._inner.get(key, {})
        held_out = [inner[other] for other in sorted(inner)]
        weights, caution = choose_weights(held_out, len(names), plain=plain_among(names))
        best = blended([by_method[name] for name in names], weights, caution, distance(samples, fold.test))
        return {**by_method, _BEST: best}


class _TimeLeft:
    """Estimates the time that is left by the models that are fitted and those that are not."""

    def __init__(self, fits: int) -> None:
        self._fits, self._done, self._start = fits, 0, time.monotonic()

    def after(self, fits: int) -> str:
        """Progress in words, after `fits` more models: what is done and what is left."""
        self._done += fits
        left = (time.monotonic() - self._start) / self._done * (self._fits - self._done)
        shown = f"{left / 60:.0f} minutes" if left > 90 else f"{left:.0f} s"
        return f"{self._done} of {self._fits} models fitted, about {shown} left"


def _summary(folds: Sequence[Fold], by_seed: Sequence[Sequence[_Scores]]) -> dict[str, object]:
    mapes = np.array([[score["mape_ratio"] for score in of_seed] for of_seed in by_seed])
    summary: dict[str, object] = {
        "mape": float(mapes.mean()),
        "mape_std": float(mapes.mean(axis=1).std()),
        "mape_median": float(np.median(mapes, axis=1).mean()),
    }
    for name, column in (("log_rmse", "log_rmse"), ("within_10", "within_10_ratio"), ("within_25", "within_25_ratio")):
        summary[name] = float(np.mean([[score[column] for score in of_seed] for of_seed in by_seed]))
    summary["mape_by_fold"] = {
        fold.held_out: float(value) for fold, value in zip(folds, mapes.mean(axis=0), strict=True)
    }
    return summary


ALL = "all"
"""The scenario that every ordered pair belongs to."""
Score = dict[str, str | float | int]


def scenario_of(samples: PairedSamples, examples: Examples) -> "pd.Series[str]":
    """`CPU->GPU` for an example whose source has no GPUs that programs use, and whose target has."""
    kinds = np.where(uses_device(samples), "GPU", "CPU")
    return pd.Series([f"{kinds[s]}->{kinds[t]}" for s, t in zip(examples.source, examples.target, strict=True)])


def scenario_scores(samples: PairedSamples, examples: Examples, predicted: Floats) -> Iterator[Score]:
    """Scores of each scenario that occurs, and of all together: means over ordered pairs of machines.

    The median is over examples.
    """
    scenarios = scenario_of(samples, examples).to_numpy()
    wrong = np.abs(np.expm1(predicted - samples.log_relative_time(examples)))
    every = [(str(name), scenarios == name) for name in np.unique(scenarios)]
    for scenario, chosen in [*every, (ALL, np.ones(len(examples), bool))]:
        yield {
            "scenario": scenario,
            **mean_over_pairs(samples, examples.where(chosen), predicted[chosen]),
            "median_ape_ratio": float(np.median(wrong[chosen])),
            "examples_count": int(chosen.sum()),
        }


def mean_over_pairs(samples: PairedSamples, examples: Examples, predicted: Floats) -> dict[str, float]:
    """`mape_ratio`, `log_rmse`, and shares of examples within 10 and 25%: means over ordered pairs of machines."""
    wrong = predicted - samples.log_relative_time(examples)
    relative = np.abs(np.expm1(wrong))
    each = pd.DataFrame(
        {
            "pair": examples.source * len(samples.machines) + examples.target,
            "mape_ratio": relative,
            "log_rmse": wrong**2,
            "within_10_ratio": relative <= 0.10,
            "within_25_ratio": relative <= 0.25,
        }
    )
    by_pair = each.groupby("pair").mean()
    by_pair["log_rmse"] = np.sqrt(by_pair["log_rmse"])
    return {str(name): float(value) for name, value in by_pair.mean().items()}
