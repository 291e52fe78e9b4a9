"""Plain tables of benchmark runs, a row for each setting and a column for each kernel, of one machine or of many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.measurements import KernelTiming
from perf_assets.features.samples import Floats

MACHINE = "machine"
SIMULATED = "is_simulated"
LABELS = frozenset(
    ("variant", "tuning", "size", "problem_size", "ranks", "threads", "nodes", "gpus", "setting", "app", "args", "run")
)
"""Columns that say which setting a row is, even where they hold numbers; so does every column of text."""


@dataclass(frozen=True, eq=False)
class BenchmarkTable:
    """Times of a benchmark suite: rows x kernels."""

    machines: NDArray[np.str_]
    """Machine of each row; rows of one machine follow each other."""
    settings: NDArray[np.str_]
    """Setting of each row; a machine has a setting once."""
    kernels: tuple[str, ...]
    """Kernels that ran on all machines."""
    times: Floats
    """Above 0, of whatever unit; NaN where a kernel was not run in a setting."""
    is_simulated: bool
    notes: tuple[str, ...]

    @property
    def machine_names(self) -> list[str]:
        """Machines in the order of the tables."""
        return list(dict.fromkeys(self.machines.tolist()))


def benchmark_table(tables: Mapping[str, pd.DataFrame]) -> BenchmarkTable:
    """Put tables under each other. A table is of the machine it is named by, or has a column `machine`."""
    parts = [_with_machine(name, table) for name, table in tables.items()]
    names = [machine for part in parts for machine in part[MACHINE].unique()]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInputError(f"machine {twice[0]!r} is in two benchmark tables: put its rows into one")
    kernels, notes = _kernels({name: part for part in parts for name, part in part.groupby(MACHINE)})
    rows = pd.concat([_by_setting(part, kernels) for part in parts])
    rows = rows[rows[list(kernels)].notna().any(axis=1)]
    _check_times(rows, kernels)
    rows = rows.sort_values(MACHINE, key=lambda machines: machines.map(names.index), kind="stable")
    merged = rows.groupby([MACHINE, "setting"], sort=False)[list(kernels)].median()
    if len(merged) < len(rows):
        notes.append(f"{len(rows) - len(merged)} benchmark rows repeat a setting; the median of each setting is used")
    index = merged.index
    return BenchmarkTable(
        machines=index.get_level_values(MACHINE).to_numpy(np.str_),
        settings=index.get_level_values("setting").to_numpy(np.str_),
        kernels=kernels,
        times=merged.to_numpy(float),
        is_simulated=any(says_simulated(part) for part in parts),
        notes=tuple(notes),
    )


def suite_tables(timings: Mapping[str, Sequence[KernelTiming]]) -> dict[str, pd.DataFrame]:
    """Benchmark tables from RAJAPerf runs, one per machine: median of repeated runs.

    Actual problem sizes differ a little by kernel, so a setting has the rank of the size among those of its kernel;
    the most threads that a machine ran with are `all` of them, whatever their number.
    """
    rows = pd.DataFrame(
        [
            (
                machine,
                t.variant,
                t.tuning,
                t.ranks or 0,
                t.threads or 0,
                t.kernel,
                t.problem_size or 0,
                t.seconds_per_rep,
            )
            for machine, of_machine in timings.items()
            for t in of_machine
            if t.is_valid and t.seconds_per_rep and t.seconds_per_rep > 0
        ],
        columns=[MACHINE, "variant", "tuning", "ranks", "threads", "kernel", "size", "seconds"],
    )
    empty = [machine for machine in timings if machine not in set(rows[MACHINE])]
    if empty:
        raise BadInputError(f"{empty[0]}: its RAJAPerf results hold no valid time")
    rows["size"] = "size " + rows.groupby("kernel")["size"].rank("dense").astype(int).astype(str)
    is_most = rows["threads"] == rows.groupby(MACHINE)["threads"].transform("max")
    rows["threads"] = rows["threads"].astype(str).mask(is_most, "all").mask(rows["variant"].str.contains("Seq"), "one")
    setting = [MACHINE, "variant", "tuning", "ranks", "threads", "size"]
    wide = rows.pivot_table(index=setting, columns="kernel", values="seconds", aggfunc="median").reset_index()
    return {str(name): table.dropna(axis=1, how="all") for name, table in wide.groupby(MACHINE)}


def says_simulated(table: pd.DataFrame) -> bool:
    """Whether a column `is_simulated` says so for some row."""
    return SIMULATED in table and bool(table[SIMULATED].astype(str).str.lower().isin(("1", "1.0", "true", "yes")).any())


def as_text(value: object) -> str:
    """Labels are compared as text, and 2 is 2.0."""
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def _with_machine(name: str, table: pd.DataFrame) -> pd.DataFrame:
    if MACHINE not in table:
        return table.assign(**{MACHINE: name})
    if table[MACHINE].isna().any():
        raise BadInputError(f"{name}: column {MACHINE!r} is empty in row {int(np.argmax(table[MACHINE].isna()))}")
    return table.assign(**{MACHINE: table[MACHINE].map(as_text)})


def _is_label(table: pd.DataFrame, name: str) -> bool:
    return name.lower() in LABELS or not is_numeric_dtype(table[name])


def _kernels(tables: Mapping[object, pd.DataFrame]) -> tuple[tuple[str, ...], list[str]]:
    columns = {
        str(machine): [
            str(name)
            for name in table.columns
            if name not in (MACHINE, SIMULATED) and not _is_label(table, name) and table[name].notna().any()
        ]
        for machine, table in tables.items()
    }
    for machine, names in columns.items():
        if not names:
            raise BadInputError(
                f"{machine}: no column with kernel times; there are {listed(list(map(str, tables[machine])))}"
            )
    everywhere = set.intersection(*map(set, columns.values()))
    if not everywhere:
        raise BadInputError(
            f"{listed(list(columns))} have no kernel in common: are these machines? Each table or sub-folder is one"
        )
    shared = tuple(name for name in next(iter(columns.values())) if name in everywhere)
    others = len(set.union(*map(set, columns.values())) - everywhere)
    return shared, [f"{others} kernels are not on all machines and are left out"] if others else []


def _by_setting(table: pd.DataFrame, kernels: tuple[str, ...]) -> pd.DataFrame:
    """Machine, setting as one text, and kernel times. Without labels nothing says that two rows are alike."""
    labels = [n for n in table.columns if n not in (MACHINE, SIMULATED) and n not in kernels and _is_label(table, n)]
    rows = table[[MACHINE, *kernels]].copy()
    if labels:
        texts = table[sorted(labels)].map(lambda value: "" if pd.isna(value) else as_text(value))
        rows["setting"] = texts.agg(" ".join, axis=1)
    else:
        rows["setting"] = [f"row {row} of {machine}" for row, machine in enumerate(table[MACHINE])]
    return rows


def _check_times(rows: pd.DataFrame, kernels: tuple[str, ...]) -> None:
    for kernel in kernels:
        wrong = rows[rows[kernel] <= 0]
        if len(wrong):
            first = wrong.iloc[0]
            raise BadInputError(
                f"{first[MACHINE]}: kernel {kernel!r} has the time {first[kernel]:g}: times are above 0, "
                "and what was not run is an empty cell"
            )
