"""The experiments of xAMM and further ones: which description of runs and machines predicts best.

Every method is fitted anew in every fold, with its scaler and its encoder. Methods that stand in several experiments
are fitted once. Folds are computed side by side, where the profile says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import PROTOCOLS, Fold
from perf_assets.features.samples import PairedSamples
from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.resume import Kept, NothingKept, Rows, resumed
from perf_assets.models.common.regressors import DOWNSTREAM
from perf_assets.models.source.blend import fold_predictions
from perf_assets.models.source.evaluation import scenario_scores
from perf_assets.models.source.methods import MethodFactory, possible
from perf_assets.models.source.tree_features import OTHER_AMM_OPTIONS, OTHER_EMBEDDINGS, fit_embedding

Progress = Callable[[str], None]

_DESCRIPTIONS = (
    "raw_xgboost",
    "onehot_xgboost",
    "spec_xgboost",
    "raw_amm_xgboost",
    "raw_amm_fleet_max_xgboost",
    "embedding_amm_xgboost",
    "raw_relative_amm_xgboost",
    "benchmark_mean",
    "anchored_xgboost",
    "anchored_spec_xgboost",
    "attention",
    "bilinear",
)
Experiments = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Protocol -> experiment -> methods."""
EXPERIMENTS: Experiments = {
    "loao": {
        "raw_vs_embedding_vs_amm": tuple(
            f"{described}_{trees}" for trees in DOWNSTREAM for described in ("raw", "embedding", "embedding_amm")
        ),
        "embeddings": (
            "raw_xgboost",
            "embedding_xgboost",
            *(f"embedding_{kind}_xgboost" for kind in OTHER_EMBEDDINGS),
        ),
        "amm_options": (
            "embedding_xgboost",
            "embedding_amm_xgboost",
            *(f"embedding_amm_{option}_xgboost" for option in OTHER_AMM_OPTIONS),
        ),
        "machine_descriptions": ("embedding_xgboost", *_DESCRIPTIONS, "best"),
    },
    "lomo": {"machine_descriptions": (*_DESCRIPTIONS, "mixture", "best")},
}
DEAR = ("best",)
"""Methods that are fitted with the first seed only: `best` fits its parts on folds of folds."""
_SHARED = ("attention",)
"""Methods that the costly ones fit anyway, and those that take longest: scored together with them."""

PICTURED = ("raw", "tabnet", *OTHER_EMBEDDINGS)
_STEPS = 500
"""Steps of t-SNE, half of the library's number: the pictures change little after them."""


@dataclass(frozen=True)
class _ExperimentTask:
    """Folds to be done by one process, with one factory."""

    protocol: str
    seed: int
    folds: tuple[int, ...]
    methods: tuple[str, ...]


def only(methods: Sequence[str]) -> Experiments:
    """Experiments with some of their methods; all where none is named."""
    known = {name for experiments in EXPERIMENTS.values() for names in experiments.values() for name in names}
    unknown = sorted(set(methods) - known)
    if unknown:
        raise BadInputError(f"method {unknown[0]} is in no experiment: choose from {', '.join(sorted(known))}")
    chosen = {
        protocol: {title: tuple(name for name in names if name in (methods or names)) for title, names in each.items()}
        for protocol, each in EXPERIMENTS.items()
    }
    return {protocol: {title: names for title, names in each.items() if names} for protocol, each in chosen.items()}


def run_experiments(
    samples: PairedSamples,
    seeds: int,
    progress: Progress,
    kept: Kept | None = None,
    experiments: Experiments = EXPERIMENTS,
) -> pd.DataFrame:
    """Scores of all experiments that these samples allow: columns of `eval_xamm__scores` without `is_simulated`.

    Folds that are `kept` of an interrupted run on the same samples are not fitted again.
    """
    rows: list[pd.DataFrame] = []
    planned = list(_plan(samples, seeds, experiments))
    for done, (work, scores) in enumerate(resumed(_do, samples, planned, kept or NothingKept()), 1):
        of_task = pd.DataFrame(scores)
        rows.append(of_task)
        whole = of_task[of_task["scenario"] == "all"].groupby("method", sort=False)["mape_ratio"].mean()
        shown = ", ".join(f"{name} {value:.0%}" for name, value in whole.items())
        held_out = ", ".join(dict.fromkeys(of_task["held_out"]))
        progress(f"{done} of {len(planned)}: {work.protocol} without {held_out}, seed {work.seed}: MAPE {shown}")
    return _by_experiment(pd.concat(rows), experiments)


