"""A target model from few shots, put together: candidates, gate, interval. `product` is what would be registered."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.core.severity import Severity
from perf_assets.features.paired import Floats, Indices
from perf_assets.models import archive
from perf_assets.models.alignment import Alignment
from perf_assets.models.blas_threads import keep_blas_to_one_thread
from perf_assets.models.candidates import (
    Candidate,
    TableCandidate,
    TransferTask,
    target_only_candidates,
    transfer_candidates,
)
from perf_assets.models.conformal import Interval, cross_conformal
from perf_assets.models.fitted import Fitted, Rows, parts_of
from perf_assets.models.gate import Choice, choose, cross_fit
from perf_assets.models.packing import pack, share_alignments, unpack
from perf_assets.models.reach import Reach, trust
from perf_assets.models.severity import severity

LEAST_SHOTS = 4
_BATCH = 512
"""Rows that are predicted at once: what is computed from them stays in the processor's cache."""
_BEYOND = ("target_ridge", "target_gp")
"""What predicts rows that no source can be trusted with: models that go on smoothly where there are no shots."""
_TRUST = 30.0
"""Shots that a source counts for which the shots do not contradict."""
_FEW = 20
"""Shots below which such a source is left alone: whatever is learned from so few is noise."""
_CONTRADICTION = 2.5
"""Times the source's own held-out error at which the shots contradict it, and more with fewer shots."""


@dataclass(frozen=True, eq=False)
class TargetModel:
    """A blend of fitted models in plain arrays, with the grounds on which it was chosen."""

    models: Mapping[str, Fitted]
    weights: Mapping[str, float]
    counter_names: tuple[str, ...]
    """Target counters, in the order in which rows give them."""
    is_log: bool
    """Whether it predicts the logarithm."""
    interval: Interval
    grounds: Mapping[str, Any]
    """Scores of all candidates, severity and number of shots, as JSON."""
    reaches: tuple[Reach, ...] = ()
    """Of the sources; none where rows far from them are predicted like all others."""
    beyond: Mapping[str, float] = field(default_factory=dict)
    """Weights of models for rows that are out of reach."""

    def predict(self, counters: Floats) -> Floats:
        """Target (its logarithm if `is_log`) of rows x counters as measured."""
        keep_blas_to_one_thread()
        starts = range(0, max(len(counters), 1), _BATCH)
        return np.concatenate([self.of(Rows(counters[start : start + _BATCH].astype(np.float32))) for start in starts])

    def of(self, rows: Rows) -> Floats:
        """The same of rows that fit into the cache."""
        found = self._blend(self.weights, rows)
        if self.reaches:
            trusted = trust(self.reaches, self._parts, rows)
            if trusted.min() < 1:
                found = trusted * found + (1 - trusted) * self._blend(self.beyond, rows)
        return found

    @cached_property
    def _parts(self) -> list[Alignment]:
        return [part for model in self.models.values() for part in parts_of(model)]

    def _blend(self, weights: Mapping[str, float], rows: Rows) -> Floats:
        return np.asarray(
            np.sum([weight * self.models[name].predict(rows) for name, weight in weights.items()], axis=0)
        )

    def save(self, path: Path) -> None:
        """Store without pickle."""
        packed, arrays = pack(list(self.models.values()))
        for position, reach in enumerate(self.reaches):
            arrays |= {f"reach{position}/{name}": array for name, array in reach.arrays().items()}
        description = {
            "models": packed,
            "names": list(self.models),
            "weights": dict(self.weights),
            "counter_names": list(self.counter_names),
            "is_log": self.is_log,
            "interval": asdict(self.interval),
            "grounds": dict(self.grounds),
            "beyond": dict(self.beyond),
            "reaches": [reach.description() for reach in self.reaches],
        }
        archive.save(path, description, arrays)

    @classmethod
    def load(cls, path: Path) -> "TargetModel":
        """A saved one."""
        description, arrays = archive.load(path)
        models = dict(zip(description["names"], unpack(description["models"], arrays), strict=True))
        names, interval = tuple(description["counter_names"]), Interval(**description["interval"])
        reaches = tuple(Reach.restore(one, arrays, f"reach{i}/") for i, one in enumerate(description["reaches"]))
        grounds, beyond = description["grounds"], description["beyond"]
        return cls(models, description["weights"], names, description["is_log"], interval, grounds, reaches, beyond)


@dataclass(frozen=True, eq=False)
class Product:
    """What was fitted on the shots: predicts rows, and holds the model where all that was chosen can be stored."""

    choice: Choice
    predict_rows: Callable[[Indices], Floats]
    model: TargetModel | None
    interval: Interval
    severity: Severity | None
    adapt_seconds: float


