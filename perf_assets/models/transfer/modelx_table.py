"""ModelX's table: one row for each target and number of shots, the product beside the usual uses of its sources.

Errors are mean squared errors of the logarithm on test rows, means over seeds; all methods of a row see the same shots
and the same test rows. The improvement is the paper's: how much smaller the error of the product is than that of the
best of zero-shot, linear probing and fine-tuning (best in hindsight, by its mean over seeds).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.shots import Shots
from perf_assets.features.tables.unpaired import TransferTable, kind_notes, transfer_table
from perf_assets.models.transfer.evaluation import TransferEvaluation, UniformShotsError, evaluate_transfer
from perf_assets.models.transfer.model import LEAST_SHOTS
from perf_assets.models.transfer.source_net import SourceNetSettings
from perf_assets.models.transfer.task import TransferTask

Progress = Callable[[str], None]

_USES = {"zero_shot": "source_zero_shot", "linear_probe": "linear_probe", "fine_tune": "fine_tune"}
"""Method of the evaluation by column: what a source is compared by in the paper."""
_ORACLE = "oracle_100x"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of runs as somebody gave it."""

    name: str
    frame: pd.DataFrame
    target_column: str
    notes: tuple[str, ...] = ()
    """Notes on how it was read."""


@dataclass(frozen=True)
class ModelxRow:
    """One transfer with one number of shots; None is what cannot be."""

    sources: tuple[str, ...]
    target: str
    shots: int
    seeds: int
    features: str
    """Whether the sources have the target's features: `shared`, `partly shared` or `not shared`."""
    severity: float | None
    """Median over seeds, 0 easy to 1 nothing in common; seen from sources and shots, without test rows."""
    product: float
    zero_shot: float | None
    linear_probe: float | None
    fine_tune: float | None
    target_best: float
    """The target-only model with the smallest error, in hindsight."""
    target_best_method: str
    oracle_100x: float
    """The supervised model on 100 times the shots, or on all rows that are not test rows where they are fewer."""
    oracle_100x_spread: float
    """Standard deviation over seeds of the above; 0 with one seed."""
    improvement: float | None
    """Percent, over the best of zero-shot, linear probing and fine-tuning; negative where the product is worse."""
    winner: str
    """The method of this row with the smallest error, without the supervised model, which sees more."""
    matches_oracle: bool
    """Whether the error of the product is at most that of the supervised model and its spread."""
    mape: float
    """Error of the product: mean absolute percentage error of the time itself, as a ratio."""
    coverage_90: float
    """Share of test rows inside the product's 90% interval."""
    chosen: str
    """The candidate of the product that was the likeliest for most seeds."""

    @property
    def ratio(self) -> float:
        """Error of the product relative to the best target-only model: below 1 the sources were of use."""
        return self.product / self.target_best

    def to_dict(self) -> dict[str, Any]:
        """Row as a JSON object."""
        return {**asdict(self), "sources": list(self.sources)}


@dataclass(frozen=True, eq=False)
class ModelxTable:
    """Rows, and what a person should know about how the tables were read."""

    rows: tuple[ModelxRow, ...]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """A row each; sources in one text, what cannot be is missing."""
        frame = pd.DataFrame([{**asdict(row), "sources": " + ".join(row.sources)} for row in self.rows])
        numbers = ["severity", *_USES, "improvement"]
        return frame.astype(dict.fromkeys(numbers, float))


def modelx_table(
    datasets: Sequence[Dataset],
    shots: Sequence[Shots],
    seeds: int = 10,
    *,
    targets: Sequence[str] = (),
    drop: Sequence[str] = (),
    catalogue: Catalogue | None = None,
    progress: Progress = lambda _: None,
) -> ModelxTable:
    """Each of the targets (all datasets where none is named) with all other datasets as its sources.

    Everything that is wrong with what was given is said before the first model is fitted; then notes go to `progress`.
    """
    tables = _tables(datasets, drop)
    wanted = list(dict.fromkeys(targets or tables))
    unknown = [name for name in wanted if name not in tables]
    if unknown:
        raise BadInputError(f"target {unknown[0]!r} is no dataset; there are {listed(list(tables))}")
    counts = {name: _counts(tables[name], shots) for name in wanted}
    notes = [*(note for one in datasets for note in one.notes), *(n for one in tables.values() for n in one.notes)]
    notes += [note for first, second in combinations(tables.values(), 2) for note in kind_notes(first, second)]
    for note in notes:
        progress(note)
    rows: list[ModelxRow] = []
    for name in wanted:
        others = [table for other, table in tables.items() if other != name]
        rows += modelx_rows(others, tables[name], counts[name], seeds, catalogue=catalogue, progress=progress)
    if not rows:
        raise BadInputError(f"no draw of {listed(wanted)} has shots with different values: give more shots")
    return ModelxTable(tuple(rows), tuple(notes))


