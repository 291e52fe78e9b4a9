"""Few-shot transfer scored over seeds: every method beside its baselines, on the same shots and the same test rows."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.tables.unpaired import TransferTable
from perf_assets.models.transfer.baselines import (
    TARGET_ONLY,
    source_baselines,
    supervised,
    target_baselines,
)
from perf_assets.models.transfer.model import Predict, Product, TransferCandidate, fit_product
from perf_assets.models.transfer.task import TransferTask

Progress = Callable[[str], None]
ZERO_SHOT = ("source_zero_shot",)
"""The one use of sources that takes next to no time."""
_ORACLES = ("oracle_100x", "oracle_all")
_MOST_PLAIN = 700.0
"""Logarithms beyond which a number of the machine overflows."""
_MOST_KEPT = 64
"""Predictions of supervised models that are kept: they are the same for all sources of a target."""


class UniformShotsError(BadInputError):
    """Shots of every draw have one value only, which says nothing of what it depends on."""


@dataclass(frozen=True)
class Split:
    """Rows of the target for one seed: shots are drawn from the pool, and no test row is in the pool."""

    pool: Indices
    test: Indices

    @classmethod
    def draw(cls, rows: Indices, seed: int) -> "Split":
        """Half of the rows are test rows."""
        order = np.random.default_rng(seed).permutation(rows)
        return cls(order[: len(order) // 2], order[len(order) // 2 :])

    def shots(self, count: int) -> Indices:
        """The first of the pool: fewer shots are part of more."""
        if count > len(self.pool):
            raise BadInputError(f"{count} shots are more than half of the target's rows ({len(self.pool)})")
        return self.pool[:count]


@dataclass(frozen=True, eq=False)
class TransferEvaluation:
    """Scores by method and metric, one value per seed."""

    shots: int
    seeds: list[int]
    """Draws that are scored: those whose shots differ in what is to be predicted."""
    scores: dict[str, dict[str, list[float]]]
    absent: dict[str, str]
    """Reason why a method has no score."""
    chosen: list[str]
    """The likeliest candidate, per seed."""
    coverage: list[float]
    """Share of test rows inside the product's 90% interval."""
    severity: list[float]
    """Rescaled severity, where it could be measured."""
    adapt_seconds: float
    """Median over seeds: from shots to a chosen and fitted model, source models given."""
    predict_seconds_per_row: float
    products: list[Product] = field(repr=False)

    @property
    def target_best(self) -> str | None:
        """The target-only method with the smallest mean log error on the test rows, in hindsight."""
        names = [name for name in self.scores if name.startswith(TARGET_ONLY)]
        return min(names, key=lambda name: float(np.mean(self.scores[name]["log_mse"])), default=None)

    @property
    def candidates(self) -> list[dict[str, str | float]]:
        """Mean held-out error on the shots and mean weight over seeds of every candidate, best first."""
        by_name: dict[str, list[tuple[float, float]]] = {}
        for product in self.products:
            for one in product.candidates:
                by_name.setdefault(one.name, []).append((one.error, one.weight))
        means = {name: np.mean(values, axis=0) for name, values in by_name.items()}
        best_first = sorted(means, key=lambda name: float(means[name][0]))
        return [{"name": n, "held_out_error": float(means[n][0]), "weight": float(means[n][1])} for n in best_first]

    def ratio(self, method: str = "product", to: str | None = None) -> float:
        """Mean squared log error relative to that of another method, by default the best target-only one."""
        reference = to or self.target_best
        assert reference is not None, "no shots, no target-only method"
        other = self.scores[reference]["log_mse"]
        return float(np.mean(self.scores[method]["log_mse"]) / np.mean(other))


