"""Plain tables, one per machine, to aligned samples."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from perf_assets.core.errors import BadInputError, listed
from perf_assets.features.arguments import ArgumentColumns
from perf_assets.features.samples import PairedSamples
from perf_assets.features.standardise import signed_log

ARGUMENTS = "args"
"""Column of the key that holds arguments of programs: numbers and words in it describe a workload."""


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table; all other columns with numbers are counters."""

    key: tuple[str, ...]
    """Columns that identify the configuration of a row."""
    app: str
    time: str
    benchmark_apps: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    """Regular expressions; a column in whose name one is found is not a counter."""


def pair_tables(tables: Mapping[str, pd.DataFrame], roles: Roles) -> PairedSamples:
    """Align the tables on the key. Rows that ran on one machine only are left out, with a note."""
    if len(tables) < 2:
        raise BadInputError("relative performance needs the tables of at least 2 machines")
    notes: list[str] = []
    indexed = {machine: _indexed(machine, table, roles, notes) for machine, table in tables.items()}
    index, apps = _configurations(indexed, roles, notes)
    names = _counters(indexed, roles, notes)
    described = _described_by_keys(index, roles, apps, has_counters=bool(names))
    if not names and described.empty:
        raise BadInputError("no numeric column is left that all machines have and that varies: nothing to learn from")
    if not described.empty:
        beside = f"beside {len(names)} counters" if names else "there are no counters"
        notes.append(
            f"{described.shape[1]} columns say how workloads were run ({beside}): {listed(list(described.columns))}"
        )
    is_benchmark = np.isin(apps, roles.benchmark_apps)
    aligned = [table.reindex(index) for table in indexed.values()]
    log_seconds = np.log(np.stack([table[roles.time].to_numpy(float) for table in aligned]))
    counters = np.stack([table[names].to_numpy(float) for table in aligned])
    samples = PairedSamples(
        machines=tuple(tables),
        counter_names=(*names, *map(str, described.columns)),
        configurations=tuple(" ".join(map(str, key)) for key in index),
        apps=apps,
        is_benchmark=is_benchmark,
        counters=np.concatenate(
            [counters, np.where(np.isfinite(log_seconds)[:, :, None], described.to_numpy(float)[None], np.nan)], axis=2
        ),
        log_seconds=log_seconds,
    )
    _check(samples, roles)
    return replace(samples, notes=tuple(notes))


def with_specification(samples: PairedSamples, table: pd.DataFrame, machine_column: str) -> PairedSamples:
    """Add machine specifications: one row per machine, numeric columns, logarithms of them."""
    named = table.assign(**{machine_column: table[machine_column].astype(str)}).set_index(machine_column)
    absent = [machine for machine in samples.machines if machine not in named.index]
    if absent:
        raise BadInputError(f"the specification has no row for {listed(absent)}")
    if named.index.has_duplicates:
        raise BadInputError("the specification has several rows for one machine")
    numeric = named.select_dtypes("number").loc[list(samples.machines)]
    values = signed_log(numeric.to_numpy(float))
    usable = np.isfinite(values).all(axis=0) & (np.ptp(values, axis=0) > 0)
    if not usable.any():
        raise BadInputError("the specification has no numeric column that differs between machines")
    names = tuple(map(str, numeric.columns[usable]))
    return replace(samples, specification=values[:, usable], specification_names=names)


def _indexed(machine: str, table: pd.DataFrame, roles: Roles, notes: list[str]) -> pd.DataFrame:
    """The table by its key, each configuration once, with a positive time."""
    missing = [name for name in (*roles.key, roles.app, roles.time) if name not in table.columns]
    if missing:
        raise BadInputError(f"{machine}: no column {listed(missing)}; there are {listed(list(table.columns))}")
    if not is_numeric_dtype(table[roles.time]):
        raise BadInputError(f"{machine}: time column {roles.time!r} holds text")
    usable = table[[*roles.key, roles.app, roles.time]].notna().all(axis=1) & (table[roles.time] > 0)
    if not usable.all():
        notes.append(f"{machine}: {int((~usable).sum())} rows without a key or a positive time are left out")
    keys = [table[name].map(key_text) for name in roles.key]
    indexed = table[usable].set_axis(pd.MultiIndex.from_arrays([key[usable] for key in keys]), axis=0)
    repeated = indexed.index.duplicated()
    if repeated.any():
        if (indexed.groupby(level=list(range(len(roles.key))))[roles.app].nunique() > 1).any():
            raise _ambiguous(roles)
        notes.append(f"{machine}: {int(repeated.sum())} rows repeat a key; the first row of each is used")
    return indexed[~repeated]


