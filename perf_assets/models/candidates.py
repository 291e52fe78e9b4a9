"""The candidates for a target model of one transfer, from the simplest on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np

from perf_assets.features.paired import Floats, Indices
from perf_assets.features.transfer_tables import TransferTable, shot_scaler
from perf_assets.models.alignment import Alignment
from perf_assets.models.alignment_starts import Start, by_transport, label_conditional, matched
from perf_assets.models.fitted import Aligned, Fitted, Rows, TargetOnly
from perf_assets.models.residual import fit_corrected, fit_probed
from perf_assets.models.small_models import FIT_SMALL
from perf_assets.models.source_models import Source

_LEAST_WEIGHT = 0.05
"""Of a source, relative to all: those below are left out."""
_ENOUGH_FOR_MAPS = 30
_ENOUGH_FOR_TREES, _ENOUGH_FOR_BOOSTING = 20, 60
"""Shots below which trees and nearest neighbours are worthless, and the gate does not ask them."""
_FEW_MATCHES = 0.5
"""Share of a source's counters below which matching names are not relied on alone."""

_MOST_RECENT = 32
"""Alignments and starts that are kept: those of a fold and of folds inside it."""

T = TypeVar("T")
FitModel = Callable[[Indices, int], Fitted]
Predict = Callable[[Indices], Floats]


class Candidate(Protocol):
    """A way to get a target model from shots, which are row numbers of the target's samples."""

    @property
    def name(self) -> str:
        """Unique."""

    @property
    def rank(self) -> int:
        """Lower is simpler; ties go to it."""

    def fit(self, shots: Indices, seed: int) -> Predict:
        """Learn from the shots; the result predicts the target of rows."""


@dataclass(frozen=True)
class TableCandidate:
    """A candidate that looks at the target's counters only, so that its model can be stored and asked anything."""

    name: str
    rank: int
    fit_model: FitModel
    counters: Floats
    least_shots: int = 2

    def fit(self, shots: Indices, seed: int) -> Predict:
        """Learn from the shots; the result predicts the target of rows."""
        model = self.fit_model(shots, seed)
        return lambda rows: model.predict(Rows(self.counters[rows]))