def fit_product(
    task: TransferTask,
    shots: Indices,
    seed: int = 0,
    *,
    is_log: bool = True,
    extra: Sequence[Candidate] = (),
    trust_in_extra: float = 0.0,
) -> Product:
    """Cross-fit all candidates on the shots, choose, and fit what was chosen on all shots.

    `extra` are candidates from outside, which count for `trust_in_extra` shots before any is seen; a product that
    chose one of them cannot be stored here.
    """
    if len(shots) < LEAST_SHOTS:
        raise BadInputError(f"{len(shots)} shots are too few to choose a model: give at least {LEAST_SHOTS}")
    trusted = {one.name: trust_in_extra / (trust_in_extra + len(shots)) / len(extra) for one in extra}
    keep_blas_to_one_thread()
    return _fit(task, shots, seed, is_log, extra, trusted)


def _fit(
    task: TransferTask,
    shots: Indices,
    seed: int,
    is_log: bool,
    extra: Sequence[Candidate],
    trusted: Mapping[str, float],
) -> Product:
    started = time.perf_counter()
    own = [*target_only_candidates(task.target), *transfer_candidates(task)]
    own = [candidate for candidate in own if len(shots) >= candidate.least_shots]
    cross = cross_fit([*own, *extra], task.target.target, shots, seed)
    choice = choose(cross, trusted or _trusted(task, own, shots, seed))
    hard = _severity(task, shots)
    interval = cross_conformal(choice.held_out, cross.target, hard.rescaled if hard else 1.0)
    by_name: dict[str, TableCandidate] = {candidate.name: candidate for candidate in own}
    models = {name: by_name[name].fit_model(shots, seed) for name in choice.weights if name in by_name}
    reaches = () if extra or list(models) == ["source_zero_shot"] else _reaches(task, models, shots)
    beyond = cross.weights_among(_BEYOND) if reaches else {}
    models |= {name: by_name[name].fit_model(shots, seed) for name in beyond if name not in models}
    models = share_alignments(models)
    outside = {c.name: c.fit(shots, seed) for c in extra if c.name in choice.weights}
    seconds = time.perf_counter() - started
    grounds = {
        "shots": len(shots),
        "sources": [source.name for source in task.sources],
        "candidates": [asdict(score) for score in choice.scores],
        "severity": asdict(hard) if hard else None,
        "adapt_seconds": seconds,
    }
    model = TargetModel(models, choice.weights, task.target.counter_names, is_log, interval, grounds, reaches, beyond)

    def predict_rows(rows: Indices) -> Floats:
        asked = Rows(task.target.counters[rows])
        if not outside:
            return model.of(asked)
        found = [choice.weights[name] * fitted.predict(asked) for name, fitted in models.items()]
        found += [choice.weights[name] * predict(rows) for name, predict in outside.items()]
        return np.asarray(np.sum(found, axis=0))

    return Product(choice, predict_rows, None if outside else model, interval, hard, seconds)


def _reaches(task: TransferTask, models: Mapping[str, Fitted], shots: Indices) -> tuple[Reach, ...]:
    """Of every source and start that the models go through, once."""
    parts = [part for model in models.values() for part in parts_of(model)]
    rows, found = Rows(task.target.counters[shots]), {}
    for position, part in enumerate(parts):
        source = next(source.rows for source in task.sources if source.net is part.source)
        key = (id(part.source), id(part.start))
        if key not in found:
            found[key] = Reach.of(position, source, rows.started(part))
    return tuple(found.values())


def _trusted(task: TransferTask, own: Sequence[TableCandidate], shots: Indices, seed: int) -> dict[str, float]:
    """The least weight of the source as it is, where the shots do not contradict it."""
    zero_shot = next((candidate for candidate in own if candidate.name == "source_zero_shot"), None)
    if zero_shot is None:
        return {}
    error = float(np.mean((zero_shot.fit(shots, seed)(shots) - task.target.target[shots]) ** 2))
    usual = min(source.net.held_out_error * source.net.spread**2 for source in task.sources)
    if error > usual * _CONTRADICTION * (1 + 2 / np.sqrt(len(shots))):
        return {}
    least = 1.0 if len(shots) < _FEW else _TRUST / (_TRUST + len(shots))
    return {"source_zero_shot": least}


def _severity(task: TransferTask, shots: Indices) -> Severity | None:
    """Of the easiest source; None where there are too few rows to say."""
    found = []
    for source in task.sources:
        try:
            rows = source.rows
            target = task.target
            found.append(severity(rows.counters, rows.target, target.counters[shots], target.target[shots]))
        except BadInputError:
            continue
    return min(found, key=lambda one: one.rescaled) if found else None
