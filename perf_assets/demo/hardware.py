"""How long a piece of work takes on a machine: one model for the benchmark kernels and the applications.

Work is described by what its loops do (operations, and streams of memory accesses with their reuse distances), the
machine by its data sheet. Processor time joins in-core time, traffic at each cache level and memory, latency of
irregular accesses, mispredicted branches, atomics and the cost of parallel regions; device time joins launches,
transfers, arithmetic, and memory and L2 bandwidth limited by the parallelism at hand. The constants below hold for
all machines: they are properties of processors of these decades, none is fitted to a machine or a kernel.
"""

from dataclasses import dataclass

from perf_assets.core.machines import Gpu, MachineSpec

LINE_BYTES = 64
"""Cache line of a processor."""
SECTOR_BYTES = 32
"""Smallest transfer of a device's memory system."""

_INSTRUCTIONS_PER_FLOP = 0.75
"""Half of the floating-point operations end in fused multiply-adds."""
_ISSUE_WIDTH = 4.0
"""Instructions a core completes per cycle at best."""
_FLOP_LATENCY_CYCLES = 4.0
"""Cycles from one dependent addition or multiplication to the next."""
_DIVIDE_CYCLES = 5.0
"""Cycles between double divisions or square roots, per value."""
_MATH_CALL_CYCLES = 20.0
"""Cycles of exp, pow, log or a trigonometric function, per value."""
_MISPREDICT_CYCLES = 16.0
_L2_LATENCY_CYCLES = 14.0
_L3_LATENCY_CYCLES = 50.0
_CORE_BYTES_IN_FLIGHT = 20 * LINE_BYTES
"""Line-fill buffers and prefetcher queue of a core: with the latency they bound one core's bandwidth."""
_SUSTAINED_MEMORY_SHARE = 0.8
"""STREAM against theoretical peak, processors and devices alike."""
_OVERLAP_NORM = 2.0
"""How resources overlap: 1 is the sum of their times (ECM), infinity their maximum (roofline)."""
_ATOMIC_CYCLES = 20.0
"""A locked read-modify-write whose line the core already owns."""
_CONTENDED_ATOMIC_SECONDS = 80e-9
"""The same when another core owns the line."""
_REGION_SECONDS = 0.5e-6
_REGION_SECONDS_PER_THREAD = 0.1e-6
"""Entering and leaving a parallel region (EPCC micro-benchmarks)."""
_CACHE_SHARPNESS = 4.0
"""How abruptly hits turn into misses where the reuse distance passes the capacity."""

_GPU_LATENCY_SECONDS = 0.6e-6
"""Load from device memory."""
_GPU_THREAD_BYTES_IN_FLIGHT = 16.0
_GPU_FLOPS_PER_THREAD_SECOND = 0.5e9
"""One device thread: a dependent multiply-add every four to six cycles at 1 to 1.5 GHz."""
_GPU_FLOP_SHARE = 0.5
"""Reachable share of peak without hand-tuned multiply-adds."""
_GPU_L1_BYTES = 32 * 1024
"""Reuse within this distance stays inside a multiprocessor."""
_GPU_L1_BANDWIDTH_RATIO = 12.0
"""First-level bandwidth of all multiprocessors against device memory."""
_GPU_L2_BANDWIDTH_RATIO = 2.5
_GPU_INTEGER_PER_FLOP_PEAK = 1.0
"""Integer instructions a second against peak single-precision multiply-adds a second."""
_GPU_DIVIDE_FLOPS = 16.0
_GPU_MATH_CALL_FLOPS = 40.0
"""Divisions and math functions as the double operations they expand to."""
_GPU_SAME_ADDRESS_ATOMICS_PER_SECOND = 1e9
"""One L2 slice, one per cycle."""
_GPU_SYNC_LAUNCHES = 3.0
"""Waiting for a result on the host costs as much as this many launches."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Accesses to memory that have the same locality."""

    read_bytes: float = 0.0
    """As the instructions read them, cached or not."""
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
    """What is to be computed on one node (processors) or one device; totals over all threads."""

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
    """Of flops, integer operations and accesses: the share that a compiler vectorises."""
    chained_flops: float = 0.0
    """Of the flops: those each of which waits for the one before, in every thread's own chain."""
    branches: float = 0.0
    """Data-dependent and loop branches."""
    mispredict_rate: float = 0.0
    """Of the branches."""
    atomic_ops: float = 0.0
    atomic_targets: float = 1.0
    """Distinct cache lines that the atomics hit."""
    parallel_items: float | None = None
    """Iterations that may run at the same time; None is more than any machine needs."""
    serial_share: float = 0.0
    """Of the work: the share that one thread does alone (processor only)."""
    parallel_regions: float = 0.0
    """OpenMP regions entered (processor only)."""
    launches: float = 0.0
    """Kernels launched (device only)."""
    host_syncs: float = 0.0
    """Results that the host waits for (device only)."""
    host_device_bytes: float = 0.0
    """Copied between host and device (device only)."""