def evaluate_transfer(
    task: TransferTask,
    shots: int,
    seeds: int = 10,
    *,
    is_log: bool = True,
    methods: Collection[str] | None = None,
    extra: Sequence[TransferCandidate] = (),
    rows: Indices | None = None,
    progress: Progress = lambda _: None,
) -> TransferEvaluation:
    """Fit and score all methods; `rows` are those of the target that may be shots and test rows (all).

    `methods` are the uses of sources and the supervised models to score (all), which take most of the time; the product
    and the target-only baselines always are. Draws whose shots all have the same value are left out.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    scored, coverage, severities, seconds, per_row, products = [], [], [], [], [], []
    baselines, absent = source_baselines(task)
    if methods is not None:
        absent |= {name: "not asked for" for name in (*baselines, *_ORACLES) if name not in methods}
        baselines = {name: fit for name, fit in baselines.items() if name not in absent}
    baselines |= target_baselines(task.target) | {one.name: one.fit for one in extra}
    every = np.arange(len(task.target)) if rows is None else rows
    for seed in range(seeds):
        split = Split.draw(every, seed)
        few = split.shots(shots)
        if not np.ptp(task.target.target[few]) > 0:
            progress(f"{task.target.name}: draw {seed} is left out: its {len(few)} shots all have the same value")
            continue
        scored.append(seed)
        product = fit_product(task, few, seed, is_log=is_log, extra=extra)
        fits: dict[str, Predict] = {"product": product.predict_rows}
        fits |= {name: fit(few, seed) for name, fit in baselines.items()}
        fits |= {name: _oracle(task.target, split, shots, name, seed) for name in _ORACLES if name not in absent}
        true = task.target.target[split.test]
        for name, predict in fits.items():
            started = time.perf_counter()
            predicted = predict(split.test)
            if name == "product":
                per_row.append((time.perf_counter() - started) / len(split.test))
                coverage.append(product.interval.coverage(predicted, true))
            _add(scores.setdefault(name, {}), score(true, predicted, is_log=is_log))
        severities += [product.severity.rescaled] if product.severity else []
        seconds.append(product.adapt_seconds)
        products.append(product)
        progress(_line(task, seed, shots, scores, product))
    if not scored:
        raise UniformShotsError(
            f"{task.target.name}: the {shots} shots of each of {seeds} draws have the same value: give more shots"
        )
    return TransferEvaluation(
        shots=shots,
        seeds=scored,
        scores=scores,
        absent=absent,
        chosen=[product.chosen for product in products],
        coverage=coverage,
        severity=severities,
        adapt_seconds=float(np.median(seconds)),
        predict_seconds_per_row=float(np.median(per_row)),
        products=products,
    )


def score(true: Floats, predicted: Floats, *, is_log: bool) -> dict[str, float]:
    """MAPE (a ratio) and mean squared error of the plain target, mean squared error and R2 of what is predicted.

    `log_mse` is that of the logarithm, or of the target itself where it is predicted plain.
    """
    plain = (
        np.exp(np.clip(np.stack([true, predicted]), -_MOST_PLAIN, _MOST_PLAIN))
        if is_log
        else np.stack([true, predicted])
    )
    errors = plain[1] - plain[0]
    squares = (predicted - true) ** 2
    return {
        "mape": float(np.mean(np.abs(errors) / np.maximum(np.abs(plain[0]), 1e-12))),
        "mse": float(np.mean(np.minimum(np.abs(errors), 1e150) ** 2)),
        "log_mse": float(np.mean(squares)),
        "r2": float(1 - squares.sum() / max(float(np.sum((true - true.mean()) ** 2)), 1e-12)),
    }


def _add(scores: dict[str, list[float]], metrics: dict[str, float]) -> None:
    for metric, value in metrics.items():
        scores.setdefault(metric, []).append(value)


def _oracle(target: TransferTable, split: Split, shots: int, name: str, seed: int) -> Predict:
    count = 100 * shots if name == "oracle_100x" else len(split.pool)
    predicted = _supervised(target, split.pool[:count].tobytes(), split.test.tobytes(), seed)
    return lambda _: predicted


@lru_cache(_MOST_KEPT)
def _supervised(target: TransferTable, rows: bytes, test: bytes, seed: int) -> Floats:
    return supervised(target, np.frombuffer(rows, np.intp), seed)(np.frombuffer(test, np.intp))


def _line(
    task: TransferTask, seed: int, shots: int, scores: dict[str, dict[str, list[float]]], product: Product
) -> str:
    best = min((s["log_mse"][-1], name) for name, s in scores.items() if name.startswith(TARGET_ONLY))
    return (
        f"{task.target.name}, {shots} shots, seed {seed}: squared log error {scores['product']['log_mse'][-1]:.4g} "
        f"({product.chosen}), best target-only {best[0]:.4g} ({best[1]})"
    )
