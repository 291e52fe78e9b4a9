"""What bounds a kernel run on most machines: computing, memory or caches, by what RAJAPerf reports of it."""

from collections.abc import Sequence

import pandas as pd

COMPUTE, MEMORY, CACHE = "compute", "memory", "cache"
_COMPUTE_FLOPS_PER_BYTE = 1.0
"""Operations per byte from which on cores limit, not memory: a triad has 1/12, a large matrix product hundreds."""
_MEMORY_BYTES = 64 * 2**20
"""A repetition that moves more does not stay in the caches of most processors."""
_CACHE_BYTES = 8 * 2**20
"""A repetition that moves at most so much stays in the caches of one processor."""


def kernel_kinds(kernels: pd.DataFrame, configurations: Sequence[str]) -> list[str]:
    """Kind of each kernel run, named `KERNEL SIZE PLACEMENT`; empty where nobody knows or it is in between.

    `kernels` are as `KERNELS_QUERY` gives them: bytes and operations per repetition, where the report has them.
    """
    known = kernels.groupby(["kernel", "problem_size"])[["bytes_per_rep", "flops_per_rep"]].max()
    kinds = {
        f"{row['kernel']} {row['problem_size']}": _kind(row["bytes_per_rep"], row["flops_per_rep"])
        for row in known.reset_index().to_dict("records")
    }
    return [kinds.get(name.rsplit(" ", 1)[0], "") for name in configurations]


def _kind(moved: float, flops: float) -> str:
    if not moved > 0:
        return ""
    if flops / moved >= _COMPUTE_FLOPS_PER_BYTE:
        return COMPUTE
    return MEMORY if moved >= _MEMORY_BYTES else CACHE if moved <= _CACHE_BYTES else ""
