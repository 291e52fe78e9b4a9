"""Training of the source models: everything is tried on held-out applications and machines, the best is fitted."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import BY_UNSEEN, Unseen
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.amm.encoder import AmmOptions
from perf_assets.models.common.regressors import DOWNSTREAM
from perf_assets.models.source.blend import Blend, HeldOut, choose_weights, distance
from perf_assets.models.source.methods import Workshop, best_components
from perf_assets.models.source.model import Machines, SourceModel

WITHOUT_AMM = tuple(f"{described}_{trees}" for described in ("raw", "embedding") for trees in DOWNSTREAM)
WITH_AMM = tuple(f"{described}_{trees}" for described in ("raw_amm", "embedding_amm") for trees in DOWNSTREAM)
BASELINES = ("onehot_xgboost", "spec_xgboost", "benchmark_mean")
_UNSEEN: tuple[Unseen, ...] = ("application", "machine")


@dataclass(frozen=True)
class TrainedSource:
    """The fitted source models, and what they were chosen from."""

    model: SourceModel
    chosen_without_amm: str
    chosen_published: str
    """The trees with the published AMMs that went into the blend."""
    scores: pd.DataFrame
    """unseen, method, mape_ratio, median_ape_ratio, log_rmse, weight in the blend: on held-out folds."""
    selection_seconds: float
    fit_seconds: float
    """Of fitting what was chosen on everything: one training."""


def train_source(
    samples: PairedSamples, amm_options: AmmOptions | None, seed: int, progress: Callable[[str], None]
) -> TrainedSource:
    """Choose by cross-validation over applications and over machines, then fit on everything."""
    if not samples.is_benchmark.any():
        raise BadInputError("source models with AMMs need RAJAPerf runs: land some")
    if not len(samples.examples()):
        raise BadInputError("source models need two machines with RAJAPerf that ran the same configuration: land more")
    start = time.monotonic()
    workshop = Workshop(seed, amm_options)
    held_out = {unseen: _held_out(samples, unseen, workshop, progress) for unseen in _UNSEEN}
    scores = pd.concat([_scores(unseen, *found) for unseen, found in held_out.items()], ignore_index=True)
    without = _best_of(scores, WITHOUT_AMM)
    published = _best_of(scores, WITH_AMM)
    selected = time.monotonic()
    progress(f"chosen: {without} without AMMs, {published} of the published kind; fitting on everything")
    blends: dict[Unseen, Blend] = {}
    for unseen, (names, folds) in held_out.items():
        components = [*best_components(samples, unseen), published]
        positions = [names.index(name) for name in components]
        weights, caution = choose_weights([_only(fold, positions) for fold in folds], len(components))
        kept = {name: float(w) for name, w in zip(components, weights, strict=True) if w > 0}
        fitted = {name: workshop.fit(name, samples, unseen) for name in kept}
        blends[unseen] = Blend(fitted, kept, caution)
        scores = pd.concat([scores, _blend_scores(unseen, blends[unseen], names, folds)], ignore_index=True)
    model = SourceModel(
        Machines.of(samples),
        workshop.fit(without, samples, "application"),  # type: ignore[arg-type]
        blends,
    )
    weights_of = {(unseen, name): w for unseen, blend in blends.items() for name, w in blend.weights.items()}
    scores["blend_weight"] = [weights_of.get(key, 0.0) for key in zip(scores["unseen"], scores["method"], strict=True)]
    return TrainedSource(model, without, published, scores, selected - start, time.monotonic() - selected)


def _held_out(
    samples: PairedSamples, unseen: Unseen, workshop: Workshop, progress: Callable[[str], None]
) -> tuple[list[str], list[HeldOut]]:
    """Names of all methods, and their predictions for each held-out application or machine.

    As many folds at a time as there are threads to use; with too few applications or machines there are none.
    """
    baselines = [name for name in BASELINES if name != "spec_xgboost" or samples.specification is not None]
    names = list(dict.fromkeys([*WITHOUT_AMM, *WITH_AMM, *baselines, *best_components(samples, unseen)]))
    try:
        folds = list(BY_UNSEEN[unseen](samples))
    except BadInputError as error:
        progress(f"nothing is held out: {error}")
        return names, []
    pieces = [
        _Piece(position, unseen, tuple(names), workshop.seed, workshop.amm_options) for position in range(len(folds))
    ]
    found: dict[int, HeldOut] = {}
    for piece, held_out in side_by_side(_predict_fold, samples, pieces):
        found[piece.position] = held_out
        progress(f"unseen {unseen}: {folds[piece.position].held_out} done, {len(found)} of {len(folds)}")
    return names, [found[position] for position in range(len(folds))]


@dataclass(frozen=True)
class _Piece:
    """One fold for a worker process."""

    position: int
    unseen: Unseen
    names: tuple[str, ...]
    seed: int
    amm_options: AmmOptions | None


def _predict_fold(samples: PairedSamples, piece: _Piece) -> HeldOut:
    fold = list(BY_UNSEEN[piece.unseen](samples))[piece.position]
    workshop, train, test = Workshop(piece.seed, piece.amm_options), fold.train, fold.some_of_test
    found = [workshop.fit(name, train, fold.unseen).predict(samples, test) for name in piece.names]
    return HeldOut(np.stack(found), samples.log_relative_time(test), distance(samples, test))


def _only(fold: HeldOut, positions: Sequence[int]) -> HeldOut:
    return HeldOut(fold.found[list(positions)], fold.true, fold.distance)


def _scores(unseen: Unseen, names: Sequence[str], folds: Sequence[HeldOut]) -> pd.DataFrame:
    return pd.DataFrame(
        [_score(unseen, name, [fold.found[i] - fold.true for fold in folds]) for i, name in enumerate(names)]
    )


def _blend_scores(unseen: Unseen, blend: Blend, names: Sequence[str], folds: Sequence[HeldOut]) -> pd.DataFrame:
    """Of the blend on the folds that its weights were chosen on: somewhat too good."""
    weights = np.array([blend.weights.get(name, 0.0) for name in names])
    errors = [weights @ fold.found - blend.caution * fold.distance - fold.true for fold in folds]
    return pd.DataFrame([_score(unseen, "with_amm (weights chosen on these folds)", errors)])


def _score(unseen: Unseen, name: str, log_errors: Sequence[Floats]) -> dict[str, object]:
    relative = [np.abs(np.expm1(errors)) for errors in log_errors]
    if not relative:
        return {"unseen": unseen, "method": name, "mape_ratio": np.nan, "median_ape_ratio": np.nan, "log_rmse": np.nan}
    return {
        "unseen": unseen,
        "method": name,
        "mape_ratio": float(np.mean([r.mean() for r in relative])),
        "median_ape_ratio": float(np.mean([np.median(r) for r in relative])),
        "log_rmse": float(np.mean([np.sqrt(np.mean(errors**2)) for errors in log_errors])),
    }


def _best_of(scores: pd.DataFrame, names: Sequence[str]) -> str:
    """Smallest log error, mean of both questions: relative errors of a few hopeless folds would drown the rest.

    The first where nothing could be held out.
    """
    errors = scores[scores["method"].isin(names)].groupby("method")["log_rmse"].mean().dropna()
    return names[0] if errors.empty else str(errors.idxmin())
