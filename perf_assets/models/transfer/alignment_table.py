"""The alignment as something to read: which target counter stands in for which source counter, and how surely."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import yaml

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import folds_of
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import signed_log
from perf_assets.features.tables.unpaired import transfer_table
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.transfer.task import TransferTask

_FOLDS = 5
_LEAST_STABILITY = 0.8
"""Share of folds that must agree before a counter is proposed for the catalogue."""
_LEAST_WEIGHT = 0.8
"""Weight from which on a counter is proposed; one that goes down where the other goes up is never the same quantity."""
_KINDS = {
    "instructions": ("ins", "insn", "inst", "instruction", "op", "uop"),
    "branches": ("br", "brn", "branch"),
    "loads": ("ld", "load", "rd", "read"),
    "stores": ("st", "store", "wr", "write", "written"),
    "misses": ("miss", "misses", "misp", "fill", "ldm", "stm", "replacement"),
    "floating point": ("fp", "flop", "float", "double", "single", "f32", "f64", "fp32", "fp64"),
    "integers": ("int", "integer", "int32", "int64"),
    "stalls": ("stall", "stalled", "wcy"),
    "files": ("io", "rchar", "wchar", "bytes"),
    "pages": ("page", "tlb", "dtlb", "itlb", "ept", "walk"),
    **{level: (level, f"{level}d") for level in ("l1", "l2", "l3")},
}
"""Kinds of events, by the words in a counter's name."""
_WORD = re.compile(r"[a-z]+[0-9]*")


@dataclass(frozen=True)
class Correspondence:
    """A source counter and the target counter that weighs most in it."""

    source: str
    """Name of the source's tables."""
    source_counter: str
    target_counter: str
    weight: float
    """Standard deviations of the source counter per standard deviation of the target counter over the shots."""
    importance: float
    """Mean absolute slope of the source model by this counter: what a wrong correspondence costs."""
    stability: float
    """Share of folds of the shots in which the same target counter weighs most."""
    is_same_name: bool


@dataclass(frozen=True, eq=False)
class AlignmentTable:
    """Correspondences of one source, most important first, and the whole map for a heat map."""

    source: str
    rows: tuple[Correspondence, ...]
    weights: Floats
    """Source counters x target counters."""
    source_counters: tuple[str, ...]
    target_counters: tuple[str, ...]


def alignment_tables(task: TransferTask, shots: Indices, seed: int = 0) -> list[AlignmentTable]:
    """One table for each source that an alignment on the shots goes through."""
    kind = task.start_kind
    whole = task.fit_alignment(kind, shots)
    in_folds = [task.fit_alignment(kind, shots[inside]) for inside, _ in folds_of(len(shots), _FOLDS, seed)]
    logs = signed_log(task.target.counters[shots])
    tables = []
    for part in whole.parts:
        source = next(one for one in task.sources if one.net is part.source)
        weights = part.weights()
        slopes = np.abs(part.source.with_gradient(part.align(logs))[1]).mean(axis=0)
        others = [other.weights() for fold in in_folds for other in fold.parts if other.source is part.source]
        tables.append(_table(task, source.name, weights, others, slopes, source.rows.counter_names))
    return tables


def catalogue_proposal(tables: Sequence[AlignmentTable], catalogue: Catalogue, target_machine: str) -> str:
    """YAML of a site's catalogue file: target counters for quantities that the catalogue knows by source counters.

    Proposed is what weighs much, is the same in most folds, means nothing else yet, and by its name counts the same
    kind of thing; empty where there is none. A person should look at it before it is used: a stable correspondence is
    a hint, not a definition.
    """
    formulas = []
    for table in tables:
        quantity_of = {
            resolved.counters[0]: resolved.quantity
            for resolved in reversed(catalogue.resolve(table.source_counters, None))
            if len(resolved.counters) == 1
        }
        resolved_here = catalogue.resolve(table.target_counters, None)
        known = {one.quantity for one in resolved_here}
        has_meaning = {counter for one in resolved_here for counter in one.counters}
        for row in table.rows:
            quantity = quantity_of.get(row.source_counter)
            is_new = quantity is not None and quantity not in known and row.target_counter not in has_meaning
            if quantity is not None and is_new and _is_strong(row) and _is_same_kind(quantity, row.target_counter):
                known.add(quantity)
                formulas.append(
                    {
                        "quantity": quantity,
                        "counters": {row.target_counter: 1.0},
                        "meaning": f"Proposed by alignment of {target_machine} to {table.source}: replaces "
                        f"{row.source_counter} (weight {row.weight:.2f}, same in {row.stability:.0%} of folds)",
                    }
                )
    return yaml.safe_dump({"version": 1, "formulas": formulas}, sort_keys=False, width=110) if formulas else ""


