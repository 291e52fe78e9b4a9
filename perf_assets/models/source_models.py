"""Source models of several tables: homogeneous tables share one net, the others have one each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.features.transfer_tables import TransferTable
from perf_assets.models.alignment_starts import SourceRows
from perf_assets.models.blas_threads import keep_blas_to_one_thread
from perf_assets.models.source_net import SourceNet, SourceSettings

_HOMOGENEOUS = 0.8
"""Share of counters (of those of either table) that tables must have in common to be learned together."""


@dataclass(frozen=True)
class Source:
    """A frozen source model with the rows it learned from."""

    name: str
    """Of the tables, joined by +."""
    net: SourceNet
    rows: SourceRows


def fit_sources(
    tables: Sequence[TransferTable], *, settings: SourceSettings | None = None, seed: int = 0
) -> tuple[Source, ...]:
    """One source model for every group of tables with the same counters, as far as they are the same."""
    keep_blas_to_one_thread()
    groups: list[list[TransferTable]] = []
    for table in tables:
        home = next((group for group in groups if _overlap(group, table) >= _HOMOGENEOUS), None)
        if home is None:
            groups.append([table])
        else:
            home.append(table)
    return tuple(_fit(group, settings, seed) for group in groups)


def _overlap(group: Sequence[TransferTable], table: TransferTable) -> float:
    common, every = set(table.counter_names), set(table.counter_names)
    for other in group:
        common &= set(other.counter_names)
        every |= set(other.counter_names)
    return len(common) / len(every)


def _fit(group: Sequence[TransferTable], settings: SourceSettings | None, seed: int) -> Source:
    common = set.intersection(*(set(table.counter_names) for table in group))
    names = tuple(name for name in group[0].counter_names if name in common)
    counters = np.vstack([table.counters[:, [table.counter_names.index(n) for n in names]] for table in group])
    target = np.concatenate([table.target for table in group])
    dataset = np.repeat(np.arange(len(group)), [len(table) for table in group])
    net = SourceNet.fit(counters, target, names, dataset=dataset, settings=settings, seed=seed)
    rows = SourceRows(names, net.scaler, counters, target)
    return Source("+".join(table.name for table in group), net, rows)