def _ambiguous(roles: Roles) -> BadInputError:
    return BadInputError(f"the key does not tell applications apart: add {roles.app} to it")


def key_text(value: object) -> str:
    """Keys are compared as text, and 2 is 2.0."""
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def _configurations(
    tables: Mapping[str, pd.DataFrame], roles: Roles, notes: list[str]
) -> tuple[pd.MultiIndex, "np.ndarray[tuple[int], np.dtype[np.str_]]"]:
    """Keys that ran on two machines at least (benchmarks: on all), and their applications."""
    apps = pd.concat([table[roles.app].astype(str) for table in tables.values()])
    counts = apps.groupby(level=list(range(len(roles.key))), sort=False).agg(["size", "first", "nunique"])
    if (counts["nunique"] > 1).any():
        raise _ambiguous(roles)
    is_benchmark = counts["first"].isin(roles.benchmark_apps)
    wanted = np.where(is_benchmark, len(tables), 2)
    kept = (counts["size"] >= wanted).to_numpy()
    for alone, what in ((~is_benchmark & ~kept, "on one machine only"), (is_benchmark & ~kept, "not on every machine")):
        if alone.any():
            kind = "benchmark configurations" if what.startswith("not") else "configurations"
            notes.append(f"{int(alone.sum())} {kind} ran {what} and are left out")
    complete = int((counts["size"] == len(tables)).sum())
    notes.append(f"{int(kept.sum())} configurations are paired, {complete} of them on all {len(tables)} machines")
    chosen = counts[kept]
    index = chosen.index if isinstance(chosen.index, pd.MultiIndex) else pd.MultiIndex.from_arrays([chosen.index])
    return index, chosen["first"].to_numpy(dtype=np.str_)


def _counters(tables: Mapping[str, pd.DataFrame], roles: Roles, notes: list[str]) -> list[str]:
    """Numeric columns of all tables that vary within a machine."""
    numeric = [
        {name for name in table.columns if is_numeric_dtype(table[name]) and table[name].notna().any()}
        for table in tables.values()
    ]
    first = next(iter(tables.values()))
    special = {*roles.key, roles.app, roles.time}
    shared = [name for name in first.columns if all(name in names for names in numeric) and name not in special]
    everywhere = set.intersection(*(set(table.columns) for table in tables.values()))
    texts = [n for n in first.columns if n in everywhere and n not in special and n not in shared]
    dropped = [name for name in shared if any(re.search(pattern, name) for pattern in roles.drop)]
    constant = [n for n in shared if n not in dropped and all(t[n].nunique() <= 1 for t in tables.values())]
    single = len(set.union(*numeric) - set(shared) - special)
    for names, why in (
        (texts, "hold text or nothing on some machine and are ignored"),
        (dropped, "are dropped as asked"),
        (constant, "do not vary within a machine (settings or specification, not counters) and are dropped"),
    ):
        if names:
            notes.append(f"{len(names)} columns {why}: {listed(names)}")
    if single:
        notes.append(f"{single} numeric columns are not on all machines and are ignored")
    return [name for name in shared if name not in dropped and name not in constant]


def _described_by_keys(
    index: pd.MultiIndex, roles: Roles, apps: "np.ndarray[tuple[int], np.dtype[np.str_]]", *, has_counters: bool
) -> pd.DataFrame:
    """Features of each configuration from arguments in the key; without counters, also its other numbers, as ranks."""
    if ARGUMENTS not in roles.key:
        return pd.DataFrame(index=range(len(index)))
    args = [str(text) for text in index.get_level_values(roles.key.index(ARGUMENTS))]
    columns = ArgumentColumns.of(apps.tolist(), args)
    described = pd.DataFrame(columns.table(apps.tolist(), args), columns=list(columns.names))
    for position, name in enumerate(roles.key):
        numbers = pd.to_numeric(pd.Series(index.get_level_values(position)), errors="coerce")
        if not has_counters and name not in (ARGUMENTS, roles.app) and numbers.notna().all() and numbers.nunique() > 1:
            described[name] = numbers.to_numpy(float)
    return described


def _check(samples: PairedSamples, roles: Roles) -> None:
    absent = sorted(set(roles.benchmark_apps) - set(samples.apps.tolist()))
    if absent:
        raise BadInputError(f"benchmark application {listed(absent)} has no configuration that ran on every machine")
    if not len(samples.examples()):
        raise BadInputError("no application configuration ran on two machines: is the key right?")
