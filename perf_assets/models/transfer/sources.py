"""Source tables as transfer uses them: homogeneous ones together, with the net that an alignment goes through."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from perf_assets.features.standardise import Scaler
from perf_assets.features.tables.unpaired import TransferTable
from perf_assets.models.common.blas_threads import keep_blas_to_one_thread
from perf_assets.models.transfer.alignment_starts import SourceRows
from perf_assets.models.transfer.source_net import SourceNet, SourceSettings

_HOMOGENEOUS = 0.8
"""Share of counters (of those of either table) that tables must have in common to be learned together."""


@dataclass(frozen=True, eq=False)
class Source:
    """Tables with the same counters, as far as they are the same; the net is trained when it is first asked for."""

    tables: tuple[TransferTable, ...]
    rows: SourceRows
    settings: SourceSettings = field(default_factory=SourceSettings)
    seed: int = 0

    @property
    def name(self) -> str:
        """Names of the tables, joined by +."""
        return "+".join(table.name for table in self.tables)

    @cached_property
    def net(self) -> SourceNet:
        """M_S, one for all tables."""
        keep_blas_to_one_thread()
        dataset = np.repeat(np.arange(len(self.tables)), [len(table) for table in self.tables])
        rows, settings = self.rows, self.settings
        return SourceNet.fit(
            rows.counters, rows.target, rows.counter_names, dataset=dataset, settings=settings, seed=self.seed
        )


def group_sources(
    tables: Sequence[TransferTable], *, settings: SourceSettings | None = None, seed: int = 0
) -> tuple[Source, ...]:
    """One source per group of tables with the same counters, as far as they are the same."""
    groups: list[list[TransferTable]] = []
    for table in tables:
        home = next((group for group in groups if _overlap(group, table) >= _HOMOGENEOUS), None)
        if home is None:
            groups.append([table])
        else:
            home.append(table)
    return tuple(Source(tuple(group), _rows(group), settings or SourceSettings(), seed) for group in groups)


def _overlap(group: Sequence[TransferTable], table: TransferTable) -> float:
    common, every = set(table.counter_names), set(table.counter_names)
    for other in group:
        common &= set(other.counter_names)
        every |= set(other.counter_names)
    return len(common) / len(every)


def _rows(group: Sequence[TransferTable]) -> SourceRows:
    common = set.intersection(*(set(table.counter_names) for table in group))
    names = tuple(name for name in group[0].counter_names if name in common)
    counters = np.vstack([table.counters[:, [table.counter_names.index(n) for n in names]] for table in group])
    return SourceRows(names, Scaler.fit(counters), counters, np.concatenate([table.target for table in group]))
