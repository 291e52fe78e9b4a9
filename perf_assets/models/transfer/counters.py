"""ModelX between two machines of the fleet, from counters under their own names: severity and alignment."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.core.severity import Severity
from perf_assets.features.tables.unpaired import transfer_table
from perf_assets.models.common.blas_threads import keep_blas_to_one_thread
from perf_assets.models.common.severity import severity
from perf_assets.models.transfer.alignment_table import alignment_tables, catalogue_proposal
from perf_assets.models.transfer.task import TransferTask

_SHOTS = 50
_TIME = "wall_seconds"
_NOT_COUNTERS = (
    r"^(ranks|threads|nodes|gpus|is_simulated|target_value|runs_count|missing_mask)$",
    r"(?i)time|task-clock|_cyc|cycles",
)
"""Configuration, and counters that hold the run time itself."""


@dataclass(frozen=True)
class CounterAlignment:
    """What the counters of two machines have in common."""

    severity: Severity
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
    """From tables of runs, one a machine: counters under the machine's own names and `wall_seconds`."""
    keep_blas_to_one_thread()
    theirs = transfer_table(source_name, source, _TIME, drop=_NOT_COUNTERS)
    ours = transfer_table(target_name, target, _TIME, drop=_NOT_COUNTERS)
    task = TransferTask.of([theirs], ours, catalogue)
    shots = np.random.default_rng(seed).permutation(len(ours))[:_SHOTS]
    if len(shots) < 8:
        raise BadInputError(f"{target_name} has {len(shots)} runs: an alignment of counters needs at least 8")
    tables = alignment_tables(task, shots, seed)
    first = tables[0]
    return CounterAlignment(
        severity(theirs.counters, theirs.target, ours.counters, ours.target, seed),
        pd.DataFrame([vars(row) for row in first.rows]),
        pd.DataFrame(first.weights, index=list(first.source_counters), columns=list(first.target_counters)),
        catalogue_proposal(tables, catalogue, target_name),
    )
