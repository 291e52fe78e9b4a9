"""Training of the source models: everything is tried on held-out applications and machines, the best is fitted."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.metrics import mape_of_logs
from perf_assets.features.folds import BY_UNSEEN, Unseen
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.amm.encoder import AmmOptions
from perf_assets.models.source.attention import AttentionSettings, BenchmarkAttention
from perf_assets.models.source.blend import Blend, HeldOutFold, choose_by_log_error, held_out_fold, log_error
from perf_assets.models.source.error_size import ErrorSize
from perf_assets.models.source.methods import MethodFactory, best_components
from perf_assets.models.source.model import Machines, SourceModel
from perf_assets.models.source.plain import PLAIN
from perf_assets.models.source.settings import SourceSettings
from perf_assets.models.source.stored import StoredPredictor
from perf_assets.models.source.tree_features import Embedded

BLEND = "with_amm"
"""The blend among the scores: its weights for a fold were chosen on the others."""
_UNSEEN: tuple[Unseen, ...] = ("application", "machine")
Amms = Mapping[str, Floats]
"""Machines x width by option of Algorithm 1."""


@dataclass(frozen=True)
class DescribedBy:
    """The encoder that described the machines."""

    version: str
    options: AmmOptions
    amms_without: Mapping[str, Amms]
    """AMMs by an encoder that has not seen the machine they are listed under: a machine that is held out is as new to
    the encoder as one that comes later."""


@dataclass(frozen=True)
class TrainedSource:
    """The fitted source models, and what they were chosen from."""

    model: SourceModel
    chosen_without_amm: str
    scores: pd.DataFrame
    """unseen, method, mape_ratio, median_ape_ratio, log_rmse, weight in the blend: on held-out folds."""
    selection_seconds: float
    fit_seconds: float
    """Time to fit what was chosen on everything: one training."""


def train_source(
    samples: PairedSamples,
    described: DescribedBy,
    settings: SourceSettings,
    progress: Callable[[str], None],
) -> TrainedSource:
    """Choose by cross-validation over applications and over machines, then fit on everything.

    `samples` have the AMMs of their machines.
    """
    if not samples.is_benchmark.any():
        raise BadInputError("source models with AMMs need RAJAPerf runs: land some")
    if not len(samples.examples()):
        raise BadInputError("source models need two machines with RAJAPerf that ran the same configuration: land more")
    start = time.monotonic()
    factory = MethodFactory(settings.seed, described.options, attention_of(settings))
    without_each = described.amms_without
    tried = {unseen: _held_out(samples, unseen, factory, without_each, settings, progress) for unseen in _UNSEEN}
    scores = pd.concat([_scores(unseen, *held_out) for unseen, held_out in tried.items()], ignore_index=True)
    without = _best_of(scores, settings.without_amm)
    published = _best_of(scores, settings.with_amm)
    selected = time.monotonic()
    progress(f"chosen: {without} without AMMs, {published} of the published kind; fitting on everything")
    blends: dict[Unseen, Blend] = {}
    sizes: dict[Unseen, ErrorSize] = {}
    for unseen, (names, folds) in tried.items():
        components = list(dict.fromkeys([*_machine_models(samples, unseen, settings), published, *_plain(unseen)]))
        kept = [_only(fold, [names.index(name) for name in components]) for fold in folds]
        weights, errors = blend_or_step_aside(kept, components)
        chosen = {name: float(w) for name, w in zip(components, weights, strict=True) if w > 0}
        fitted = {name: cast(StoredPredictor, factory.fit(name, samples, unseen)) for name in chosen}
        blends[unseen] = Blend(fitted, chosen, 0.0)
        if errors:
            sizes[unseen] = ErrorSize.fit(errors, [fold.distance for fold in folds])
        scores = pd.concat([scores, pd.DataFrame([_score(unseen, BLEND, errors)])], ignore_index=True)
    model = SourceModel(
        machines=Machines.of(samples),
        without_amm=cast(StoredPredictor, factory.fit(without, samples, "application")),
        with_amm=blends,
        errors={"with": sizes, "without": _log_errors(scores, without)},
        encoder_version=described.version,
    )
    weights_of = {(unseen, name): w for unseen, blend in blends.items() for name, w in blend.weights.items()}
    scores["blend_weight"] = [weights_of.get(key, 0.0) for key in zip(scores["unseen"], scores["method"], strict=True)]
    return TrainedSource(
        model=model,
        chosen_without_amm=without,
        scores=scores,
        selection_seconds=selected - start,
        fit_seconds=time.monotonic() - selected,
    )


def attention_of(settings: SourceSettings) -> AttentionSettings:
    """Settings of the attention among the methods."""
    return AttentionSettings(steps=settings.attention_steps, members=settings.attention_members)


def blend_or_step_aside(folds: Sequence[HeldOutFold], names: Sequence[str]) -> tuple[Floats, list[Floats]]:
    """Weights of the components, and the log errors on each fold with weights chosen on the other folds.

    Where such a blend is worse than one of the plain answers alone, that one answers.
    """
    weights = choose_by_log_error(folds, len(names))
    if not folds:
        return weights, []
    others = [[other for other in folds if other is not fold] or folds for fold in folds]
    chosen = [choose_by_log_error(known, len(names)) for known in others]
    plain = [np.eye(len(names))[names.index(name)] for name in PLAIN if name in names]
    best = min(plain, key=lambda alone: np.mean([log_error(fold, alone) for fold in folds]))
    blended = np.mean([log_error(fold, w) for fold, w in zip(folds, chosen, strict=True)])
    if blended > np.mean([log_error(fold, best) for fold in folds]):
        weights, chosen = best, [best] * len(folds)
    return weights, [w @ fold.predicted - fold.true for fold, w in zip(folds, chosen, strict=True)]


def not_worse(scores: pd.DataFrame) -> dict[Unseen, tuple[float, float]]:
    """Log error of the blend and of the best plain answer, by what is unseen; nothing where none could be held out."""
    errors = {(row["unseen"], row["method"]): float(row["log_rmse"]) for row in scores.to_dict("records")}
    return {
        unseen: (errors[unseen, BLEND], min(errors[unseen, name] for name in _plain(unseen)))
        for unseen in _UNSEEN
        if np.isfinite(errors[unseen, BLEND])
    }


def _plain(unseen: Unseen) -> list[str]:
    """Plain answers; of an unseen machine no pair has a median ratio, and it would be the benchmark's again."""
    return [name for name in PLAIN if unseen == "application" or name != "pair_median"]