def modelx_rows(
    sources: Sequence[TransferTable],
    target: TransferTable,
    counts: Sequence[int],
    seeds: int = 10,
    *,
    catalogue: Catalogue | None = None,
    settings: SourceNetSettings | None = None,
    progress: Progress = lambda _: None,
) -> list[ModelxRow]:
    """One transfer with each number of shots; numbers whose shots have one value only are left out, with a note."""
    task = TransferTask.of(sources, target, catalogue, settings)
    names = tuple(source.name for source in sources)
    features = _shared(task)
    methods = (*_USES.values(), _ORACLE)
    rows = []
    for count in counts:
        try:
            evaluation = evaluate_transfer(task, count, seeds, methods=methods, progress=progress)
        except UniformShotsError as error:
            progress(f"left out: {error}")
        else:
            rows.append(modelx_row(names, features, target.name, evaluation))
    return rows


def modelx_row(sources: tuple[str, ...], features: str, target: str, evaluation: TransferEvaluation) -> ModelxRow:
    """Row of the table from an evaluation of all methods."""
    best = evaluation.target_best
    assert best is not None, "no shots, no target-only method"
    uses = {column: _mean(evaluation.scores, method) for column, method in _USES.items()}
    errors = {"product": _mean(evaluation.scores, "product"), **uses, "target_best": _mean(evaluation.scores, best)}
    known = {name: error for name, error in errors.items() if error is not None}
    least_use = min((error for name, error in known.items() if name in _USES), default=None)
    oracle = np.array(evaluation.scores[_ORACLE]["log_mse"])
    spread = float(oracle.std(ddof=1)) if len(oracle) > 1 else 0.0
    return ModelxRow(
        sources=sources,
        target=target,
        shots=evaluation.shots,
        seeds=len(oracle),
        features=features,
        severity=float(np.median(evaluation.severity)) if evaluation.severity else None,
        product=known["product"],
        **uses,
        target_best=known["target_best"],
        target_best_method=best,
        oracle_100x=float(oracle.mean()),
        oracle_100x_spread=spread,
        improvement=100 * (1 - known["product"] / least_use) if least_use else None,
        winner=min(known, key=lambda name: known[name]),
        matches_oracle=known["product"] <= float(oracle.mean()) + spread,
        mape=float(np.mean(evaluation.scores["product"]["mape"])),
        coverage_90=float(np.mean(evaluation.coverage)),
        chosen=Counter(evaluation.chosen).most_common(1)[0][0],
    )


def _tables(datasets: Sequence[Dataset], drop: Sequence[str]) -> dict[str, TransferTable]:
    if len(datasets) < 2:
        raise BadInputError("one dataset cannot be source and target: give at least two")
    repeated = [name for name, count in Counter(one.name for one in datasets).items() if count > 1]
    if repeated:
        raise BadInputError(f"two datasets are called {repeated[0]!r}: give each a name of its own")
    return {one.name: transfer_table(one.name, one.frame, one.target_column, drop=drop) for one in datasets}


def _counts(target: TransferTable, shots: Sequence[Shots]) -> list[int]:
    """Numbers of shots, each once, smallest first."""
    counts = sorted({one.count(len(target)) for one in shots})
    if not counts:
        raise BadInputError("no number of shots is given")
    if counts[0] < LEAST_SHOTS:
        raise BadInputError(f"{counts[0]} shots are too few to choose a model: give at least {LEAST_SHOTS}")
    if counts[-1] > len(target) // 2:
        raise BadInputError(
            f"{target.name}: {counts[-1]} shots are more than half of its {len(target)} rows; the others are test rows"
        )
    return counts


def _shared(task: TransferTask) -> str:
    """Whether some source has the features of the target."""
    known = set().union(*task.same)
    if not known:
        return "not shared"
    return "shared" if known >= set(task.target.counter_names) else "partly shared"


def _mean(scores: Mapping[str, Mapping[str, Sequence[float]]], method: str) -> float | None:
    """Error of a method; None where it is not known, or is beyond all numbers."""
    if method not in scores:
        return None
    mean = float(np.mean(scores[method]["log_mse"]))
    return mean if np.isfinite(mean) else None
