"""Transfer where runs on the target pair with runs on the source: the paired model as one more candidate."""

import time
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.features.tables.unpaired import TransferTable
from perf_assets.models.target.correction import fit_paired
from perf_assets.models.target.prior import Prior, possible_prior
from perf_assets.models.transfer.evaluation import Progress, Split, TransferEvaluation, evaluate_transfer, score
from perf_assets.models.transfer.model import LEAST_SHOTS, Predict
from perf_assets.models.transfer.task import TransferTask

_NEED_SHOTS = (
    *("ma", "ma_mr", "linear_probe", "fine_tune", "source_zero_shot"),
    *("target_ridge", "target_gp", "target_xgboost", "target_best", "oracle_100x", "oracle_all"),
)


@dataclass(frozen=True, eq=False)
class PairedCandidate:
    """Corrects predictions for the target from runs on the source and a prior from other machines."""

    samples: PairedSamples
    source: int
    target: int
    prior: Prior | None
    name: str = "paired"

    @classmethod
    def of(cls, samples: PairedSamples, source: int, target: int) -> "PairedCandidate":
        """Candidate with a prior if there are benchmark rows and other machines to learn it from."""
        return cls(samples, source, target, possible_prior(samples, target, source))

    def fit(self, shots: Indices, seed: int) -> Predict:
        """Learn from the shots, which are configurations; none are allowed."""
        model = fit_paired(self.samples, self.source, self.target, shots, seed, self.prior)
        return lambda rows: model.predict(self.samples, rows)


def paired_task(samples: PairedSamples, source: int, target: int) -> tuple[TransferTask, Indices]:
    """Transfer task for methods that do not pair, and the configurations that may be shots and test rows."""
    usable = ~samples.is_benchmark & np.isfinite(samples.log_seconds[[source, target]]).all(axis=0)
    if usable.sum() < 2:
        raise BadInputError(
            f"no two application runs are on both {samples.machines[source]} and {samples.machines[target]}"
        )
    names = samples.counter_names
    counters, target_values = samples.counters[target], samples.log_seconds[target]
    every = np.ones(len(target_values), bool)
    table = TransferTable(samples.machines[target], names, counters, target_values, every)
    return TransferTask.of([_table(samples, source, usable)], table), np.flatnonzero(usable)


def _table(samples: PairedSamples, machine: int, chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> TransferTable:
    counters: Floats = samples.counters[machine][chosen]
    return TransferTable(
        samples.machines[machine], samples.counter_names, counters, samples.log_seconds[machine][chosen], chosen
    )


def evaluate_paired_transfer(
    samples: PairedSamples,
    task: TransferTask,
    rows: Indices,
    shots: int,
    seeds: int,
    *,
    progress: Progress = lambda _: None,
) -> TransferEvaluation:
    """Score the transfer from machine 0 to the last, with the paired model among the candidates.

    With fewer shots than a choice needs, the paired model is the product.
    """
    candidate = PairedCandidate.of(samples, 0, len(samples.machines) - 1)
    if shots >= LEAST_SHOTS:
        return evaluate_transfer(task, shots, seeds, extra=[candidate], rows=rows, progress=progress)
    scores: dict[str, dict[str, list[float]]] = {}
    seconds, per_row = [], []
    for seed in range(seeds):
        split = Split.draw(rows, seed)
        started = time.perf_counter()
        predict = candidate.fit(split.shots(shots), seed)
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
        predicted = predict(split.test)
        per_row.append((time.perf_counter() - started) / len(split.test))
        scored = score(task.target.target[split.test], predicted, is_log=True)
        for name in ("product", "paired"):
            for metric, value in scored.items():
                scores.setdefault(name, {}).setdefault(metric, []).append(value)
        progress(f"{task.target.name}, {shots} shots, seed {seed}: MAPE {scored['mape']:.1%} (paired)")
    absent = dict.fromkeys(_NEED_SHOTS, f"needs at least {LEAST_SHOTS} shots")
    chosen = ["paired"] * seeds
    return TransferEvaluation(
        shots=shots,
        seeds=list(range(seeds)),
        scores=scores,
        absent=absent,
        chosen=chosen,
        coverage=[],
        severity=[],
        adapt_seconds=float(np.median(seconds)),
        predict_seconds_per_row=float(np.median(per_row)),
        products=[],
    )
