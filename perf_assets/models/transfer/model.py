"""The average of few-shot transfer: functions of the sources and the shots, weighted by evidence.

Where source and target share features, the sources enter through their functions and their metric. Where no source
function is usable, an alignment (M_A) through the source's net is one more function; the shots see only what it says of
shots that it was not fitted on. What remains is the process of the average: M_R.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import folds_of
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.features.tables.unpaired import shot_scaler, standardised_logs
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.averaged_gp import SOURCE_FUNCTIONS, AveragedGp, AverageSettings, Inputs
from perf_assets.models.common.conformal import Interval, cross_conformal
from perf_assets.models.common.severity import Severity, transfer_severity
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.transfer.alignment import Aligned
from perf_assets.models.transfer.source_functions import SourceGroup
from perf_assets.models.transfer.task import TransferTask

LEAST_SHOTS = 4
_SHOTS_TO_ALIGN = range(30, 101)
"""Numbers of shots with which features of other names are aligned: fewer do not show which is which, and with more of
them the target's own rows say more than a source through a map."""
_LEAST_KNOWN = 0.1
"""Share of the variance of its own held-out rows that a source's net must explain to be aligned to."""
_ALIGNMENT = "transport"
"""Start of an alignment where no name is shared."""
_FOLDS, _FEW_SHOTS = 5, 20
"""Folds of what is fitted to the shots; twice as many up to `_FEW_SHOTS` shots."""
_ROWS_AT_ONCE = 512
"""Rows that are predicted at once: what is computed from them stays in the processor's cache."""

Predict = Callable[[Indices], Floats]


class TransferCandidate(Protocol):
    """A model of the target's rows that is fitted to shots, from outside of this module."""

    @property
    def name(self) -> str:
        """Unique name of the candidate."""

    def fit(self, shots: Indices, seed: int) -> Predict:
        """Learn from shots (row numbers); the result predicts the target of rows."""


@dataclass(frozen=True, eq=False)
class TargetFeatures:
    """Rows of the target as the average sees them."""

    scaler: Scaler
    """Standardisation of the target's features, by the shots."""
    groups: tuple[SourceGroup, ...]
    """Sources that share features with the target."""
    aligned: Aligned | None = None
    """Alignment (M_A); None where some source function is used, or the shots are not 30 to 100."""

    def inputs(self, counters: Floats) -> Inputs:
        """Spaces and functions of rows x features as measured."""
        logs = signed_log(counters)
        spaces, functions = [standardised_logs(self.scaler, logs)], [np.empty((len(counters), 0))]
        for group in self.groups:
            shared = group.inputs(logs)
            spaces.append(group.space(shared))
            functions.append(group.expected(shared))
        if self.aligned is not None:
            functions.append(self.aligned.predict(counters)[:, None])
        return Inputs(tuple(spaces), np.hstack(functions))


@dataclass(frozen=True, eq=False)
class TransferAverage(Stored):
    """The fitted average over uses of the sources, in plain arrays, with the grounds on which it stands."""

    process: AveragedGp
    features: TargetFeatures
    counter_names: tuple[str, ...]
    """Target features, in the order in which rows give them."""
    level_columns: Mapping[str, str]
    """Column of words by the name of its indicator."""
    is_log: bool
    """Whether it predicts the logarithm."""
    interval: Interval
    grounds: Mapping[str, Any]
    """Shares of the candidates, severity and number of shots, as JSON."""

    def predict(self, counters: Floats) -> Floats:
        """Target (its logarithm if `is_log`) of rows x features as measured."""
        keep_blas_to_one_thread()
        starts = range(0, max(len(counters), 1), _ROWS_AT_ONCE)
        batches = [
            self.process.predict(self.features.inputs(counters[start : start + _ROWS_AT_ONCE])) for start in starts
        ]
        return np.concatenate(batches)


@dataclass(frozen=True)
class UseOfSources:
    """Evidence of the shots for one way to use the sources, or to ignore them."""

    name: str
    """`target_only`, `source_metric` (features weighted as on the sources) or what provides functions."""
    error: float
    """Mean squared error on shots that were left out."""
    weight: float
    """Probability, given the shots."""


@dataclass(frozen=True, eq=False)
class Product:
    """Result of a fit to the shots: predicts rows, and holds the model where all of it can be stored."""

    candidates: tuple[UseOfSources, ...]
    """Best first."""
    predict_rows: Predict
    model: TransferAverage | None
    interval: Interval
    severity: Severity | None
    adapt_seconds: float

    @property
    def chosen(self) -> str:
        """The candidate with the largest evidence."""
        return max(self.candidates, key=lambda one: one.weight).name


