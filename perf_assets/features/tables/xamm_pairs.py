"""Choice of the AMMs for the rows of a table of application runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.tables.xamm_applications import ApplicationTable


@dataclass(frozen=True)
class AmmSide:
    """AMMs that the source or the target of a row may have."""

    field: str
    """Field of the configuration, for messages."""
    column: str
    """Column of the application tables that names the machine of each row."""
    file: str
    encoder_version: str
    vectors: Mapping[str, Sequence[float]]
    """AMM of each machine."""
    machine: str | None
    """The only one that is meant, where the configuration names it."""


@dataclass(frozen=True, eq=False)
class PairAmms:
    """AMM of the source and of the target of each row of a table."""

    vectors: Floats
    """Rows x twice the width; NaN where a machine has no AMM."""
    encoder_version: str
    unknown: tuple[str, ...] = ()
    """Machines without an AMM."""

    @property
    def is_known(self) -> Mask:
        """Rows both of whose machines have AMMs."""
        return np.asarray(np.isfinite(self.vectors).all(axis=1))

    def without(self, rows: Mask) -> "PairAmms":
        """All rows but some."""
        return replace(self, vectors=self.vectors[~rows])


def pair_amms(table: ApplicationTable, source: AmmSide, target: AmmSide, *, needs_all: bool = True) -> PairAmms:
    """Take the machine that the configuration names, or the one each row names, or the only one there is.

    Where not all are needed, rows of machines without an AMM have none.
    """
    if source.encoder_version != target.encoder_version:
        raise BadInputError(
            f"{source.field} is of encoder {source.encoder_version}, {target.field} of {target.encoder_version}: "
            "make both in one run of func amm"
        )
    halves, unknown = [], set[str]()
    for side in (source, target):
        names = _machines(table, side)
        absent = sorted(set(names) - set(side.vectors))
        if absent and needs_all:
            raise BadInputError(
                f"{side.field}: {side.file} has no AMM of {listed(absent)}; there are {listed(sorted(side.vectors))}"
            )
        unknown.update(absent)
        nothing = [np.nan] * len(next(iter(side.vectors.values())))
        halves.append(np.array([side.vectors.get(name, nothing) for name in names], float))
    return PairAmms(np.hstack(halves), source.encoder_version, tuple(sorted(unknown)))


def _machines(table: ApplicationTable, side: AmmSide) -> list[str]:
    """Machine of each row."""
    names: list[str]
    given = table.labels.get(side.column)
    if given is not None:
        names = list(map(str, given))
        others = sorted(set(names) - {side.machine}) if side.machine is not None else []
        if others:
            raise BadInputError(
                f"{side.field} names {side.machine!r}, but column {side.column} of {table.name} has {listed(others)}"
            )
    elif side.machine is not None:
        names = [side.machine] * len(table.features)
    elif len(side.vectors) == 1:
        names = list(side.vectors) * len(table.features)
    else:
        raise BadInputError(
            f"{side.field}: {side.file} has {len(side.vectors)} machines and {table.name} no column {side.column}: "
            f"write {side.file}:MACHINE"
        )
    return names
