"""Experiments on the fleet: those of the xAMM paper, and few-shot transfer between all ordered pairs of machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import TRANSFER_MATRIX, XAMM_EMBEDDINGS, XAMM_SCORES
from perf_assets.storage.checkpoints import Checkpoints
from perf_assets.storage.lake import Lake
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import drop_parts, has_rows, store, store_part, stored
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str], None]
_PAIRS_COMMAND = "perf-assets evaluate pairs"


def run_xamm_experiments(fleet: Fleet, seeds: int, progress: Progress, methods: Sequence[str] = ()) -> "pd.DataFrame":
    """Score methods on held-out applications and machines, and store the rows; goes on where it was ended.

    All methods where none is named.
    """
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.source.experiments import only, run_experiments

    samples = fleet_samples(fleet.tables())
    kept = Checkpoints(fleet.lake, XAMM_SCORES.name, samples.digest)
    scores = run_experiments(samples, seeds, progress, kept, only(methods))
    scores = scores.assign(is_simulated=fleet.is_simulated())
    store(fleet.lake, fleet.warehouse, XAMM_SCORES, scores)
    kept.finish()
    return scores


def draw_embeddings(fleet: Fleet, progress: Progress, kinds: Sequence[str] = ()) -> "pd.DataFrame":
    """Place all runs in two dimensions, by kinds of embeddings, all where none is named, and store the rows."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.source.experiments import PICTURED, embedding_pictures

    rows = embedding_pictures(fleet_samples(fleet.tables()), 0, progress, kinds or PICTURED)
    rows = rows.assign(is_simulated=fleet.is_simulated())
    store(fleet.lake, fleet.warehouse, XAMM_EMBEDDINGS, rows)
    return rows


def write_xamm_report(lake: Lake) -> "tuple[Path, pd.DataFrame]":
    """Write the page of the stored experiments; its path, and the scores that it shows."""
    from perf_assets.reports.xamm.page import xamm_page

    scores, embeddings = (stored(lake, t, f"dg launch --assets {t.name}") for t in (XAMM_SCORES, XAMM_EMBEDDINGS))
    return store_page(lake, "xamm.html", xamm_page(scores, embeddings)), scores


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Few-shot transfer between all ordered pairs of machines, stored."""

    scores: "pd.DataFrame"
    """Rows of `eval_transfer__matrix`."""
    pairs_count: int
    kept_count: int
    """Pairs that had been scored on the same samples before."""


def score_all_pairs(fleet: Fleet, seeds: int, shots: Sequence[int], progress: Progress) -> ScoredPairs:
    """Score every ordered pair; pairs that are already scored on the same samples are not scored again."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.target.matrix import matrix, pairs

    samples, is_simulated = fleet_samples(fleet.tables()), fleet.is_simulated()
    every = pairs(samples, seeds, shots)
    if not every:
        raise BadInputError("no two machines share enough configurations to score: land more runs")
    data_digest = f"{samples.digest}:{seeds}:{list(shots)}"
    done = _scored(fleet.lake, data_digest)
    todo = [pair for pair in every if (pair.source, pair.target) not in done]
    for count, (pair, rows) in enumerate(matrix(samples, todo), 1):
        rows = rows.assign(data_digest=data_digest, is_simulated=is_simulated)
        store_part(fleet.lake, TRANSFER_MATRIX, rows, f"source={pair.source}/target={pair.target}")
        progress(f"{pair.source} -> {pair.target}: {count} of {len(todo)} pairs")
    fleet.warehouse.load_results(TRANSFER_MATRIX)
    return ScoredPairs(stored(fleet.lake, TRANSFER_MATRIX, _PAIRS_COMMAND), len(every), len(every) - len(todo))


def _scored(lake: Lake, data_digest: str) -> set[tuple[str, str]]:
    """Source and target of pairs that are scored on this data; scores of other data are dropped."""
    if not has_rows(lake, TRANSFER_MATRIX):
        return set()
    before = stored(lake, TRANSFER_MATRIX, _PAIRS_COMMAND)
    if (before["data_digest"] != data_digest).any():
        drop_parts(lake, TRANSFER_MATRIX)
        return set()
    return set(before[["source", "target"]].itertuples(index=False, name=None))
