"""A small made-up fleet as the warehouse gives it: RAJAPerf everywhere, applications on most, GPUs on one."""

import numpy as np
import pandas as pd

from perf_assets.core.tables.canonical import VECTOR_FEATURES, XAMM_FEATURES
from perf_assets.features.fleet.samples import FleetTables

Speeds = dict[str, tuple[float, float]]
SPEEDS: Speeds = {"ash": (1.0, 1.0), "birch": (2.0, 0.7), "cedar": (0.5, 3.0), "elm": (1.5, 1.5), "fir": (3.0, 0.4)}
"""Memory and compute speed of a core; fir ran no application."""
EIGHT = {**SPEEDS, "gum": (1.2, 2.2), "hazel": (0.8, 0.5), "ivy": (2.5, 1.8)}
"""Enough machines to train on seven of them."""
GPU = {"elm": (20.0, 30.0)}
"""The same of a GPU."""
KERNELS = {
    "Stream_TRIAD": 1.0,
    "Stream_DOT": 0.9,
    "Basic_DAXPY": 0.8,
    "Poly_GEMM": 0.05,
    "Poly_3MM": 0.1,
    "Apps_VOL": 0.5,
}
"""Share of memory-bound work."""
APPS = {"Kripke": 0.7, "Laghos": 0.3, "SW4lite": 0.9, "miniVite": 0.5}
WITHOUT_GPU = ("miniVite",)


def seconds(work: float, share: float, speeds: tuple[float, float]) -> float:
    """Geometric mixture of memory and compute time."""
    memory, compute = speeds
    return work * memory**-share * compute ** -(1 - share)


def fleet_tables(seed: int = 0, sizes: int = 8, fleet: Speeds = SPEEDS) -> FleetTables:
    """The three tables; every application ran in so many sizes."""
    generator = np.random.default_rng(seed)
    return FleetTables(_runs(generator, sizes, fleet), _kernels(fleet), _specs(fleet))


def _kernels(fleet: Speeds) -> pd.DataFrame:
    rows = []
    for machine, speeds in fleet.items():
        for kernel, share in KERNELS.items():
            for size in (100_000, 1_000_000):
                places = {"core": speeds, "busy_core": (speeds[0] / 2, speeds[1])}
                places |= {"device": GPU[machine]} if machine in GPU else {}
                for placement, here in places.items():
                    work = {"bytes_per_rep": 8.0 * size, "flops_per_rep": 2.0 * size / (0.1 + share)}
                    time = {"seconds_per_rep": seconds(size / 1e9, share, here)}
                    key = {"machine": machine, "kernel": kernel, "problem_size": size, "placement": placement}
                    rows.append({**key, **time, **work})
    return pd.DataFrame(rows)


def with_half_of_the_threads(kernels: pd.DataFrame, gains: dict[str, float]) -> pd.DataFrame:
    """Kernel times with those of half of the threads: so many times less than with all, by machine."""
    busy = kernels[(kernels["placement"] == "busy_core") & kernels["machine"].isin(gains)]
    times = busy["seconds_per_rep"] / busy["machine"].map(gains)
    return pd.concat([kernels, busy.assign(placement="half_busy_core", seconds_per_rep=times)], ignore_index=True)


def _runs(generator: np.random.Generator, sizes: int, fleet: Speeds) -> pd.DataFrame:
    rows = []
    for machine, speeds in fleet.items():
        if machine == "fir":
            continue
        for app, share in APPS.items():
            gpus = int(machine in GPU and app not in WITHOUT_GPU)
            for size in range(1, sizes + 1):
                noise = np.exp(0.01 * generator.standard_normal(len(XAMM_FEATURES) + 1))
                features = {f.name: (0.05 + share * (i % 3) + 0.01 * i) for i, f in enumerate(XAMM_FEATURES)}
                measured = {name: value * float(n) for (name, value), n in zip(features.items(), noise, strict=False)}
                wall = seconds(float(size), share, GPU[machine] if gpus else speeds) * float(noise[-1])
                key = {"machine": machine, "app": app, "args": f"-n {size}", "ranks": 1, "threads": 1, "gpus": gpus}
                rows.append({**key, "wall_seconds": wall, **measured})
    return pd.DataFrame(rows)


def _specs(fleet: Speeds) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "machine": machine,
                "name": machine,
                "cpu_clock_hertz": 1e9 * compute,
                "memory_bandwidth_bytes_per_second": 1e10 * memory,
                "gpu_count": 1.0 if machine in GPU else np.nan,
                "gpu_peak_double_flops": 1e12 * GPU[machine][1] if machine in GPU else np.nan,
            }
            for machine, (memory, compute) in fleet.items()
        ]
    )


def vector_rows(tables: FleetTables) -> pd.DataFrame:
    """The runs with the features of relative-performance vectors, as far as they follow from those of xAMM."""
    runs = tables.runs
    missing = {f.name: np.nan for f in VECTOR_FEATURES if f.name not in runs}
    same = {"memory_ratio": "load_ratio", "control_ratio": "branch_ratio", "fp_ratio": "double_fp_ratio"}
    known = {name: runs[other] for name, other in same.items()}
    return runs.assign(on_gpus=runs["gpus"] > 0, **{**missing, **known})