def _is_strong(row: Correspondence) -> bool:
    return not row.is_same_name and row.stability >= _LEAST_STABILITY and row.weight >= _LEAST_WEIGHT


def _is_same_kind(quantity: str, counter: str) -> bool:
    kinds = _kinds_of(quantity)
    return bool(kinds) and kinds == _kinds_of(counter)


def _kinds_of(name: str) -> set[str]:
    """Kinds that the words of a name stand for; everything is an instruction, so that says nothing beside others."""
    words = {form for word in _WORD.findall(name.lower()) for form in (word, word.removesuffix("s"))}
    kinds = {kind for kind, known in _KINDS.items() if words & set(known)}
    return kinds - {"instructions"} or kinds


def _table(
    task: TransferTask,
    name: str,
    weights: Floats,
    in_folds: Sequence[Floats],
    slopes: Floats,
    source_counters: tuple[str, ...],
) -> AlignmentTable:
    ours = task.target.counter_names
    first = np.abs(weights).argmax(axis=1)
    agreeing = np.array([np.abs(other).argmax(axis=1) == first for other in in_folds])
    stability = agreeing.mean(axis=0) if len(in_folds) else np.zeros(len(first))
    rows = [
        Correspondence(
            source=name,
            source_counter=source_counters[i],
            target_counter=ours[j],
            weight=float(weights[i, j]),
            importance=float(slopes[i]),
            stability=float(stability[i]),
            is_same_name=source_counters[i] == ours[j],
        )
        for i, j in enumerate(first)
        if weights[i, j] != 0
    ]
    rows.sort(key=lambda row: -row.importance)
    return AlignmentTable(name, tuple(rows), weights, source_counters, ours)


_SHOTS = 50
_TIME = "wall_seconds"
_NOT_COUNTERS = (
    r"^(ranks|threads|nodes|gpus|is_simulated|target_value|runs_count|missing_mask)$",
    r"(?i)time|task-clock|_cyc|cycles",
)
"""Configuration, and counters that hold the run time itself."""


@dataclass(frozen=True)
class CounterAlignment:
    """Common ground of the counters of two machines."""

    rows: pd.DataFrame
    """Correspondences, most important first."""
    weights: pd.DataFrame
    """Source counters x target counters."""
    proposal: str
    """YAML for the site's counter catalogue."""


def align_counters(
    source_name: str,
    source: pd.DataFrame,
    target_name: str,
    target: pd.DataFrame,
    catalogue: Catalogue,
    seed: int = 0,
) -> CounterAlignment:
    """Align counters by tables of runs, one per machine: counters under the machine's own names and `wall_seconds`."""
    keep_blas_to_one_thread()
    theirs = transfer_table(source_name, source, _TIME, drop=_NOT_COUNTERS)
    ours = transfer_table(target_name, target, _TIME, drop=_NOT_COUNTERS)
    task = TransferTask.of([theirs], ours, catalogue)
    shots = np.random.default_rng(seed).permutation(len(ours))[:_SHOTS]
    if len(shots) < 8:
        raise BadInputError(f"{target_name} has {len(shots)} runs: an alignment of counters needs at least 8")
    tables = alignment_tables(task, shots, seed)
    first = tables[0]
    # Levels of words, such as an application's name, take part in the alignment and are no counters.
    rows = [row for row in first.rows if row.source_counter not in theirs.level_columns]
    weights = pd.DataFrame(first.weights, index=list(first.source_counters), columns=list(first.target_counters))
    return CounterAlignment(
        pd.DataFrame([vars(row) for row in rows if row.target_counter not in ours.level_columns]),
        weights.drop(index=list(theirs.level_columns), columns=list(ours.level_columns), errors="ignore"),
        catalogue_proposal(tables, catalogue, target_name),
    )
