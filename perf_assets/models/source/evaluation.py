"""Scores of methods side by side, on folds that hide an application or a machine."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from perf_assets.features.folds import PROTOCOLS, Fold
from perf_assets.features.samples import PairedSamples
from perf_assets.models.source.methods import Workshop, check_method
from perf_assets.models.source.scenarios import mean_over_pairs

Progress = Callable[[str], None]
_Scores = dict[str, float]


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
    scores: dict[str, list[list[_Scores]]] = {name: [] for name in methods}
    for seed in range(seeds):
        workshop = Workshop(seed)
        of_seed: dict[str, list[_Scores]] = {name: [] for name in methods}
        for fold in folds:
            train = fold.train
            for name in methods:
                predictor = workshop.fit(name, train, fold.unseen)
                of_seed[name].append(mean_over_pairs(samples, fold.test, predictor.predict(samples, fold.test)))
            shown = ", ".join(f"{name} {of_seed[name][-1]['mape_ratio']:.1%}" for name in methods)
            progress(f"{protocol} without {fold.held_out}, seed {seed}: {shown}")
        for name in methods:
            scores[name].append(of_seed[name])
    return {name: _summary(folds, by_seed) for name, by_seed in scores.items()}


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
