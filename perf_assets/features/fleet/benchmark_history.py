"""RAJAPerf runs of a machine over time: how long groups of kernels took in every run, against the first of them."""

import numpy as np
import pandas as pd

from perf_assets.core.tables.health import CACHE, COMPUTE, DEVICE, LAUNCH, OTHER
from perf_assets.core.tables.landing import BUNDLES, TIMINGS
from perf_assets.core.tables.runs import FEATURES
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
PORTFOLIO_QUERY = f"""
    SELECT app, coalesce(gpus, 0) > 0 AS on_gpus, sum(wall_seconds * runs_count) AS seconds
    FROM {FEATURES.name} WHERE machine = $machine AND wall_seconds IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
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


def portfolio_shares(rows: pd.DataFrame, runs: pd.DataFrame, behaves_like: pd.DataFrame) -> pd.DataFrame:
    """Share of the time of a machine's application runs that behaves like each group of kernels.

    Columns: those of GROUP, portfolio_share_ratio.

    `rows` are of `with_kinds`, `runs` of `PORTFOLIO_QUERY`, `behaves_like` of `model_source__behaves_like`, of all
    machines: which machine a run was measured on hardly matters. Several settings of one place share alike. Empty where
    nothing is known of the applications.
    """
    by_app = behaves_like.groupby(["app", "kernel"])["attention_ratio"].mean().reset_index()
    known = runs[runs["app"].isin(by_app["app"])].merge(by_app, on="app")
    if known.empty:
        return pd.DataFrame(columns=[*GROUP, "portfolio_share_ratio"]).astype({"portfolio_share_ratio": float})
    known["place"] = np.where(known["on_gpus"], DEVICE, "node")
    of_kernel = (known["seconds"] * known["attention_ratio"]).groupby([known["place"], known["kernel"]]).sum()
    of_kernel = of_kernel / of_kernel.sum()
    cells = rows.drop_duplicates(_CELL)
    in_group = cells.groupby([*GROUP, "kernel"]).size().rename("cells").reset_index()
    in_group["part"] = in_group["cells"] / in_group.groupby(["setting", "place", "kernel"])["cells"].transform("sum")
    in_group["part"] /= in_group.groupby(["place", "kernel"])["setting"].transform("nunique")
    shares = in_group.merge(of_kernel.rename("share").reset_index(), on=["place", "kernel"], how="left")
    weighted = shares.assign(portfolio_share_ratio=shares["part"] * shares["share"].fillna(0.0))
    return weighted.groupby(GROUP)["portfolio_share_ratio"].sum().reset_index()