def embedding_pictures(
    samples: PairedSamples,
    seed: int,
    progress: Progress = lambda line: None,
    kinds: Sequence[str] = PICTURED,
) -> pd.DataFrame:
    """t-SNE pictures of all embeddings of all runs: columns of `eval_xamm__embeddings` without `is_simulated`."""
    rows = []
    for (kind, _), points in side_by_side(_picture, samples, [(kind, seed) for kind in kinds]):
        rows.append(points)
        progress(f"{len(rows)} of {len(kinds)}: {len(points)} runs placed by their {kind} embedding")
    return pd.concat(rows).sort_values(["embedding", "machine", "configuration"], ignore_index=True)


def _plan(samples: PairedSamples, seeds: int, experiments: Experiments) -> Iterator[_ExperimentTask]:
    """Tasks of the experiments, the longest first."""
    folds = {protocol: tuple(range(len(list(PROTOCOLS[protocol](samples))))) for protocol in experiments}
    methods = {
        protocol: possible(dict.fromkeys(name for names in each.values() for name in names), samples)
        for protocol, each in experiments.items()
    }
    for protocol in sorted(methods, reverse=True):
        if set(DEAR) & set(methods[protocol]):
            chosen = tuple(name for name in methods[protocol] if name in (*_SHARED, *DEAR))
            yield _ExperimentTask(protocol, 0, folds[protocol], chosen)
    for seed in range(seeds):
        for protocol in experiments:
            left_out = (*_SHARED, *DEAR) if seed == 0 and set(DEAR) & set(methods[protocol]) else DEAR
            chosen = tuple(name for name in methods[protocol] if name not in left_out)
            if chosen:
                yield from (_ExperimentTask(protocol, seed, (fold,), chosen) for fold in folds[protocol])


def _do(samples: PairedSamples, work: _ExperimentTask) -> Rows:
    """A row per fold, method and scenario."""
    factory = MethodFactory(work.seed)
    folds = list(PROTOCOLS[work.protocol](samples))
    return [
        {**row, "protocol": work.protocol, "seed": work.seed}
        for fold in work.folds
        for row in _score(samples, folds[fold], work.methods, factory)
    ]


def _score(
    samples: PairedSamples, fold: Fold, methods: Sequence[str], factory: MethodFactory
) -> Iterator[dict[str, str | float | int]]:
    answers = fold_predictions(samples, fold, methods, partial(factory.fit, unseen=fold.unseen))
    for name, predicted in answers.items():
        for score in scenario_scores(samples, fold.test, predicted):
            yield {"method": name, "held_out": fold.held_out, **score}


def _by_experiment(scores: pd.DataFrame, experiments: Experiments) -> pd.DataFrame:
    """Put a method into each experiment that it belongs to."""
    places = pd.DataFrame(
        [
            (protocol, experiment, number, name)
            for protocol, each in experiments.items()
            for experiment, names in each.items()
            for number, name in enumerate(names)
        ],
        columns=["protocol", "experiment", "number", "method"],
    )
    placed = places.merge(scores, on=["protocol", "method"])
    order = ["experiment", "protocol", "number", "held_out", "scenario", "seed"]
    return placed.sort_values(order, ignore_index=True).drop(columns="number")


def _picture(samples: PairedSamples, kind_and_seed: tuple[str, int]) -> pd.DataFrame:
    from sklearn.manifold import TSNE

    kind, seed = kind_and_seed
    machine, row = np.nonzero(np.isfinite(samples.log_seconds) & ~samples.is_benchmark[None])
    embedded = fit_embedding(samples, seed, kind)
    vectors = embedded.embedding.transform(embedded.scaler.transform(samples.counters[machine, row]))
    vectors = (vectors - vectors.mean(axis=0)) / (vectors.std(axis=0) + 1e-9)
    # A picture needs more points than neighbours that a point looks at.
    places = TSNE(
        2, perplexity=min(30.0, (len(row) - 1) / 3), max_iter=_STEPS, init="pca", random_state=seed
    ).fit_transform(vectors)
    return pd.DataFrame(
        {
            "embedding": kind,
            "machine": [samples.machines[m] for m in machine],
            "configuration": [samples.configurations[r] for r in row],
            "app": samples.apps[row],
            "x": places[:, 0].astype(float),
            "y": places[:, 1].astype(float),
        }
    )
