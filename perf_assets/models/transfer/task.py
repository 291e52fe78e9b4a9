"""One transfer: from which sources to which target, which features are the same, and what follows from that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.features.tables.unpaired import TransferTable, same_counters
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.transfer.alignment import Aligned, Alignment
from perf_assets.models.transfer.alignment_starts import SourceRows, Start, by_transport, matched
from perf_assets.models.transfer.source_functions import SourceGroup
from perf_assets.models.transfer.source_net import SourceNet, SourceNetSettings

_HOMOGENEOUS = 0.8
"""Share of counters (of those of either table) that tables must have in common to be learned together."""


@dataclass(frozen=True, eq=False)
class Source:
    """Tables with the same counters, as far as they are the same; the net is trained when it is first asked for."""

    tables: tuple[TransferTable, ...]
    rows: SourceRows
    settings: SourceNetSettings = field(default_factory=SourceNetSettings)
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


def group_sources(tables: Sequence[TransferTable], settings: SourceNetSettings | None = None) -> tuple[Source, ...]:
    """One source per group of tables with the same counters, as far as they are the same."""
    groups: list[list[TransferTable]] = []
    for table in tables:
        home = next((group for group in groups if _overlap(group, table) >= _HOMOGENEOUS), None)
        if home is None:
            groups.append([table])
        else:
            home.append(table)
    return tuple(Source(tuple(group), _rows(group), settings or SourceNetSettings()) for group in groups)


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


_LEAST_WEIGHT = 0.05
"""Least weight of a source, relative to all: those below are left out."""
_MOST_RECENT = 32
"""Alignments that are kept: those of a fold are asked for several times."""


@dataclass(frozen=True, eq=False)
class TransferTask:
    """A target and its sources."""

    sources: tuple[Source, ...]
    target: TransferTable
    same: tuple[Mapping[str, str], ...]
    """Source counter by target counter, per source."""

    @classmethod
    def of(
        cls,
        tables: Sequence[TransferTable],
        target: TransferTable,
        catalogue: Catalogue | None = None,
        settings: SourceNetSettings | None = None,
    ) -> "TransferTask":
        """Task of tables of sources; counters are the same by name, or by the quantity that the catalogue gives."""
        if not tables:
            raise BadInputError("a transfer needs at least one source")
        sources = group_sources(tables, settings)
        same = tuple(same_counters(one.rows.counter_names, target.counter_names, catalogue) for one in sources)
        return cls(sources, target, same)

    @cached_property
    def groups(self) -> tuple[SourceGroup, ...]:
        """Knowledge of the sources about features that they share with the target; others have no part."""
        groups = []
        for source, same in zip(self.sources, self.same, strict=True):
            if same:
                group = SourceGroup.fit(source.tables, same, self.target)
                if group.functions:
                    groups.append(group)
        return tuple(groups)

    @cached_property
    def expected(self) -> Floats:
        """Rows of the target x source functions: what each of them expects."""
        logs = signed_log(self.target.counters)
        by_group = [group.expected(group.inputs(logs)) for group in self.groups]
        return np.hstack(by_group) if by_group else np.empty((len(self.target), 0))

    @property
    def start_kind(self) -> str:
        """The surest start of M_A: by name where a name is shared, else by values (co-optimal transport)."""
        return "matched" if any(self.same) else "transport"

    def starts(self, kind: str, shots: Indices) -> list[Start | None]:
        """A start of M_A for each source; None where it has none of this kind."""
        if kind == "matched":
            names = self.target.counter_names
            return [matched(source.rows, names, same) for source, same in zip(self.sources, self.same, strict=True)]
        counters, target = self.target.counters[shots], self.target.target[shots]
        return [by_transport(source.rows, counters, target) for source in self.sources]

    def fit_alignment(self, kind: str, shots: Indices, *, is_fixed: bool = False) -> Aligned:
        """M_A on the shots through every source that has such a start; likelier ones count more."""
        key = (kind, shots.tobytes(), is_fixed)
        if key not in self._alignments:
            if len(self._alignments) >= _MOST_RECENT:
                self._alignments.pop(next(iter(self._alignments)))
            self._alignments[key] = self._fit_alignment(kind, shots, is_fixed=is_fixed)
        return self._alignments[key]

    @cached_property
    def _alignments(self) -> dict[tuple[str, bytes, bool], Aligned]:
        return {}

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
