"""RAJAPerf runs of a machine over time: how long groups of kernels took in every run, against the first of them."""

import numpy as np
import pandas as pd

from perf_assets.core.tables.health import CACHE, COMPUTE, DEVICE, LAUNCH, OTHER
from perf_assets.core.tables.landing import BUNDLES, TIMINGS
from perf_assets.features.fleet.descriptions import kernel_kinds

HISTORY_QUERY = f"""
    WITH usable AS (
        SELECT bundle || '/' || run AS run, collected_at, kernel, problem_size, variant, tuning, environment,
            seconds_per_rep, bytes_per_rep, flops_per_rep, timings.is_simulated,
            coalesce(timings.ranks, 0) AS ranks, coalesce(threads, 1) AS threads,
            CASE WHEN regexp_matches(variant, 'CUDA|HIP|SYCL|OpenMPTarget') THEN 'device'
                 WHEN variant LIKE '%OpenMP' THEN 'node' WHEN variant LIKE '%Seq%' THEN 'core' END AS place
        FROM {TIMINGS.name} AS timings JOIN {BUNDLES.name} AS bundles USING (machine, bundle)
        WHERE machine = $machine AND is_valid AND seconds_per_rep > 0 AND problem_size IS NOT NULL
            AND collected_at IS NOT NULL
    ), settings AS (
        SELECT run, 'size ' || mode(problem_size) || CASE WHEN max(ranks) > 0 THEN ', ' || max(ranks) || ' ranks'
            ELSE '' END || ', ' || max(threads) || ' threads' AS setting
        FROM usable GROUP BY run
    )
    SELECT * FROM usable JOIN settings USING (run) WHERE place IS NOT NULL ORDER BY ALL
"""
"""Kernel runs that may be used, in all environments: a new compiler is a change too."""
_DEVICE_FLOPS_PER_BYTE = 8.0
"""Operations per byte from which on a GPU's arithmetic limits, not its memory: peaks are 8 to 20 apart."""
_CELL = ["setting", "place", "kernel", "problem_size", "variant", "tuning"]
GROUP = ["setting", "place", "kind"]


def with_kinds(history: pd.DataFrame) -> pd.DataFrame:
    """Rows of `HISTORY_QUERY` with what limits each kernel."""
    known = ["kernel", "problem_size", "bytes_per_rep", "flops_per_rep"]
    sizes = history[known].drop_duplicates(known[:2]).copy()
    names = [f"{kernel} {size} any" for kernel, size in zip(sizes["kernel"], sizes["problem_size"], strict=True)]
    sizes["kind"] = [kind or OTHER for kind in kernel_kinds(history[known], names)]
    rows = history.merge(sizes[["kernel", "problem_size", "kind"]], on=["kernel", "problem_size"])
    # What stays in a processor's caches is over on a GPU before the next launch; more operations keep a GPU busy.
    on_device = rows["place"] == DEVICE
    is_light = rows["flops_per_rep"] < _DEVICE_FLOPS_PER_BYTE * rows["bytes_per_rep"]
    rows.loc[on_device & (rows["kind"] == CACHE), "kind"] = LAUNCH
    rows.loc[on_device & (rows["kind"] == COMPUTE) & is_light, "kind"] = OTHER
    return rows


def levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Level of each group in every run but its first: median over its kernels of log(seconds / first seconds).

    `rows` are of `with_kinds`. Columns: those of GROUP, run, collected_at, level, kernels_count, environment.
    """
    ordered = rows.sort_values(["collected_at", "run"])
    logs = pd.Series(np.log(ordered["seconds_per_rep"]), ordered.index)
    first = ordered.assign(logs=logs).groupby(_CELL)[["logs", "run"]].transform("first")
    moved = ordered.assign(level=logs - first["logs"])[ordered["run"] != first["run"]]
    return (
        moved.groupby([*GROUP, "collected_at", "run"])
        .agg(level=("level", "median"), kernels_count=("kernel", "nunique"), environment=("environment", "first"))
        .reset_index()
    )