class _Recent(Generic[T]):
    """What was made last: several candidates of a fold start from the same."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], T] = {}

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """Made now, or not long ago."""
        if key not in self._made:
            if len(self._made) >= _MOST_RECENT:
                self._made.pop(next(iter(self._made)))
            self._made[key] = make()
        return self._made[key]


@dataclass(frozen=True, eq=False)
class TransferTask:
    """From which sources to which target, and which counters are the same."""

    sources: tuple[Source, ...]
    target: TransferTable
    same: tuple[Mapping[str, str], ...]
    """For each source: its counter by target counter."""

    def starts(self, kind: str, shots: Indices) -> list[Start | None]:
        """A start for each source; None where it has none of this kind."""
        counters, target = self.target.counters[shots], self.target.target[shots]
        if kind == "matched":
            return self._matched
        make = label_conditional if kind == "label" else by_transport
        return self._starts.once(
            (kind, shots.tobytes()), lambda: [make(source.rows, counters, target) for source in self.sources]
        )

    @cached_property
    def _matched(self) -> list[Start | None]:
        names = self.target.counter_names
        return [matched(source.rows, names, same) for source, same in zip(self.sources, self.same, strict=True)]

    @property
    def start_kinds(self) -> tuple[str, ...]:
        """Starts worth trying: values only count where few names match."""
        shares = [
            len(same) / len(source.rows.counter_names) for source, same in zip(self.sources, self.same, strict=True)
        ]
        if max(shares, default=0.0) >= _FEW_MATCHES:
            return ("matched",)
        return ("matched", "transport", "label") if any(self.same) else ("transport", "label")

    def fit_alignment(self, kind: str, shots: Indices, *, is_fixed: bool = False) -> Aligned:
        """M_A on the shots through every source that has such a start; likelier ones count more."""
        key = (kind, shots.tobytes(), is_fixed)
        return self._alignments.once(key, lambda: self._fit_alignment(kind, shots, is_fixed=is_fixed))

    @cached_property
    def _starts(self) -> "_Recent[list[Start | None]]":
        return _Recent()

    @cached_property
    def _alignments(self) -> "_Recent[Aligned]":
        return _Recent()

    def _fit_alignment(self, kind: str, shots: Indices, *, is_fixed: bool) -> Aligned:
        counters, target = self.target.counters[shots], self.target.target[shots]
        parts = []
        for source, start in zip(self.sources, self.starts(kind, shots), strict=True):
            if start is not None:
                parts.append(Alignment.fit(source.net, start, counters, target, is_fixed=is_fixed))
        evidence = np.array([part.evidence for part in parts])
        weights = np.exp(evidence - evidence.max())
        weights = np.where(weights < _LEAST_WEIGHT * weights.sum(), 0, weights)
        chosen = np.flatnonzero(weights)
        return Aligned(tuple(parts[i] for i in chosen), weights[chosen] / weights.sum())


def target_only_candidates(target: TransferTable, names: Sequence[str] = tuple(FIT_SMALL)) -> list[TableCandidate]:
    """Models that look at the shots only."""

    def fit_model(name: str) -> FitModel:
        def fit(shots: Indices, seed: int) -> Fitted:
            scaler = shot_scaler(target.counters[shots])
            inputs = Rows(target.counters[shots]).scaled(scaler)
            return TargetOnly(scaler, FIT_SMALL[name](inputs, target.target[shots], seed))

        return fit

    least = {"knn": _ENOUGH_FOR_TREES, "extra_trees": _ENOUGH_FOR_TREES, "xgboost": _ENOUGH_FOR_BOOSTING}
    return [
        TableCandidate(f"target_{name}", 10 * rank, fit_model(name), target.counters, least.get(name, 2))
        for rank, name in enumerate(FIT_SMALL)
        if name in names
    ]


def transfer_candidates(task: TransferTask) -> list[TableCandidate]:
    """Models that also look at the sources."""
    found = []
    for position, kind in enumerate(task.start_kinds):
        suffix = "" if position == 0 else f"_{kind}"
        for name, rank, fit_model in (
            ("source_zero_shot", 5, _zero_shot(task, kind)),
            ("ma", 15, _aligned(task, kind)),
            ("source_probe", 22, _probed(task, kind)),
            ("source_mr", 25, _corrected(task, kind, is_fixed=True)),
            ("ma_mr", 35, _corrected(task, kind, is_fixed=False)),
        ):
            is_wanted = {"source_zero_shot": kind == "matched", "ma": True}.get(name, kind != "label")
            if is_wanted:
                # A map that was read off few shots extrapolates, and they do not show it.
                is_read_off = kind == "label" or (kind == "transport" and name == "ma_mr")
                least = _ENOUGH_FOR_MAPS if is_read_off else 2
                found.append(TableCandidate(name + suffix, rank + position, fit_model, task.target.counters, least))
    return found


def _zero_shot(task: TransferTask, kind: str) -> FitModel:
    return lambda shots, seed: task.fit_alignment(kind, shots, is_fixed=True)


def _aligned(task: TransferTask, kind: str) -> FitModel:
    return lambda shots, seed: task.fit_alignment(kind, shots)


def _probed(task: TransferTask, kind: str) -> FitModel:
    def fit(shots: Indices, seed: int) -> Fitted:
        base = task.fit_alignment(kind, shots, is_fixed=True)
        return fit_probed(task.target.counters[shots], task.target.target[shots], base)

    return fit


def _corrected(task: TransferTask, kind: str, *, is_fixed: bool) -> FitModel:
    def fit(shots: Indices, seed: int) -> Fitted:
        return fit_corrected(
            task.target.counters[shots],
            task.target.target[shots],
            lambda chosen: task.fit_alignment(kind, shots[chosen], is_fixed=is_fixed),
            seed,
            is_fixed=is_fixed,
        )

    return fit
