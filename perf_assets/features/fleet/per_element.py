"""Kernel times per element of a node, which compare machines whose RAJAPerf runs had different sizes.

Centres run RAJAPerf at sizes of their own, on one core, on all ranks of a node, or on its GPUs, so that no kernel ran
at one size everywhere. What can be compared is the time in which a node, with all that the run used of it, does one
repetition over a number of elements: the problem size of a process times the processes.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.samples import NODE, USABLE_KERNELS, kernel_times, well_described

ELEMENTS = 2**25
"""Elements of a node that times are given for: 32 Mi, the usual size of a whole node."""
_LEAST_GROWTH = 0.2
"""Power of the size with which the work per element of a kernel may not grow or shrink: a matrix product has 1/2, the
surface of a cube -1/3, and rounding of sizes some hundredths."""
_LEAST_SPREAD = 2.0
"""Smallest ratio of the largest to the smallest size for which a power can be fitted."""
NODE_KERNELS_QUERY = f"""
    WITH usable AS ({USABLE_KERNELS}), used AS (
        SELECT *, greatest(coalesce(ranks, 1), 1) AS processes,
            regexp_matches(variant, 'CUDA|HIP|SYCL|OpenMPTarget') AS is_on_device,
            processes * CASE WHEN is_threaded THEN threads ELSE 1 END AS width
        FROM usable
    ), widest AS (
        SELECT * FROM used QUALIFY is_on_device = bool_or(is_on_device) OVER (PARTITION BY machine)
            AND width = max(width) OVER (PARTITION BY machine, is_on_device)
    ), repeated AS (
        SELECT machine, kernel, problem_size, processes, median(seconds_per_rep) AS seconds_per_rep,
            max(bytes_per_rep) AS bytes_per_rep, max(flops_per_rep) AS flops_per_rep
        FROM widest GROUP BY machine, kernel, problem_size, processes, variant, tuning
    )
    SELECT machine, kernel, problem_size, processes, min(seconds_per_rep) AS seconds_per_rep,
        max(bytes_per_rep) AS bytes_per_rep, max(flops_per_rep) AS flops_per_rep
    FROM repeated GROUP BY machine, kernel, problem_size, processes ORDER BY ALL
"""
"""Kernel runs with the most processes and threads that a machine has, on its GPUs if it has any: the fastest variant.
Sizes, bytes and operations are those of one process."""


def kernels_per_element(rows: pd.DataFrame, machine: str | None = None) -> pd.DataFrame:
    """Kernel times as `KERNELS_QUERY` gives them, for `ELEMENTS` of a node, from rows of `NODE_KERNELS_QUERY`.

    Rows are of all machines, which say together what depends on the size; times are of all of them, or of one.

    Between sizes that were run the logarithm of the time per element is interpolated over that of the elements; outside
    of them the nearest size is taken. Kernels whose work per element depends on the size are left out.
    """
    rows = rows[~rows["kernel"].isin(_depending_on_size(rows))]
    rows = rows if machine is None else rows[rows["machine"] == machine]
    rows = rows.assign(elements=rows["problem_size"] * rows["processes"]).sort_values("elements")
    times = [
        {
            "machine": machine,
            "kernel": kernel,
            "problem_size": ELEMENTS,
            "placement": NODE,
            "seconds_per_rep": ELEMENTS * _at(ELEMENTS, runs, "seconds_per_rep"),
            "bytes_per_rep": ELEMENTS * _at(ELEMENTS, runs, "bytes_per_rep"),
            "flops_per_rep": ELEMENTS * _at(ELEMENTS, runs, "flops_per_rep"),
        }
        for (machine, kernel), runs in rows.groupby(["machine", "kernel"])
    ]
    columns = ["machine", "kernel", "problem_size", "placement", "seconds_per_rep", "bytes_per_rep", "flops_per_rep"]
    return pd.DataFrame(times, columns=columns)


def sizes_in_words(rows: pd.DataFrame) -> tuple[str, ...]:
    """Notes on how far the sizes of each machine are from `ELEMENTS`, from rows of `NODE_KERNELS_QUERY`."""
    elements = (rows["problem_size"] * rows["processes"]).groupby(rows["machine"]).agg(["min", "max"])
    notes = []
    for machine, smallest, largest in elements.itertuples():
        nearest = np.clip(ELEMENTS, smallest, largest)
        how = "between sizes that ran" if nearest == ELEMENTS else f"as with {nearest:,}, the nearest size that ran"
        notes.append(f"{machine} is described by its time per element of a node with {ELEMENTS:,}: {how}")
    return tuple(notes)


def are_per_element(configurations: Iterable[str]) -> bool:
    """Whether kernel runs, by name, are times per element of a node."""
    return any(name.endswith(f" {NODE}") for name in configurations)


def of_kind(kernels: pd.DataFrame, configurations: Iterable[str]) -> pd.DataFrame:
    """Kernel times per element of a node where these kernel runs, by name, are such; otherwise those by size."""
    return kernels[(kernels["placement"] == NODE) == are_per_element(configurations)].reset_index(drop=True)


def sizes_match(kernels: pd.DataFrame) -> bool:
    """Whether half of the machines, or more, have kernel runs of the same sizes: else most are not described."""
    machines = well_described(kernels)
    try:
        kernel_times(kernels[kernels["machine"].isin(machines)])
    except BadInputError:
        return False
    return 2 * len(machines) >= kernels["machine"].nunique()


def _at(elements: int, runs: pd.DataFrame, column: str) -> float:
    """A quantity per element at a number of elements; NaN where it is not known, 0 where it is 0."""
    known = runs[runs[column].notna()]
    if known.empty or (known[column] <= 0).any():
        return float(known[column].min()) if len(known) else float("nan")
    # Bytes and operations are per process, and times those of all processes together.
    count = known["elements"] if column == "seconds_per_rep" else known["problem_size"]
    return float(np.exp(np.interp(np.log(elements), np.log(known["elements"]), np.log(known[column] / count))))


def _depending_on_size(rows: pd.DataFrame) -> list[str]:
    """Kernels whose operations per element (bytes, where they have none) grow or shrink with the problem size."""
    work = rows["flops_per_rep"].where(rows["flops_per_rep"] > 0, rows["bytes_per_rep"])
    known = rows.assign(work=work / rows["problem_size"])[work > 0]
    depending = []
    for kernel, runs in known.groupby("kernel"):
        sizes, work = np.log(runs["problem_size"].to_numpy(float)), np.log(runs["work"].to_numpy(float))
        if np.ptp(sizes) > np.log(_LEAST_SPREAD) and abs(np.polyfit(sizes, work, 1)[0]) > _LEAST_GROWTH:
            depending.append(str(kernel))
    return depending
