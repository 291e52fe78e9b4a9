"""Tables of runs as registered models take them: columns, checks, and what a model needs of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from mlflow.types import ColSpec, DataType
from numpy.typing import NDArray

from perf_assets.core.errors import BadInputError
from perf_assets.features.arguments import described_by
from perf_assets.features.fleet.samples import RUN_COLUMNS, argument_names, configuration_name, is_bare
from perf_assets.features.samples import HOST, Floats, Indices, Mask, PairedSamples
from perf_assets.models.common.questions import Questions

_FEW_ROWS = 50
NEEDED = ("source_machine", "app", "ranks", "threads", "wall_seconds")
CONFIGURATION = (
    ColSpec(DataType.string, "source_machine"),
    ColSpec(DataType.string, "app"),
    ColSpec(DataType.string, "args", required=False),
    ColSpec(DataType.long, "ranks"),
    ColSpec(DataType.long, "threads"),
    ColSpec(DataType.boolean, "uses_gpus", required=False),
    ColSpec(DataType.double, "wall_seconds"),
)
"""Columns of a run that every model takes. `uses_gpus`: whether the program runs on GPUs where a machine has some (yes
where not given)."""
COLUMNS = (
    *CONFIGURATION,
    *(ColSpec(DataType.double, name, required=False) for name in RUN_COLUMNS if name not in NEEDED),
)
"""Columns of a run on its source machine."""


def check_runs(columns: Mapping[str, Any] | pd.DataFrame) -> None:
    """Refuse runs that lack a column that every model needs, or whose time is no time."""
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise BadInputError(f"the questions lack the column {missing[0]}")
    seconds = columns["wall_seconds"].astype(float)
    if not ((seconds > 0) & (seconds < np.inf)).all():
        raise BadInputError("wall_seconds must be a number above 0 in every row: it is the time on the source machine")


def questions(table: pd.DataFrame, targets: Sequence[str], samples: PairedSamples) -> Questions:
    """One question per row: the time of the run on the target."""
    columns = _columns(table)
    check_runs(columns)
    apps, ranks, threads = (columns[name].tolist() for name in ("app", "ranks", "threads"))
    args = _texts(columns["args"]) if "args" in columns else [""] * len(table)
    on_gpus = _flags(columns["uses_gpus"]) if "uses_gpus" in columns else np.ones(len(table), bool)
    counters = np.full((len(table), len(samples.counter_names)), np.nan)
    for position, name in enumerate(samples.counter_names):
        if name in columns:
            counters[:, position] = columns[name]
    counters = with_arguments(counters, samples.counter_names, list(map(str, apps)), list(map(str, args)))
    return Questions(
        sources=_seen_as(columns["source_machine"].tolist(), on_gpus, samples),
        targets=_seen_as(targets, on_gpus, samples),
        apps=list(map(str, apps)),
        configurations=[configuration_name(key) for key in zip(apps, args, ranks, threads, strict=True)],
        counters=counters,
        log_seconds=np.log(columns["wall_seconds"].astype(float)),
    )


def with_arguments(counters: Floats, names: Sequence[str], apps: Sequence[str], args: Sequence[str]) -> Floats:
    """Columns of runs, those without counters described by their arguments, where a model has columns of arguments."""
    of_arguments = argument_names(names)
    if not of_arguments:
        return counters
    bare = np.flatnonzero(is_bare(counters))
    columns = np.array([names.index(name) for name in of_arguments], np.intp)
    rows = bare.tolist()
    values = described_by(of_arguments, [apps[row] for row in rows], [args[row] for row in rows])
    counters = counters.copy()
    counters[np.ix_(bare, columns)] = values
    return counters


def example_runs(samples: PairedSamples, sources: Indices, rows: Indices, *, uses_gpus: Sequence[bool]) -> pd.DataFrame:
    """Runs that are known, as a table of questions for people to copy."""
    frame = pd.DataFrame(samples.counters[sources, rows][:, : len(RUN_COLUMNS)], columns=list(RUN_COLUMNS))
    return frame.assign(
        source_machine=[samples.machines[source].removesuffix(HOST) for source in sources],
        app=samples.apps[rows],
        args="",
        ranks=frame["ranks"].astype(int),
        threads=frame["threads"].astype(int),
        uses_gpus=list(uses_gpus),
    )[[column.name for column in COLUMNS]]


def _columns(table: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Arrays by name. For a few rows it is much quicker to take the whole table at once, as objects."""
    if len(table) <= _FEW_ROWS:
        return dict(zip(map(str, table.columns), table.to_numpy(object).T, strict=True))
    return {str(name): values.to_numpy() for name, values in table.items()}


def _texts(values: NDArray[Any]) -> list[Any]:
    """Texts, empty where missing."""
    return ["" if value is None or value != value else value for value in values.tolist()]


def _flags(values: NDArray[Any]) -> Mask:
    """Flags, true where not given."""
    return values if values.dtype == bool else np.where(pd.isna(values), True, values).astype(bool)


def _seen_as(machines: Sequence[str], on_gpus: Mask, samples: PairedSamples) -> list[str]:
    """Machines as programs see them: one with GPUs is another machine to a program that does not use them."""
    names = list(map(str, machines))
    if on_gpus.all():
        return names
    on_host = {name: f"{name}{HOST}" for name in set(names) if f"{name}{HOST}" in samples.machines}
    return [
        name if uses_gpus else on_host.get(name, name) for name, uses_gpus in zip(names, on_gpus.tolist(), strict=True)
    ]
