"""Scores of methods side by side, on folds that hide an application or a machine."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.metrics import log_rmse, mape, share_within
from perf_assets.features.folds import PROTOCOLS, Fold
from perf_assets.features.paired import Floats, PairedSamples
from perf_assets.models.relative import Workshop, check_method

Progress = Callable[[str], None]


@dataclass(frozen=True)
class _FoldScore:
    """Means over ordered pairs of machines."""

    mape: float
    log_rmse: float
    within_10: float
    within_25: float


def evaluate_relative(
    samples: PairedSamples,
    methods: Sequence[str],
    protocols: Iterable[str] = tuple(PROTOCOLS),
    seeds: int = 1,
    progress: Progress = lambda _: None,
) -> dict[str, dict[str, dict[str, object]]]:
    """Protocol -> method -> scores, each the mean over held-out folds of the mean over ordered pairs.

    `mape` is a ratio (0.1 is ten percent) and the mean over seeds, `mape_std` its spread over seeds, `mape_median` the
    median over folds, `mape_by_fold` what each held-out application or machine got.
    """
    for name in methods:
        check_method(name, samples)
    return {protocol: _run_protocol(samples, methods, protocol, seeds, progress) for protocol in protocols}


def _run_protocol(
    samples: PairedSamples, methods: Sequence[str], protocol: str, seeds: int, progress: Progress
) -> dict[str, dict[str, object]]:
    folds = list(PROTOCOLS[protocol](samples))
    scores: dict[str, list[list[_FoldScore]]] = {name: [] for name in methods}
    for seed in range(seeds):
        workshop = Workshop(seed)
        of_seed: dict[str, list[_FoldScore]] = {name: [] for name in methods}
        for fold in folds:
            for name in methods:
                predictor = workshop.fit(name, fold.train, fold.unseen)
                of_seed[name].append(_score(samples, fold, predictor.predict(samples, fold.test)))
            shown = ", ".join(f"{name} {of_seed[name][-1].mape:.1%}" for name in methods)
            progress(f"{protocol} without {fold.held_out}, seed {seed}: {shown}")
        for name in methods:
            scores[name].append(of_seed[name])
    return {name: _summary(folds, by_seed) for name, by_seed in scores.items()}


def _score(samples: PairedSamples, fold: Fold, predicted: Floats) -> _FoldScore:
    true, found = np.exp(samples.log_relative_time(fold.test)), np.exp(predicted)
    pairs = fold.test.source * len(samples.machines) + fold.test.target
    chosen = [pairs == pair for pair in np.unique(pairs)]
    each = [
        (
            mape(true[pair], found[pair]),
            log_rmse(true[pair], found[pair]),
            share_within(true[pair], found[pair], 0.10),
            share_within(true[pair], found[pair], 0.25),
        )
        for pair in chosen
    ]
    return _FoldScore(*(float(value) for value in np.mean(each, axis=0)))


def _summary(folds: Sequence[Fold], by_seed: Sequence[Sequence[_FoldScore]]) -> dict[str, object]:
    mapes = np.array([[score.mape for score in of_seed] for of_seed in by_seed])
    summary: dict[str, object] = {
        "mape": float(mapes.mean()),
        "mape_std": float(mapes.mean(axis=1).std()),
        "mape_median": float(np.median(mapes, axis=1).mean()),
    }
    for name in ("log_rmse", "within_10", "within_25"):
        summary[name] = float(np.mean([[getattr(score, name) for score in of_seed] for of_seed in by_seed]))
    summary["mape_by_fold"] = {
        fold.held_out: float(value) for fold, value in zip(folds, mapes.mean(axis=0), strict=True)
    }
    return summary