@dataclass(frozen=True)
class CacheTraffic:
    """Bytes that leave each level towards the core, write-backs included; and lines that missed."""

    l1_bytes: float
    """Between registers and L1: what the instructions touch."""
    l2_bytes: float
    l3_bytes: float
    memory_bytes: float
    l1_miss_lines: float
    l2_miss_lines: float
    l3_miss_lines: float
    l1_miss_store_lines: float
    """Of the lines that missed L1, those missed by stores."""
    l2_miss_store_lines: float
    l3_miss_store_lines: float


@dataclass(frozen=True)
class Instructions:
    """Instructions that a processor retires for some work."""

    vector_flops: float
    """Packed floating-point instructions."""
    scalar_flops: float
    loads: float
    stores: float
    integer: float
    branches: float

    @property
    def total(self) -> float:
        """All instructions."""
        return self.vector_flops + self.scalar_flops + self.loads + self.stores + self.integer + self.branches


@dataclass(frozen=True)
class GpuTraffic:
    """Bytes at each level of a device's memory system."""

    l1_bytes: float
    l2_bytes: float
    memory_bytes: float


def miss_share(reuse_bytes: float, capacity_bytes: float) -> float:
    """Share of accesses at a reuse distance that a cache of this capacity misses."""
    if capacity_bytes <= 0:
        return 1.0
    return float(1.0 / (1.0 + (capacity_bytes / max(reuse_bytes, 1.0)) ** _CACHE_SHARPNESS))


def _cores_used(spec: MachineSpec, work: Work, threads: int) -> float:
    items = work.parallel_items
    return float(min(threads, spec.cpu.cores, *([] if items is None else [max(items, 1.0)])))


def _capacities(spec: MachineSpec, cores: float) -> tuple[float, float, float]:
    sockets = min(float(spec.cpu.sockets), cores)
    return cores * spec.caches.l1_bytes, cores * spec.caches.l2_bytes, sockets * spec.caches.l3_bytes


def _line_bytes(stream: Stream) -> tuple[float, float]:
    """Bytes that one full pass of a stream moves as (read and allocated, written back), in whole lines."""
    spread = LINE_BYTES / min(stream.run_bytes, LINE_BYTES)
    allocated = 0.0 if stream.bypasses_cache else max(stream.written_bytes - stream.read_bytes, 0.0)
    return (stream.read_bytes + allocated) * spread, stream.written_bytes * spread


def cache_traffic(spec: MachineSpec, work: Work, threads: int) -> CacheTraffic:
    """Bytes and missed lines per cache level of a node when `threads` threads share the work."""
    capacities = _capacities(spec, _cores_used(spec, work, threads))
    moved, missed, stores = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    share_left = [1.0] * len(work.streams)
    for level, capacity in enumerate(capacities):
        for index, stream in enumerate(work.streams):
            # A level never misses more than the one above it, whatever the capacities.
            share_left[index] = min(share_left[index], miss_share(stream.reuse_bytes, capacity))
            fetched, written = _line_bytes(stream)
            moved[level] += share_left[index] * (fetched + written)
            missed[level] += share_left[index] * fetched / LINE_BYTES
            allocated = 0.0 if stream.bypasses_cache else max(stream.written_bytes - stream.read_bytes, 0.0)
            total = stream.read_bytes + allocated
            stores[level] += share_left[index] * (fetched * allocated / total if total else 0.0) / LINE_BYTES
    touched = sum(stream.read_bytes + stream.written_bytes for stream in work.streams)
    return CacheTraffic(touched, *moved, *missed, *stores)


