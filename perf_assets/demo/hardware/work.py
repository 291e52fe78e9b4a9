"""A piece of work, and its cost on any memory hierarchy.

Work is described by its loops: operations, and streams of memory accesses with their reuse distances. The model of
processors (`processor.py`) and of devices (`device.py`) turn it into seconds. The constants of all three hold for all
machines: they are properties of hardware of these decades, none is fitted to a machine or a kernel.
"""

from dataclasses import dataclass

LINE_BYTES = 64
"""Cache line of a processor."""
SUSTAINED_MEMORY_SHARE = 0.8
"""STREAM against theoretical peak, processors and devices alike."""
_OVERLAP_NORM = 2.0
"""Overlap of resources: 1 is the sum of their times (ECM), infinity their maximum (roofline)."""
_CACHE_SHARPNESS = 4.0
"""Steepness of the change from hits to misses where the reuse distance exceeds the capacity."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Accesses to memory that have the same locality."""

    read_bytes: float = 0.0
    """Bytes as the instructions read them, cached or not."""
    written_bytes: float = 0.0
    reuse_bytes: float
    """Distinct bytes that all threads together touch between two uses of a datum; for a sweep, what is swept."""
    run_bytes: float = LINE_BYTES
    """Contiguous bytes used at each place: 8 for a gather of doubles or a large stride."""
    outstanding_misses: float | None = None
    """Misses a core overlaps: 1 is pointer chasing, about 5 independent gathers; None is prefetched."""
    bypasses_cache: bool = False
    """Stores go straight to memory, as in memset and memcpy."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Computation on one node (processors) or one device; totals over all threads."""

    streams: tuple[Stream, ...] = ()
    double_flops: float = 0.0
    single_flops: float = 0.0
    integer_ops: float = 0.0
    """Index arithmetic, comparisons and loop control, beyond loads, stores and floating point; counted unvectorised."""
    divides: float = 0.0
    """Divisions and square roots, not counted in the flops."""
    math_calls: float = 0.0
    """Calls of exp, pow, log and the like, not counted in the flops."""
    vector_share: float = 1.0
    """Share of flops, integer operations and accesses that a compiler vectorises."""
    chained_flops: float = 0.0
    """Flops each of which waits for the one before, in every thread's own chain."""
    branches: float = 0.0
    """Data-dependent and loop branches."""
    mispredict_rate: float = 0.0
    """Share of the branches."""
    atomic_ops: float = 0.0
    atomic_targets: float = 1.0
    """Distinct cache lines that the atomics hit."""
    parallel_items: float | None = None
    """Iterations that may run at the same time; None is more than any machine needs."""
    serial_share: float = 0.0
    """Share of the work that one thread does alone (processor only)."""
    parallel_regions: float = 0.0
    """OpenMP regions entered (processor only)."""
    launches: float = 0.0
    """Kernels launched (device only)."""
    host_syncs: float = 0.0
    """Results that the host waits for (device only)."""
    host_device_bytes: float = 0.0
    """Copied between host and device (device only)."""


def miss_share(reuse_bytes: float, capacity_bytes: float) -> float:
    """Share of accesses at a reuse distance that a cache of this capacity misses."""
    if capacity_bytes <= 0:
        return 1.0
    return float(1.0 / (1.0 + (capacity_bytes / max(reuse_bytes, 1.0)) ** _CACHE_SHARPNESS))


def overlapped(*seconds: float) -> float:
    """Time of resources that are busy together, in seconds."""
    return float(sum(value**_OVERLAP_NORM for value in seconds) ** (1.0 / _OVERLAP_NORM))
