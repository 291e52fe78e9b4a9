"""Tables of the warehouse to samples of relative-performance vectors, one column per physical machine."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import VECTOR_FEATURES
from perf_assets.core.tables.runs import CONFIGURATION, VECTOR_FEATURES_TABLE
from perf_assets.features.fleet.samples import (
    FleetTables,
    argument_names,
    configuration_name,
    fleet_samples,
    uses_device,
)
from perf_assets.features.samples import HOST
from perf_assets.features.vectors import VectorSamples

RUN_FEATURES = (*(feature.name for feature in VECTOR_FEATURES), "ranks", "threads", "uses_gpus", "wall_seconds")
"""Features of a run: the canonical features of vectors, how it was run, and whether the program uses GPUs where a
machine has some; its own time comes last."""
VECTOR_QUERY = f"""
    SELECT machine, {", ".join(CONFIGURATION)}, coalesce(gpus, 0) > 0 AS on_gpus, wall_seconds,
        {", ".join(feature.name for feature in VECTOR_FEATURES)}
    FROM {VECTOR_FEATURES_TABLE.name} WHERE wall_seconds IS NOT NULL ORDER BY ALL
"""


@dataclass(frozen=True)
class _Runs:
    """Rows of the query that count, each with its configuration and its machine."""

    rows: pd.DataFrame
    names: list[str]
    machines: list[str]


def fleet_vectors(runs: pd.DataFrame, tables: FleetTables) -> VectorSamples:
    """Align the rows of `VECTOR_QUERY`; a machine of which only the benchmark is known has no column."""
    paired = fleet_samples(tables)
    named = _with_names(runs[runs["machine"].isin(paired.machines)], set(paired.configurations))
    if len(named.machines) < 2:
        raise BadInputError("vectors need two machines that ran the same configurations: land more runs")
    rows, names, machines = named.rows, named.names, named.machines
    row = rows["configuration"].map({name: i for i, name in enumerate(names)}).to_numpy().astype(np.intp)
    source = rows["machine"].map({name: i for i, name in enumerate(machines)}).to_numpy().astype(np.intp)
    log_seconds = np.full((len(names), len(machines)), np.nan)
    log_seconds[row, source] = np.log(rows["wall_seconds"].to_numpy(float))
    device_of = dict(zip(paired.machines, uses_device(paired), strict=True))
    has_device = np.array([device_of[machine] for machine in machines])
    on_gpus = rows["on_gpus"].to_numpy(bool)
    # A program that ran without GPUs on a machine that has some does not use them anywhere.
    on_host = np.zeros(len(names), bool)
    np.logical_or.at(on_host, row, has_device[source] & ~on_gpus)
    position = {name: i for i, name in enumerate(paired.machines)}
    views = np.array(
        [[position[f"{m}{HOST}" if host and device_of[m] else m] for m in machines] for host in on_host], np.intp
    )
    features = rows.assign(uses_gpus=(~on_host[row]).astype(float))[list(RUN_FEATURES)].to_numpy(float)
    # Arguments of workloads without counters; a run's own time stays the last of its features.
    named_arguments = argument_names(paired.counter_names)
    place = {name: i for i, name in enumerate(paired.configurations)}
    columns = [paired.counter_names.index(name) for name in named_arguments]
    in_paired = np.array([place[name] for name in names], np.intp)[row]
    arguments = paired.counters[views[row, source], in_paired][:, columns]
    features = np.hstack([features[:, :-1], arguments, features[:, -1:]])
    apps = rows.drop_duplicates("configuration").set_index("configuration").loc[names, "app"].to_numpy(np.str_)
    return VectorSamples(
        machines=tuple(machines),
        feature_names=(*RUN_FEATURES[:-1], *named_arguments, RUN_FEATURES[-1]),
        configurations=tuple(names),
        apps=apps,
        log_seconds=log_seconds,
        source=source,
        row=row,
        features=features,
        is_cpu=~on_gpus,
        paired=paired,
        views=views,
    )


def _with_names(runs: pd.DataFrame, paired: set[str]) -> _Runs:
    """Runs of configurations that are paired, sorted names of both."""
    texts = [configuration_name(key) for key in runs[list(CONFIGURATION)].itertuples(index=False, name=None)]
    named = runs.assign(configuration=texts)
    kept = named[named["configuration"].isin(paired)].reset_index(drop=True)
    return _Runs(kept, sorted(kept["configuration"].unique()), sorted(kept["machine"].unique()))
