"""Tables of runs as registered models take them: columns, checks, and what a model needs of them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from mlflow.types import ColSpec, DataType

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet_samples import RUN_COLUMNS, configuration_name
from perf_assets.features.paired import HOST, Indices, PairedSamples
from perf_assets.models.stored_samples import Questions

_NEEDED = ("source_machine", "app", "ranks", "threads", "wall_seconds")
COLUMNS = (
    ColSpec(DataType.string, "source_machine"),
    ColSpec(DataType.string, "app"),
    ColSpec(DataType.string, "args", required=False),
    ColSpec(DataType.long, "ranks"),
    ColSpec(DataType.long, "threads"),
    ColSpec(DataType.boolean, "uses_gpus", required=False),
    ColSpec(DataType.double, "wall_seconds"),
    *(ColSpec(DataType.double, name, required=False) for name in RUN_COLUMNS if name not in _NEEDED),
)
"""Of a run on its source machine. `uses_gpus`: whether the program runs on GPUs where a machine has some (yes where
not given)."""


def questions(table: pd.DataFrame, targets: Sequence[str], samples: PairedSamples) -> Questions:
    """One question a row: the time of the run on the target."""
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise BadInputError(f"the questions lack the column {missing[0]}")
    if not ((table["wall_seconds"] > 0) & (table["wall_seconds"] < np.inf)).all():
        raise BadInputError("wall_seconds must be a number above 0 in every row: it is the time on the source machine")
    on_gpus = (table["uses_gpus"].fillna(True) if "uses_gpus" in table else pd.Series(True, table.index)).astype(bool)
    args = table["args"].fillna("") if "args" in table else pd.Series("", table.index)
    keys = zip(table["app"], args, table["ranks"], table["threads"], strict=True)
    return Questions(
        _seen_as(table["source_machine"], on_gpus, samples),
        _seen_as(targets, on_gpus, samples),
        table["app"].astype(str).tolist(),
        [configuration_name(key) for key in keys],
        table.reindex(columns=list(samples.counter_names)).to_numpy(float),
        np.log(table["wall_seconds"].to_numpy(float)),
    )


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


def _seen_as(machines: Sequence[str] | pd.Series, on_gpus: pd.Series, samples: PairedSamples) -> list[str]:
    """A machine with GPUs is another one to a program that does not use them."""
    return [
        f"{machine}{HOST}" if not uses_gpus and f"{machine}{HOST}" in samples.machines else str(machine)
        for machine, uses_gpus in zip(machines, on_gpus, strict=True)
    ]