def instructions(spec: MachineSpec, work: Work) -> Instructions:
    """Instructions that the work takes on this machine's instruction set."""
    vector, scalar = work.vector_share, 1.0 - work.vector_share
    lanes = spec.cpu.simd_bits / 64
    flops = _INSTRUCTIONS_PER_FLOP * (work.double_flops + work.single_flops)
    packed = _INSTRUCTIONS_PER_FLOP * vector * (work.double_flops / lanes + work.single_flops / (2 * lanes))
    per_access = 8.0 / (vector / lanes + scalar)
    return Instructions(
        vector_flops=packed if lanes > 1 else 0.0,
        scalar_flops=scalar * flops + work.divides * (scalar + vector / lanes) + 15 * work.math_calls,
        loads=sum(s.read_bytes for s in work.streams) / per_access,
        stores=sum(s.written_bytes for s in work.streams) / per_access,
        integer=work.integer_ops * (scalar + vector / lanes),
        branches=work.branches * (scalar + vector / lanes),
    )


def _joined(*seconds: float) -> float:
    return float(sum(value**_OVERLAP_NORM for value in seconds) ** (1.0 / _OVERLAP_NORM))


def _core_seconds(spec: MachineSpec, work: Work, cores: float) -> float:
    """In-core time when nothing misses L1."""
    mix = instructions(spec, work)
    touched = sum(stream.read_bytes + stream.written_bytes for stream in work.streams)
    throughput = max(
        mix.total / _ISSUE_WIDTH,
        (mix.vector_flops + mix.scalar_flops) / spec.cpu.fma_units,
        touched / spec.caches.l1_bytes_per_cycle,
        work.divides * _DIVIDE_CYCLES,
    )
    waiting = work.chained_flops * _FLOP_LATENCY_CYCLES
    stalls = work.branches * work.mispredict_rate * _MISPREDICT_CYCLES + work.math_calls * _MATH_CALL_CYCLES
    return (max(throughput, waiting) + stalls) / (cores * spec.cpu.clock_hertz)


def _latency_seconds(spec: MachineSpec, work: Work, cores: float) -> float:
    """Time that cores wait for irregular accesses."""
    clock = spec.cpu.clock_hertz
    latencies = (_L2_LATENCY_CYCLES / clock, _L3_LATENCY_CYCLES / clock, spec.memory.latency_seconds)
    seconds = 0.0
    for stream in work.streams:
        if stream.outstanding_misses is None:
            continue
        accesses = (stream.read_bytes + stream.written_bytes) / stream.run_bytes
        miss = [miss_share(stream.reuse_bytes, capacity) for capacity in _capacities(spec, cores)]
        hit_in_next = (max(miss[0] - miss[1], 0.0), max(miss[1] - miss[2], 0.0), miss[2])
        wait = sum(share * latency for share, latency in zip(hit_in_next, latencies, strict=True))
        seconds += accesses * wait / stream.outstanding_misses
    return seconds / cores


def memory_bandwidth(spec: MachineSpec, cores: float) -> float:
    """Bytes per second that this many busy cores, spread over the sockets, draw from memory."""
    sockets = min(float(spec.cpu.sockets), cores)
    saturated = _SUSTAINED_MEMORY_SHARE * spec.memory.bandwidth_bytes_per_second * sockets / spec.cpu.sockets
    return min(saturated, cores * _CORE_BYTES_IN_FLIGHT / spec.memory.latency_seconds)


