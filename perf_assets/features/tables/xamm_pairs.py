"""Which AMMs belong to the rows of a table of application runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.samples import Floats
from perf_assets.features.tables.xamm_applications import ApplicationTable


@dataclass(frozen=True)
class AmmSide:
    """AMMs that the source or the target of a row may have."""

    field: str
    """Of the configuration, for messages."""
    column: str
    """Of the application tables that names the machine of each row."""
    file: str
    encoder_version: str
    vectors: Mapping[str, Sequence[float]]
    """By machine."""
    machine: str | None
    """The only one that is meant, where the configuration names it."""


@dataclass(frozen=True, eq=False)
class PairAmms:
    """AMM of the source and of the target of each row of a table."""

    vectors: Floats
    """Rows x twice the width."""
    encoder_version: str


def pair_amms(table: ApplicationTable, source: AmmSide, target: AmmSide) -> PairAmms:
    """Take the machine that the configuration names, or the one each row names, or the only one there is."""
    if source.encoder_version != target.encoder_version:
        raise BadInputError(
            f"{source.field} is of encoder {source.encoder_version}, {target.field} of {target.encoder_version}: "
            "make both in one run of func amm"
        )
    halves = [np.array([side.vectors[name] for name in _machines(table, side)], float) for side in (source, target)]
    return PairAmms(np.hstack(halves), source.encoder_version)


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
    unknown = sorted(set(names) - set(side.vectors))
    if unknown:
        raise BadInputError(
            f"{side.field}: {side.file} has no AMM of {listed(unknown)}; there are {listed(sorted(side.vectors))}"
        )
    return names