def fit_product(
    task: TransferTask,
    shots: Indices,
    seed: int = 0,
    *,
    is_log: bool = True,
    extra: Sequence[TransferCandidate] = (),
    settings: AverageSettings | None = None,
) -> Product:
    """Fit the average of all candidates to the shots.

    `extra` are candidates from outside; a product that leans on one of them cannot be stored here.
    """
    if len(shots) < LEAST_SHOTS:
        raise BadInputError(f"{len(shots)} shots are too few to choose a model: give at least {LEAST_SHOTS}")
    if not np.ptp(task.target.target[shots]) > 0:
        # Held-out errors would all be 0, and so would the width of the interval.
        raise BadInputError(
            f"{task.target.name}: all {len(shots)} shots have the same value: they do not say what it depends on; "
            "give more of them"
        )
    keep_blas_to_one_thread()
    groups = task.groups
    started = time.perf_counter()
    table = task.target
    target, counters = table.target[shots], table.counters[shots]
    scaler = shot_scaler(counters, table.is_level)
    is_aligned = not groups and len(shots) in _SHOTS_TO_ALIGN and _knows_itself(task)
    believed = settings or AverageSettings()
    if is_aligned and not extra:
        believed = believed.of_aligned
    learned: list[TransferCandidate] = [*([AlignmentCandidate(task, _ALIGNMENT)] if is_aligned else []), *extra]
    rows = TargetFeatures(scaler, groups).inputs(counters)
    held_out = [held_out_shots(candidate, shots, seed)[:, None] for candidate in learned]
    process = AveragedGp.fit(Inputs(rows.spaces, np.hstack([rows.functions, *held_out])), target, believed)
    hard = transfer_severity(task, shots)
    interval = cross_conformal(process.held_out, target)
    candidates = _candidates(process, target, "+".join(one.name for one in learned))
    aligned = task.fit_alignment(_ALIGNMENT, shots) if is_aligned else None
    features = TargetFeatures(scaler, groups, aligned)
    outside = [candidate.fit(shots, seed) for candidate in extra]
    seconds = time.perf_counter() - started
    grounds = {
        "shots": len(shots),
        "sources": [source.name for source in task.sources],
        "candidates": [asdict(one) for one in candidates],
        "severity": asdict(hard) if hard else None,
        "adapt_seconds": seconds,
    }
    model = TransferAverage(
        process=process,
        features=features,
        counter_names=table.counter_names,
        level_columns=table.level_columns,
        is_log=is_log,
        interval=interval,
        grounds=grounds,
    )

    def predict_rows(asked: Indices) -> Floats:
        if not outside:
            return model.predict(table.counters[asked])
        seen = features.inputs(table.counters[asked])
        more = [predict(asked)[:, None] for predict in outside]
        return process.predict(Inputs(seen.spaces, np.hstack([seen.functions, *more])))

    return Product(
        candidates=candidates,
        predict_rows=predict_rows,
        model=None if outside else model,
        interval=interval,
        severity=hard,
        adapt_seconds=seconds,
    )


def _knows_itself(task: TransferTask) -> bool:
    return any(source.net.held_out_error < 1 - _LEAST_KNOWN for source in task.sources)


@dataclass(frozen=True)
class AlignmentCandidate:
    """M_A through the sources' nets."""

    task: TransferTask
    start: str
    """Kind of start: what features are taken for each other before any shot is seen."""
    name: str = "alignment"

    def fit(self, shots: Indices, seed: int) -> Predict:
        """Fit M_A to the shots."""
        aligned = self.task.fit_alignment(self.start, shots)
        return lambda rows: aligned.predict(self.task.target.counters[rows])


def held_out_shots(candidate: TransferCandidate, shots: Indices, seed: int) -> Floats:
    """Predictions of a candidate for shots that it was not fitted to."""
    predicted = np.empty(len(shots))
    for inside, outside in folds_of(len(shots), 2 * _FOLDS if len(shots) <= _FEW_SHOTS else _FOLDS, seed):
        predicted[outside] = candidate.fit(shots[inside], seed)(shots[outside])
    return predicted


def _candidates(process: AveragedGp, target: Floats, learned: str) -> tuple[UseOfSources, ...]:
    """Evidence of the shots for every kind of member; functions that are fitted to shots have their own name."""
    scores = []
    for kind, held_out in process.held_out_by_kind.items():
        name = learned if learned and kind == SOURCE_FUNCTIONS else kind
        scores.append(UseOfSources(name, float(np.mean((held_out - target) ** 2)), process.shares[kind]))
    return tuple(sorted(scores, key=lambda one: one.error))
