"""What bounds kernel runs."""

import numpy as np
import pandas as pd

from perf_assets.features.fleet.descriptions import kernel_kinds


def test_kinds_follow_bytes_and_operations() -> None:
    kernels = pd.DataFrame(
        [
            ("Stream_TRIAD", 100_000, 2.4e6, 2e5),
            ("Stream_TRIAD", 4_000_000, 96e6, 8e6),
            ("Stream_TRIAD", 1_000_000, 24e6, 2e6),
            ("Polybench_GEMM", 1_000_000, 24e6, 2e9),
            ("Basic_OTHER", 1_000_000, np.nan, np.nan),
        ],
        columns=["kernel", "problem_size", "bytes_per_rep", "flops_per_rep"],
    )
    # Another machine's report does not have them.
    kernels = pd.concat([kernels, kernels.assign(bytes_per_rep=np.nan, flops_per_rep=np.nan)])
    names = [f"{kernel} {size} share" for kernel, size in kernels[["kernel", "problem_size"]].to_numpy()[:5]]
    assert kernel_kinds(kernels, [*names, "Never_RUN 5 core"]) == ["cache", "memory", "", "compute", "", ""]
