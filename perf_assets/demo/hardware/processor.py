"""Time of work on the processors of a node, with its cache traffic and its instructions.

Time joins in-core time, traffic at each cache level and memory, latency of irregular accesses, mispredicted branches,
atomics and the cost of parallel regions.
"""

from dataclasses import dataclass

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.hardware.work import LINE_BYTES, SUSTAINED_MEMORY_SHARE, Stream, Work, miss_share, overlapped

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
_ATOMIC_CYCLES = 20.0
"""A locked read-modify-write whose line the core already owns."""
_CONTENDED_ATOMIC_SECONDS = 80e-9
"""Time of an atomic operation when another core owns the line."""
_REGION_SECONDS = 0.5e-6
_REGION_SECONDS_PER_THREAD = 0.1e-6
"""Entering and leaving a parallel region (EPCC micro-benchmarks)."""


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
    """Share of the lines that missed L1 which stores missed."""
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
        """Number of all instructions."""
        return self.vector_flops + self.scalar_flops + self.loads + self.stores + self.integer + self.branches


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
    saturated = SUSTAINED_MEMORY_SHARE * spec.memory.bandwidth_bytes_per_second * sockets / spec.cpu.sockets
    return min(saturated, cores * _CORE_BYTES_IN_FLIGHT / spec.memory.latency_seconds)


def _parallel_seconds(spec: MachineSpec, work: Work, threads: int) -> float:
    cores = _cores_used(spec, work, threads)
    traffic = cache_traffic(spec, work, threads)
    cycles = cores * spec.cpu.clock_hertz
    busy = overlapped(
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