def _machine_models(samples: PairedSamples, unseen: Unseen, settings: SourceSettings) -> list[str]:
    return [name for name in best_components(samples, unseen) if name.startswith(settings.machine_models)]


def _log_errors(scores: pd.DataFrame, method: str) -> dict[Unseen, ErrorSize]:
    rows = scores[scores["method"] == method].set_index("unseen")["log_rmse"].dropna()
    return {unseen: ErrorSize(float(rows[unseen]), 0.0) for unseen in _UNSEEN if unseen in rows}


def _held_out(
    samples: PairedSamples,
    unseen: Unseen,
    factory: MethodFactory,
    amms_without: Mapping[str, Amms],
    settings: SourceSettings,
    progress: Callable[[str], None],
) -> tuple[list[str], list[HeldOutFold]]:
    """Names of all methods, and their predictions for each held-out application or machine.

    As many folds at a time as there are threads to use; with too few applications or machines there are none.
    """
    baselines = [name for name in settings.baselines if name != "spec_xgboost" or samples.specification is not None]
    chosen_from = (*settings.without_amm, *settings.with_amm)
    machine_models = _machine_models(samples, unseen, settings)
    names = list(dict.fromkeys([*chosen_from, *baselines, *machine_models, *_plain(unseen)]))
    try:
        folds = list(BY_UNSEEN[unseen](samples))
    except BadInputError as error:
        progress(f"nothing is held out: {error}")
        return names, []
    pieces = [
        _FoldTask(
            position=position,
            unseen=unseen,
            names=tuple(names),
            seed=factory.seed,
            amm_options=factory.amm_options,
            attention=factory.attention,
            amms=amms_without.get(fold.held_out) if unseen == "machine" else None,
        )
        for position, fold in enumerate(folds)
    ]
    by_position: dict[int, HeldOutFold] = {}
    for piece, held_out in side_by_side(_predict_fold, samples, pieces):
        by_position[piece.position] = held_out
        progress(f"unseen {unseen}: {folds[piece.position].held_out} done, {len(by_position)} of {len(folds)}")
    return names, [by_position[position] for position in range(len(folds))]


