"""The life of the model of relative-performance vectors: trained, joined by machines, judged, scored, grown old."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.runs import CONFIGURATION, VECTOR_FEATURES_TABLE
from perf_assets.core.tables.vectors import (
    ALL_APPS,
    PAPER_MACHINES,
    PAPER_PROTOCOL,
    VECTOR_GROWTH,
    VECTOR_SCORES,
    VECTOR_VERDICTS,
)
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.infra.leases import leased
from perf_assets.reports.fleet.facts import VectorState
from perf_assets.storage.lake import Lake
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store, stored_or_empty
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    from perf_assets.features.vectors import VectorSamples
    from perf_assets.models.vectors.evaluation import VectorEvaluation
    from perf_assets.models.vectors.model import TrainedVector, VectorModel
    from perf_assets.models.vectors.promotion import VectorComparison
    from perf_assets.registry.store import Version

TRAINED_AT = "trained_at"
"""Tag of a version: when its blends were trained; machines that join later do not change it."""
_LOCK_WAIT_SECONDS = 3600.0
_PAGE = "vectors.html"
_RATIOS = ("mae", "mape", "same_order", "top1", "regret", "auc", "coverage", "stated_order")
SCORES = ["r2", "r2_per_machine", *(f"{name}_ratio" for name in _RATIOS)]
_MEASURED = f"""
    SELECT machine FROM {VECTOR_FEATURES_TABLE.name} WHERE wall_seconds IS NOT NULL
    GROUP BY machine HAVING count(DISTINCT ({", ".join(CONFIGURATION)})) >= $least ORDER BY machine
"""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """A version that was registered, or why none was."""

    version: "Version | None"
    reason: str
    model: "VectorModel | None" = None
    trained: "TrainedVector | None" = None
    joined: tuple[str, ...] = field(default=())
    """Machines that joined, or whose head was made of more runs."""


def alone(lake: Lake) -> AbstractContextManager[object]:
    """Alone among all processes that make or judge vector models."""
    return leased(lake.locks / "vectors.lock", "the vector model", _LOCK_WAIT_SECONDS)


@dataclass(frozen=True)
class VectorRequest:
    """Request for a vector model."""

    relative_to: str
    seed: int
    settings: VectorSettings
    retrain: bool
    """Whether to train anew; otherwise machines join the champion."""
    added_machine: str
    """Machine that is to join the champion; empty for all that landed since."""


def make(fleet: Fleet, asked: VectorRequest, progress: Progress) -> Made:
    """Train and register, or let machines join; nothing where there is nothing new."""
    provenance = fleet.provenance()
    with alone(fleet.lake):
        if asked.added_machine:
            return add_machine(fleet.vector_samples(), asked.added_machine, provenance)
        if asked.retrain:
            samples = fleet.vector_samples()
            return train(samples, asked.relative_to, asked.seed, asked.settings, provenance, progress)
        return let_machines_join(fleet.vector_samples, provenance)


def train(
    samples: "VectorSamples",
    relative_to: str,
    seed: int,
    settings: VectorSettings,
    provenance: dict[str, str],
    progress: Progress,
) -> Made:
    """Fit anew and register as @challenger."""
    from perf_assets.models.vectors.model import train_vector
    from perf_assets.registry.vector import register_vector

    trained = train_vector(samples, relative_to, seed, settings, progress)
    tags = provenance | {"seed": str(seed), TRAINED_AT: datetime.now(UTC).isoformat(timespec="seconds")}
    version = register_vector(trained, samples, tags)
    return Made(version, "trained anew", trained.model, trained)


def let_machines_join(read_samples: "Callable[[], VectorSamples]", provenance: dict[str, str]) -> Made:
    """Let machines that landed since the training join the champion; nothing is trained.

    A machine that joined before gets a new head where it has more runs now.
    """
    from perf_assets.models.vectors.model import join
    from perf_assets.registry.vector import ALIAS, NAME, champion_vector
    from perf_assets.registry.versions import versions

    if ALIAS not in versions(NAME):
        return Made(
            None,
            "there is no champion yet that a machine could join: the weekly training or 'perf-assets vectors' makes it",
        )
    try:
        samples = read_samples()
    except BadInputError as error:
        return Made(None, str(error))
    champion = model = champion_vector()
    joined: list[str] = []
    refused: list[str] = []
    for machine in samples.machines:
        if machine in champion.trained_machines:
            continue
        try:
            grown = join(model, samples, machine)
        except BadInputError as error:
            refused.append(str(error))
            continue
        if _shots(grown, machine) != _shots(champion, machine):
            model = grown
            joined.append(machine)
    if not joined:
        return Made(None, "; ".join(["no machine is new to the champion", *refused]))
    return _register(model, joined, samples, provenance)


def add_machine(samples: "VectorSamples", machine: str, provenance: dict[str, str]) -> Made:
    """Let one machine join the champion; refuses where it cannot."""
    from perf_assets.models.vectors.model import join
    from perf_assets.registry.vector import champion_vector

    return _register(join(champion_vector(), samples, machine), [machine], samples, provenance)


def judge(fleet: Fleet) -> pd.DataFrame:
    """All verdicts on vector models, with that on the newest, stored; it is promoted, or stays a challenger."""
    from perf_assets.models.vectors.model import VectorModel
    from perf_assets.registry.vector import NAME
    from perf_assets.workflows.models.judge import Contest

    is_simulated = fleet.is_simulated()
    contest = Contest(
        name=NAME,
        load=VectorModel.load,
        compare=_compared,
        facts=lambda new: {"machines": ", ".join(new.machines), "is_simulated": is_simulated},
    )
    with alone(fleet.lake):
        before = stored_or_empty(fleet.lake, VECTOR_VERDICTS)
        rows = contest.judge_newest(before if len(before) else None)
        store(fleet.lake, fleet.warehouse, VECTOR_VERDICTS, rows)
    return rows


def _compared(new: "VectorModel", champion: "VectorModel | None") -> "VectorComparison":
    """A new model beside the champion; the reason says which machines joined since, with the error of their shots."""
    from perf_assets.models.vectors.promotion import compare

    comparison = compare(new, champion)
    joined = [
        f"{machine} joined with {heads['configuration'].shots_count} runs (log error of shots left out "
        f"{heads['configuration'].spread:.2f})"
        for machine, heads in new.heads.items()
        if champion is None or _shots(champion, machine) != heads["configuration"].shots_count
    ]
    return replace(comparison, reason="; ".join([comparison.reason, *joined]))


def evaluate(
    samples: "VectorSamples",
    relative_to: str,
    seeds: int,
    settings: VectorSettings,
    protocols: Sequence[str],
    progress: Progress,
) -> "VectorEvaluation":
    """Scores of all methods; where the fleet has the four machines of the paper and more, of those alone as well."""
    from perf_assets.models.vectors.evaluation import evaluate_vectors

    evaluated = evaluate_vectors(samples, relative_to, seeds, settings, None, protocols, progress)
    if not set(PAPER_MACHINES) <= set(samples.machines):
        return evaluated
    four = samples.among(PAPER_MACHINES)
    beside = evaluate_vectors(four, "max", seeds, settings, None, ("sample",), lambda t: progress(f"paper's four: {t}"))
    table = pd.concat([evaluated.table, beside.table.assign(protocol=PAPER_PROTOCOL)], ignore_index=True)
    return replace(evaluated, table=table)


@dataclass(frozen=True, eq=False)
class ScoredVectors:
    """Scores of vectors, stored, and their page."""

    rows: pd.DataFrame
    means: pd.DataFrame
    """Means of all applications together, over seeds."""
    page: Path


def score(
    fleet: Fleet,
    relative_to: str,
    settings: VectorSettings,
    seeds: int,
    protocols: Sequence[str],
    progress: Progress,
) -> Iterator[ScoredVectors]:
    """Score all methods on the protocols, then let every machine join the fleet in turn; each is stored and drawn."""
    from perf_assets.models.vectors.growth import grow
    from perf_assets.reports.vectors.page import growth_part, score_parts, vector_page

    samples, is_simulated = fleet.vector_samples(), fleet.is_simulated()
    evaluated = evaluate(samples, relative_to, seeds, settings, protocols, progress)
    table = evaluated.table.assign(is_simulated=is_simulated)
    means = mean_scores(table)
    parts = score_parts(evaluated.rows, evaluated.entries, evaluated.vectors, means)
    store(fleet.lake, fleet.warehouse, VECTOR_SCORES, table)
    yield ScoredVectors(table, means, store_page(fleet.lake, _PAGE, vector_page(table, parts)))
    growth = grow(samples, seeds, settings.net, progress).assign(is_simulated=is_simulated)
    store(fleet.lake, fleet.warehouse, VECTOR_GROWTH, growth)
    medians = growth.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median").reset_index()
    page = store_page(fleet.lake, _PAGE, vector_page(table, [*parts, growth_part(growth)]))
    yield ScoredVectors(growth, medians, page)


def mean_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Scores of all applications together, means over seeds: a row per protocol and method."""
    whole = table[table["app"] == ALL_APPS]
    return whole.groupby(["protocol", "method"], sort=False)[[*SCORES, "samples_count"]].mean().reset_index()


