"""A small made-up fleet with a known law: every run is a mixture of two kernels, and machines differ in both speeds."""

import numpy as np
import pandas as pd

from perf_assets.features.samples import PairedSamples
from perf_assets.features.tables.paired import Roles, pair_tables

ROLES = Roles(("app", "size"), "app", "seconds", ("stream", "gemm"))
SHARES = {"stream": 1.0, "gemm": 0.0, "solver": 0.9, "fft": 0.6, "molecules": 0.3, "dense": 0.05}
"""Share of memory-bound work of each application."""
SPEEDS = {"a": (1.0, 1.0), "b": (2.0, 0.7), "c": (0.5, 3.0), "d": (1.5, 1.5), "e": (3.0, 0.4)}
"""Memory and compute speed of each machine."""


def tables(rows: int = 12, seed: int = 0) -> dict[str, pd.DataFrame]:
    """One table a machine; the time is a geometric mixture of memory and compute time."""
    generator = np.random.default_rng(seed)
    sizes = np.geomspace(1e3, 1e6, rows).round()
    found = {}
    for machine, (memory, compute) in SPEEDS.items():
        parts = []
        for app, share in SHARES.items():
            noise = np.exp(0.01 * generator.standard_normal((3, rows)))
            seconds = sizes / 1e6 * memory**-share * compute ** -(1 - share) * noise[0]
            parts.append(
                pd.DataFrame(
                    {
                        "app": app,
                        "size": sizes,
                        "seconds": seconds,
                        "bytes": sizes * (0.1 + share) * noise[1],
                        "flops": sizes * (1.1 - share) * noise[2],
                        "clock": 1000.0 * compute,
                    }
                )
            )
        found[machine] = pd.concat(parts, ignore_index=True)
    return found


def fleet(rows: int = 12, seed: int = 0) -> PairedSamples:
    """The tables, paired."""
    return pair_tables(tables(rows, seed), ROLES)