def _parallel_seconds(spec: MachineSpec, work: Work, threads: int) -> float:
    cores = _cores_used(spec, work, threads)
    traffic = cache_traffic(spec, work, threads)
    cycles = cores * spec.cpu.clock_hertz
    busy = _joined(
        _core_seconds(spec, work, cores),
        traffic.l2_bytes / (cycles * spec.caches.l2_bytes_per_cycle),
        traffic.l3_bytes / (cycles * spec.caches.l3_bytes_per_cycle),
        traffic.memory_bytes / memory_bandwidth(spec, cores),
        _latency_seconds(spec, work, cores),
    )
    owned = work.atomic_ops * _ATOMIC_CYCLES / cycles
    contenders = min(cores / work.atomic_targets, 1.0) if cores > 1 else 0.0
    contended = work.atomic_ops * _CONTENDED_ATOMIC_SECONDS * contenders / min(cores, work.atomic_targets)
    return busy + owned + contended


def cpu_seconds(spec: MachineSpec, work: Work, threads: int) -> float:
    """Seconds that `threads` threads of one node, one per core and spread over the sockets, need for the work."""
    serial = work.serial_share
    seconds = (1.0 - serial) * _parallel_seconds(spec, work, threads)
    if serial:
        seconds += serial * _parallel_seconds(spec, work, 1)
    if threads > 1:
        seconds += work.parallel_regions * (_REGION_SECONDS + _REGION_SECONDS_PER_THREAD * threads)
    return seconds


def _gpu(spec: MachineSpec) -> Gpu:
    if spec.gpu is None:
        raise ValueError(f"{spec.machine} has no GPU")
    return spec.gpu


def gpu_traffic(spec: MachineSpec, work: Work) -> GpuTraffic:
    """Bytes per level of one device's memory system."""
    gpu = _gpu(spec)
    touched = beyond_l1 = memory = 0.0
    for stream in work.streams:
        size = stream.read_bytes + stream.written_bytes
        sectors = size * SECTOR_BYTES / min(stream.run_bytes, SECTOR_BYTES)
        touched += size
        from_l2 = miss_share(stream.reuse_bytes, _GPU_L1_BYTES)
        beyond_l1 += sectors * from_l2
        memory += sectors * min(from_l2, miss_share(stream.reuse_bytes, gpu.l2_bytes))
    return GpuTraffic(touched, beyond_l1, memory)


def gpu_seconds(spec: MachineSpec, work: Work) -> float:
    """Seconds that one device needs for the work, launches and copies included."""
    gpu = _gpu(spec)
    traffic = gpu_traffic(spec, work)
    bandwidth = _SUSTAINED_MEMORY_SHARE * gpu.bandwidth_bytes_per_second
    items = work.parallel_items
    if items is not None:
        bandwidth = min(bandwidth, items * _GPU_THREAD_BYTES_IN_FLIGHT / _GPU_LATENCY_SECONDS)
    spread = bandwidth / (_SUSTAINED_MEMORY_SHARE * gpu.bandwidth_bytes_per_second)
    doubles = work.double_flops + work.divides * _GPU_DIVIDE_FLOPS + work.math_calls * _GPU_MATH_CALL_FLOPS
    arithmetic = (doubles / gpu.peak_double_flops + work.single_flops / gpu.peak_single_flops) / _GPU_FLOP_SHARE
    arithmetic += work.integer_ops / (gpu.peak_single_flops / 2 * _GPU_INTEGER_PER_FLOP_PEAK)
    if items is not None:
        arithmetic = max(arithmetic, (doubles + work.single_flops) / (items * _GPU_FLOPS_PER_THREAD_SECOND))
    busy = _joined(
        arithmetic,
        traffic.l1_bytes / (gpu.bandwidth_bytes_per_second * _GPU_L1_BANDWIDTH_RATIO * spread),
        traffic.l2_bytes / (gpu.bandwidth_bytes_per_second * _GPU_L2_BANDWIDTH_RATIO * spread),
        traffic.memory_bytes / bandwidth,
    )
    atomics = work.atomic_ops / (work.atomic_targets * _GPU_SAME_ADDRESS_ATOMICS_PER_SECOND)
    overhead = gpu.launch_seconds * (work.launches + _GPU_SYNC_LAUNCHES * work.host_syncs)
    return busy + atomics + overhead + work.host_device_bytes / gpu.link_bandwidth_bytes_per_second
