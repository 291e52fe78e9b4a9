"""Scores of methods side by side, on folds that hide an application or a machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd

from perf_assets.features.fleet.samples import uses_device
from perf_assets.features.folds import PROTOCOLS, Fold
from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.source.blend import fold_predictions
from perf_assets.models.source.methods import MethodFactory, check_method

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
        factory = MethodFactory(seed)
        of_seed: dict[str, list[_Scores]] = {name: [] for name in methods}
        for fold in folds:
            fit = partial(factory.fit, unseen=fold.unseen)
            for name, predicted in fold_predictions(samples, fold, methods, fit).items():
                of_seed[name].append(mean_over_pairs(samples, fold.test, predicted))
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
