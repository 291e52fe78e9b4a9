"""Scores of all methods on held-out configurations and on held-out applications, side by side on the same rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.vectors import ALL_APPS
from perf_assets.core.vector_settings import COMPONENTS, VectorSettings
from perf_assets.features.folds import Unseen
from perf_assets.features.samples import Floats
from perf_assets.features.vectors import (
    VectorFold,
    VectorSamples,
    by_application,
    by_sample,
    check_reference,
    relative,
)
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.vectors.blend import fit_blend
from perf_assets.models.vectors.methods import MAJORITY, MEAN, Majority, fit_method
from perf_assets.models.vectors.scores import (
    OWN_DOUBTS,
    Held,
    doubt_scores,
    majority_gap,
    same_orders,
    vector_scores,
)

BEST = "best"
_TYPICAL = "typical order"
METHODS = (*COMPONENTS, MAJORITY, MEAN, BEST)
PROTOCOLS: dict[str, Unseen | None] = {"sample": None, "app": "application"}
"""Unknown part in each protocol: only the configuration, or the whole application."""
COLUMN_OF = {name: f"{name}_ratio" for name in ("mae", "mape", "same_order", "top1", "regret", "auc", *OWN_DOUBTS)}
"""Scores that are ratios, as columns of a table."""
_COLUMNS = {"r2": "r2", "r2_per_machine": "r2_per_machine", **COLUMN_OF}
Progress = Callable[[str], None]
Scores = dict[str, dict[str, dict[str, object]]]


@dataclass(frozen=True)
class VectorEvaluation:
    """Scores, and the rows behind them."""

    scores: Scores
    """Protocol -> method -> scores: means over seeds; `_std` is the spread over seeds."""
    table: pd.DataFrame
    """Scores by protocol, method, seed and application: rows of `eval_vector__scores`."""
    rows: pd.DataFrame
    """One row per protocol, seed, method and held-out sample, and what is drawn of it."""
    entries: pd.DataFrame
    """One row per entry of the held-out vectors of the first seed."""
    vectors: pd.DataFrame
    """One row per configuration and machine it ran on: its true relative time."""


@dataclass(frozen=True)
class _VectorTask:
    protocol: str
    seed: int
    position: int
    """Position of the fold."""
    methods: tuple[str, ...]
    reference: str
    settings: VectorSettings


@dataclass(frozen=True)
class _Found:
    """Scores of one fold."""

    configurations: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    predicted: dict[str, Floats]
    ranked: dict[str, Floats]
    probability: Floats
    """Probability that the order of `best` is right; NaN without it."""
    half_widths: Floats
    """Samples x machines: of the intervals of `best`, in log; NaN without it."""


def evaluate_vectors(
    samples: VectorSamples,
    reference: str,
    seeds: int,
    settings: VectorSettings,
    methods: Sequence[str] | None = None,
    protocols: Iterable[str] = tuple(PROTOCOLS),
    progress: Progress = lambda _: None,
) -> VectorEvaluation:
    """Run the protocols. Scores of a seed are of all its folds together, so that every held-out sample counts once.

    Methods are those given, or the components of the settings, the majority order, the mean vector and their blend.
    """
    methods = (*settings.components, MAJORITY, MEAN, BEST) if methods is None else methods
    check_reference(reference, samples.machines)
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise BadInputError(f"method {', '.join(unknown) or '(none)'} is not known: use some of {', '.join(METHODS)}")
    names = tuple(protocols)
    pieces = [
        _VectorTask(
            protocol=protocol,
            seed=seed,
            position=position,
            methods=tuple(methods),
            reference=reference,
            settings=settings,
        )
        for protocol in names
        for seed in range(seeds)
        for position in range(len(_folds(samples, protocol, seed)))
    ]
    by_fold: dict[tuple[str, int], list[_Found]] = {}
    for piece, result in side_by_side(_predict_fold, samples, pieces):
        by_fold.setdefault((piece.protocol, piece.seed), []).append(result)
        done = sum(map(len, by_fold.values()))
        held_out = _folds(samples, piece.protocol, piece.seed)[piece.position].held_out
        progress(f"{piece.protocol}, seed {piece.seed}, without {held_out}: {done} of {len(pieces)}")
    rows = [
        _rows(samples, protocol, seed, by_fold[protocol, seed], method, reference)
        for protocol in names
        for seed in range(seeds)
        for method in methods
    ]
    table = pd.concat(
        [
            _table(samples, by_fold[protocol, seed], method, reference).assign(
                protocol=protocol, method=method, seed=seed
            )
            for protocol in names
            for seed in range(seeds)
            for method in methods
        ],
        ignore_index=True,
    ).assign(relative_to=reference)
    scores: Scores = {p: {m: _summary(table, p, m) for m in methods} for p in names}
    entries = [_entries(samples, p, by_fold[p, 0], m, reference) for p in names for m in methods]
    return VectorEvaluation(
        scores,
        table,
        pd.concat(rows, ignore_index=True),
        pd.concat(entries, ignore_index=True),
        _vectors(samples, reference),
    )


def majority_order(samples: VectorSamples) -> tuple[list[str], float]:
    """Machines from fast to slow in the most frequent order of all configurations, and the share that has it."""
    majority = Majority.fit(samples)
    everywhere = majority.typical(np.ones((1, len(samples.machines)), bool))[0]
    holds = same_orders(majority.typical(np.isfinite(samples.log_seconds)), samples.log_seconds)
    order = np.argsort(everywhere, kind="stable")
    return [samples.machines[machine] for machine in order], float(holds.mean())


def _folds(samples: VectorSamples, protocol: str, seed: int) -> list[VectorFold]:
    return list(by_sample(samples, seed) if protocol == "sample" else by_application(samples))


def _predict_fold(samples: VectorSamples, piece: _VectorTask) -> _Found:
    fold = _folds(samples, piece.protocol, piece.seed)[piece.position]
    train, test = samples.at(fold.train), samples.at(fold.test)
    fitted = {name: fit_method(name, train, piece.seed, piece.settings) for name in piece.methods if name != BEST}
    predicted = {name: model.predict(test) for name, model in fitted.items()}
    ranked = dict(predicted)
    probability = np.full(len(test), np.nan)
    half_widths = np.full(test.targets.shape, np.nan)
    if BEST in piece.methods:
        blend = fit_blend(train, PROTOCOLS[piece.protocol], piece.seed, piece.settings, fitted)
        predicted[BEST] = blend.predict(test)
        ranking = blend.rank(test, np.isfinite(test.targets))
        ranked[BEST], probability = ranking.places, ranking.probability
        half_widths = np.broadcast_to(blend.half_widths(piece.reference, samples.machines), test.targets.shape)
    predicted[_TYPICAL] = Majority.fit(train).predict(test)
    return _Found(fold.test, predicted, ranked, probability, half_widths)


def _held(samples: VectorSamples, answers: Sequence[_Found], method: str) -> Held:
    true = [samples.at(fold.configurations).targets for fold in answers]
    majority = [fold.predicted[_TYPICAL] for fold in answers]
    return Held(
        np.vstack(true),
        np.vstack([fold.predicted[method] for fold in answers]),
        np.vstack([fold.ranked[method] for fold in answers]),
        np.vstack(majority),
        same_orders(np.vstack(majority), np.vstack(true)),
    )


def _table(samples: VectorSamples, answers: Sequence[_Found], method: str, reference: str) -> pd.DataFrame:
    """Scores of all held-out samples together, and of each application."""
    held = _held(samples, answers, method)
    apps = np.concatenate([part.apps[part.row] for part in (samples.at(fold.configurations) for fold in answers)])
    probability = np.concatenate([fold.probability for fold in answers])
    half_widths = np.vstack([fold.half_widths for fold in answers])
    rows = []
    for app in (ALL_APPS, *sorted(set(apps.tolist()))):
        chosen = np.ones(len(apps), bool) if app == ALL_APPS else apps == app
        part = Held(*(values[chosen] for values in vars(held).values()))
        scores = vector_scores(part, reference, samples.machines) | dict.fromkeys(OWN_DOUBTS, float("nan"))
        if method == BEST:
            scores |= doubt_scores(part, half_widths[chosen], probability[chosen], reference, samples.machines)
        rows.append({"app": app, "samples_count": int(chosen.sum()), **scores})
    return pd.DataFrame(rows).rename(columns=COLUMN_OF)


def _summary(table: pd.DataFrame, protocol: str, method: str) -> dict[str, object]:
    """Means over seeds of all applications, and their spread."""
    here = table[(table["protocol"] == protocol) & (table["method"] == method)]
    each = here[here["app"] == ALL_APPS]
    summary: dict[str, object] = {name: float(each[column].mean()) for name, column in _COLUMNS.items()}
    summary |= {f"{name}_std": float(each[_COLUMNS[name]].std(ddof=0)) for name in ("r2", "same_order")}
    by_app = here[here["app"] != ALL_APPS].groupby("app")[["same_order_ratio", "regret_ratio", "mape_ratio"]].mean()
    summary["by_app"] = {
        str(app): {str(name).removesuffix("_ratio"): float(value) for name, value in row.items()}
        for app, row in by_app.to_dict("index").items()
    }
    return summary


def _rows(
    samples: VectorSamples, protocol: str, seed: int, answers: Sequence[_Found], method: str, reference: str
) -> pd.DataFrame:
    held = _held(samples, answers, method)
    parts = [samples.at(fold.configurations) for fold in answers]
    ran = np.isfinite(held.log_seconds)
    predicted = np.where(ran, held.predicted, np.nan)
    chosen = np.where(ran, held.ranked, np.inf).argmin(axis=1)
    extra = np.expm1(held.log_seconds[np.arange(len(chosen)), chosen] - np.nanmin(held.log_seconds, axis=1))
    probability = np.full(len(chosen), np.nan)
    if method == BEST:
        probability = np.concatenate([fold.probability for fold in answers])
    found_times, true_times = (relative(x, reference, samples.machines) for x in (predicted, held.log_seconds))
    errors = np.abs(found_times - true_times)
    known = np.isfinite(errors).sum(axis=1)
    return pd.DataFrame(
        {
            "protocol": protocol,
            "seed": seed,
            "method": method,
            "machine": np.concatenate([np.array(part.machines)[part.source] for part in parts]),
            "app": np.concatenate([part.apps[part.row] for part in parts]),
            "configuration": np.concatenate([np.array(part.configurations)[part.row] for part in parts]),
            "absolute_error": np.where(known > 0, np.nansum(errors, axis=1) / np.maximum(known, 1), np.nan),
            "is_same_order": same_orders(held.ranked, held.log_seconds),
            "regret_ratio": extra,
            "majority_gap": majority_gap(predicted, held.majority),
            "is_majority_order": held.majority_holds,
            "order_probability": probability,
        }
    )


def _entries(
    samples: VectorSamples, protocol: str, answers: Sequence[_Found], method: str, reference: str
) -> pd.DataFrame:
    held = _held(samples, answers, method)
    true = relative(held.log_seconds, reference, samples.machines)
    predicted = relative(np.where(np.isfinite(true), held.predicted, np.nan), reference, samples.machines)
    row, machine = np.nonzero(np.isfinite(true) & np.isfinite(predicted))
    parts = [samples.at(fold.configurations) for fold in answers]
    return pd.DataFrame(
        {
            "protocol": protocol,
            "method": method,
            "app": np.concatenate([part.apps[part.row] for part in parts])[row],
            "target_machine": np.array(samples.machines)[machine],
            "relative_time": true[row, machine],
            "predicted_relative_time": predicted[row, machine],
        }
    )


def _vectors(samples: VectorSamples, reference: str) -> pd.DataFrame:
    true = relative(samples.log_seconds, reference, samples.machines)
    row, machine = np.nonzero(np.isfinite(true))
    return pd.DataFrame(
        {
            "configuration": np.array(samples.configurations)[row],
            "app": samples.apps[row],
            "target_machine": np.array(samples.machines)[machine],
            "relative_time": true[row, machine],
        }
    )