def state(warehouse: Warehouse, limit_days: int) -> VectorState:
    """State of the vector model in use: its age, and machines that it does not know."""
    from perf_assets.models.vectors.head import LEAST_SHOTS
    from perf_assets.registry.vector import NAME, SPEAKS_OF
    from perf_assets.registry.versions import CHALLENGER, CHAMPION, created_at, tags_of, versions

    aliases = versions(NAME)
    version = aliases.get(CHAMPION)
    if version is None:
        return VectorState(None, aliases.get(CHALLENGER), None, (), (), limit_days)
    tags = tags_of(NAME, version)
    # Versions of older releases do not say: they count as covering all, until the next training.
    measured = warehouse.frame(_MEASURED, {"least": LEAST_SHOTS})["machine"].tolist()
    machines = tags[SPEAKS_OF].split(", ") if SPEAKS_OF in tags else measured
    trained_at = tags.get(TRAINED_AT)
    return VectorState(
        version=version,
        challenger_version=aliases.get(CHALLENGER),
        trained_at=datetime.fromisoformat(trained_at) if trained_at else created_at(NAME, version),
        machines=tuple(machines),
        absent_machines=tuple(machine for machine in measured if machine not in machines),
        limit_days=limit_days,
    )


def _shots(model: "VectorModel", machine: str) -> int:
    return next((head.shots_count for head in model.heads.get(machine, {}).values()), 0)


def _register(
    model: "VectorModel", joined: Sequence[str], samples: "VectorSamples", provenance: dict[str, str]
) -> Made:
    from perf_assets.registry.vector import ALIAS, NAME, register_joined
    from perf_assets.registry.versions import created_at, tags_of, versions

    champion = versions(NAME)[ALIAS]
    trained_at = tags_of(NAME, champion).get(TRAINED_AT) or created_at(NAME, champion).isoformat(timespec="seconds")
    tags = provenance | {TRAINED_AT: trained_at, "joined": ", ".join(joined), "joined_version": str(champion)}
    return Made(
        version=register_joined(model, joined, samples, tags),
        reason=f"{', '.join(joined)} joined version {champion}",
        model=model,
        joined=tuple(joined),
    )
