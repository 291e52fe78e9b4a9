"""Values that the simulation hands to the writers of file formats, and bundles that the fleet offers for landing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.manifest import BundleFacts


@dataclass(frozen=True)
class KernelRun:
    """One RAJAPerf kernel, variant and tuning of one invocation."""

    kernel: str
    variant: str
    tuning: str
    problem_size: int
    reps: int
    iterations_per_rep: int
    kernels_per_rep: int
    bytes_per_rep: int
    bytes_read_per_rep: int
    bytes_written_per_rep: int
    bytes_atomic_per_rep: int
    flops_per_rep: int
    pass_seconds: tuple[float, ...]
    """Time of all repetitions, one value per pass."""
    is_checksum_ok: bool = True


@dataclass(frozen=True)
class BenchmarkRun:
    """One invocation of RAJAPerf."""

    machine: str
    threads: int
    ranks: int
    """0 for a run without MPI."""
    requested_size: int
    repetition_factor: float
    passes: int
    compiler: str
    launched_at: int
    """Seconds since 1970."""
    kernels: tuple[KernelRun, ...]


@dataclass(frozen=True)
class ProfiledRun:
    """One profiling run of an application with one set of counters."""

    program: str
    ranks: int
    threads_per_rank: int
    hosts: int
    wall_seconds: float
    metrics: tuple[str, ...]
    """Names as the tool writes them, as in `PAPI_TOT_INS` or `REALTIME (sec)`."""
    values: NDArray[np.float64]
    """Inclusive totals, shape (ranks, threads_per_rank, metrics)."""
    gpu_streams: NDArray[np.float64] | None = None
    """Inclusive totals of GPU streams, one per rank that has a GPU: shape (streams, metrics)."""
    seed: int = 0
    """For whatever a writer has to invent (process ids, host ids), so that files are reproducible."""


@dataclass(frozen=True)
class SimulatedBundle:
    """A bundle of the fleet, not yet landed."""

    name: str
    facts: BundleFacts
    write: Callable[[Path], None]
    """Writes the bundle's files into an empty directory."""