@dataclass(frozen=True)
class _FoldTask:
    """One fold for a worker process."""

    position: int
    unseen: Unseen
    names: tuple[str, ...]
    seed: int
    amm_options: AmmOptions | None
    attention: AttentionSettings | None
    amms: Amms | None
    """AMMs by an encoder that has not seen the machine that is held out."""


def _predict_fold(samples: PairedSamples, piece: _FoldTask) -> HeldOutFold:
    if piece.amms is not None:
        samples = replace(samples, amms=piece.amms)
    fold = list(BY_UNSEEN[piece.unseen](samples))[piece.position]
    factory = MethodFactory(piece.seed, piece.amm_options, piece.attention)
    return held_out_fold(samples, fold, piece.names, partial(factory.fit, unseen=fold.unseen))


def _only(fold: HeldOutFold, positions: Sequence[int]) -> HeldOutFold:
    return HeldOutFold(fold.predicted[list(positions)], fold.true, fold.distance)


def _scores(unseen: Unseen, names: Sequence[str], folds: Sequence[HeldOutFold]) -> pd.DataFrame:
    return pd.DataFrame(
        [_score(unseen, name, [fold.predicted[i] - fold.true for fold in folds]) for i, name in enumerate(names)]
    )


def _score(unseen: Unseen, name: str, log_errors: Sequence[Floats]) -> dict[str, object]:
    if not log_errors:
        return {"unseen": unseen, "method": name, "mape_ratio": np.nan, "median_ape_ratio": np.nan, "log_rmse": np.nan}
    return {
        "unseen": unseen,
        "method": name,
        "mape_ratio": float(np.mean([mape_of_logs(errors) for errors in log_errors])),
        "median_ape_ratio": float(np.mean([np.median(np.abs(np.expm1(errors))) for errors in log_errors])),
        "log_rmse": float(np.mean([np.sqrt(np.mean(errors**2)) for errors in log_errors])),
    }


def _best_of(scores: pd.DataFrame, names: Sequence[str]) -> str:
    """Smallest log error, mean of both questions: relative errors of a few hopeless folds would drown the rest.

    The first where nothing could be held out.
    """
    errors = scores[scores["method"].isin(names)].groupby("method")["log_rmse"].mean().dropna()
    return names[0] if errors.empty else str(errors.idxmin())


def behaves_like(samples: PairedSamples, model: SourceModel, settings: SourceSettings) -> pd.DataFrame:
    """machine, app, kernel, attention_ratio, runs_count: which kernels an application behaves like.

    From the attention in the model's blend, or from one fitted for this where the blend does without it.
    """
    components = [c for blend in (model.with_amm or {}).values() for c in blend.components.values()]
    attention = next((c for c in components if isinstance(c, BenchmarkAttention)), None)
    attention = attention or BenchmarkAttention.fit(samples, attention_of(settings), settings.seed)
    rows = []
    for machine in samples.training_machines:
        kernels, shares = attention.behaves_like(samples, int(machine))
        seen = np.isfinite(samples.log_seconds[machine]) & ~samples.is_benchmark
        for app in sorted(set(samples.apps[seen].tolist())):
            chosen = seen & (samples.apps == app)
            described = {"machine": samples.machines[machine], "app": app, "runs_count": int(chosen.sum())}
            mean = np.clip(shares[chosen].mean(axis=0), 0.0, 1.0)
            rows += [
                {**described, "kernel": k, "attention_ratio": float(s)} for k, s in zip(kernels, mean, strict=True)
            ]
    return pd.DataFrame(rows)


def feature_masks(samples: PairedSamples, embedded: Embedded) -> pd.DataFrame:
    """app, feature, attention_ratio: what TabNet looks at when it embeds the runs of an application."""
    machines = samples.training_machines
    seen = np.isfinite(samples.log_seconds[machines]) & ~samples.is_benchmark
    masks = embedded.embedding.masks(embedded.scaler.transform(samples.counters[machines][seen]))
    apps = np.broadcast_to(samples.apps, seen.shape)[seen]
    rows = [
        {"app": app, "feature": feature, "attention_ratio": float(np.clip(share, 0.0, 1.0))}
        for app in sorted(set(apps.tolist()))
        for feature, share in zip(samples.counter_names, masks[apps == app].mean(axis=0), strict=True)
    ]
    return pd.DataFrame(rows)
