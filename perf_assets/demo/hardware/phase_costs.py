"""Costs of one phase of a program for a rank: on the processors, on a device, in messages and in files.

Costs are seconds and amounts of the quantities that tools can count.
"""

from dataclasses import dataclass, replace
from math import ceil, log2

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.applications.phases import Exchange, FileTraffic, Phase
from perf_assets.demo.hardware import device, processor
from perf_assets.demo.hardware.placement import Placement
from perf_assets.demo.hardware.work import Work, miss_share

Amounts = dict[str, float]
"""Amounts by names of `quantities`."""

_BLOCK_THREADS = 256
_ON_NODE_LATENCY_SECONDS = 0.5e-6
"""A message between two ranks of one node."""
_SOFTWARE_LATENCY_SECONDS = 0.7e-6
"""Latency that MPI adds to that of the network."""
_NETWORK_SHARE = 0.8
_ON_NODE_BANDWIDTH_SHARE = 0.25
"""Copies through shared memory against peak memory bandwidth."""
_NEIGHBOURS_AWAY_SHARE = 0.5
"""Frequency of neighbours on another node in a decomposition, relative to arbitrary partners."""
_FILE_BYTES_PER_SECOND = 4e8
_OPEN_SECONDS = 1.5e-3
"""A shared file system; the same on every machine."""
_LAUNCH_INSTRUCTIONS = 4000.0
_MESSAGE_INSTRUCTIONS = 2500.0
_DIVIDER_CYCLES = 3.0
"""Cycles that a division keeps the divider busy, vectorised or not."""
_FLOPS_PER_MATH_CALL = 15
_PAGE_WALK_CYCLES = 28.0
_PAGE_BYTES = 4096.0
_TLB_REACH_BYTES = 1536 * _PAGE_BYTES
"""Memory that the TLB of one core covers."""
_MISPREDICT_FRONTEND_CYCLES = 10.0
_DEPENDENCY_STALL_SHARE = 0.15
_FETCH_STALL_SHARE = 0.02
"""Share of the cycles that a core needs when all data are in L1."""


@dataclass(frozen=True)
class HostCost:
    """Cost of a phase on the processors."""

    parallel_seconds: float
    """All threads of the rank work."""
    serial_seconds: float
    """Its first thread works alone."""
    amounts: Amounts


@dataclass(frozen=True)
class DeviceCost:
    """Cost of a phase on a device."""

    seconds: float
    host_amounts: Amounts
    amounts: Amounts


def system_instructions(count: float) -> Amounts:
    """Amounts of work for a number of instructions of system software: start-up, MPI, drivers."""
    shares = {
        "instructions": 1.0,
        "branches": 0.2,
        "mispredicted_branches": 0.004,
        "loads": 0.28,
        "stores": 0.13,
        "integer_instructions": 0.39,
        "l1_load_misses": 0.004,
        "l1_store_misses": 0.001,
        "l2_load_misses": 0.001,
        "l2_store_misses": 0.0003,
        "l3_load_misses": 0.0001,
        "instruction_cache_misses": 0.003,
    }
    return {name: share * count for name, share in shares.items()}


def host_cost(spec: MachineSpec, phase: Phase, threads: int, placement: Placement) -> HostCost:
    """A phase on the processors, while all ranks of the node do the same."""
    ranks, clock = placement.ranks_per_node, spec.cpu.clock_hertz
    work = phase.on_node(ranks, threads)
    near = replace(work, streams=tuple(replace(stream, reuse_bytes=0.0) for stream in work.streams))
    serial = phase.work.serial_share if threads > 1 else 0.0
    parallel_seconds = (1 - serial) * processor.cpu_seconds(spec, work, ranks * threads)
    core_cycles = (1 - serial) * processor.cpu_seconds(spec, near, ranks * threads) * threads * clock
    serial_seconds = 0.0
    if serial:
        serial_seconds = serial * processor.cpu_seconds(spec, work, ranks)
        core_cycles += serial * processor.cpu_seconds(spec, near, ranks) * clock
    cycles = (parallel_seconds * threads + serial_seconds) * clock
    core_cycles = min(core_cycles, cycles)
    amounts = {name: amount / ranks for name, amount in _counts(spec, work, ranks * threads).items()}
    amounts |= _stalls(work, core_cycles, cycles - core_cycles, amounts["mispredicted_branches"])
    return HostCost(parallel_seconds, serial_seconds, amounts)


def _stalls(work: Work, core_cycles: float, memory_cycles: float, mispredicted: float) -> Amounts:
    touched = sum(stream.read_bytes + stream.written_bytes for stream in work.streams)
    written = sum(stream.written_bytes for stream in work.streams)
    return {
        "memory_stall_cycles": memory_cycles,
        "store_stall_cycles": memory_cycles * written / touched if touched else 0.0,
        "backend_stall_cycles": memory_cycles + _DEPENDENCY_STALL_SHARE * core_cycles,
        "frontend_stall_cycles": _FETCH_STALL_SHARE * core_cycles + _MISPREDICT_FRONTEND_CYCLES * mispredicted,
    }


def _counts(spec: MachineSpec, work: Work, threads: int) -> Amounts:
    """Counts of a node for some work, without times."""
    mix = processor.instructions(spec, work)
    traffic = processor.cache_traffic(spec, work, threads)
    flops = work.double_flops + work.single_flops
    single = work.single_flops / flops if flops else 0.0
    mispredicted = mix.branches * work.mispredict_rate
    tlb_misses = 0.0
    for stream in work.streams:
        # Sweeps miss once a page; irregular accesses find a page again only now and then.
        distance = _PAGE_BYTES if stream.outstanding_misses is None else 4 * stream.run_bytes
        accesses = (stream.read_bytes + stream.written_bytes) / distance
        tlb_misses += accesses * miss_share(stream.reuse_bytes, _TLB_REACH_BYTES * threads)
    return {
        "instructions": mix.total,
        "branches": mix.branches,
        "mispredicted_branches": mispredicted,
        "loads": mix.loads,
        "stores": mix.stores,
        "integer_instructions": mix.integer,
        "scalar_single_instructions": mix.scalar_flops * single,
        "scalar_double_instructions": mix.scalar_flops * (1 - single),
        "packed_single_instructions": mix.vector_flops * single,
        "packed_double_instructions": mix.vector_flops * (1 - single),
        "single_flops": work.single_flops,
        "double_flops": work.double_flops + work.divides + _FLOPS_PER_MATH_CALL * work.math_calls,
        "divider_cycles": (work.divides + work.math_calls) * _DIVIDER_CYCLES + 0.002 * mix.integer,
        "l1_load_misses": traffic.l1_miss_lines - traffic.l1_miss_store_lines,
        "l1_store_misses": traffic.l1_miss_store_lines,
        "l2_load_misses": traffic.l2_miss_lines - traffic.l2_miss_store_lines,
        "l2_store_misses": traffic.l2_miss_store_lines,
        "l3_load_misses": traffic.l3_miss_lines - traffic.l3_miss_store_lines,
        "l3_store_misses": traffic.l3_miss_store_lines,
        "instruction_cache_misses": 5e-5 * mix.total + 0.05 * mispredicted,
        "tlb_misses": tlb_misses,
        "page_walk_cycles": tlb_misses * _PAGE_WALK_CYCLES,
    }


def device_cost(spec: MachineSpec, phase: Phase) -> DeviceCost:
    """A phase on the rank's own device, without copies."""
    work = phase.on_device()
    kernel_seconds = device.gpu_seconds(spec, replace(work, launches=0.0, host_syncs=0.0))
    traffic = device.gpu_traffic(spec, work)
    blocks = ceil((work.parallel_items or 1.0) / _BLOCK_THREADS) * work.launches
    return DeviceCost(
        seconds=device.gpu_seconds(spec, work),
        host_amounts=system_instructions(work.launches * _LAUNCH_INSTRUCTIONS),
        amounts={
            "kernel_seconds": kernel_seconds,
            "launches": work.launches,
            "syncs": work.host_syncs,
            "sync_seconds": kernel_seconds if work.host_syncs else 0.0,
            "blocks": blocks,
            "threads": blocks * _BLOCK_THREADS,
            "single_flops_on_device": work.single_flops,
            "double_flops_on_device": work.double_flops,
            "l2_bytes_on_device": traffic.l2_bytes,
            "memory_bytes_on_device": traffic.memory_bytes,
        },
    )


def copy_cost(spec: MachineSpec, phase: Phase, ranks: int) -> DeviceCost:
    """Copies between host and device: the phase's own, and what its messages make necessary."""
    if spec.gpu is None:
        raise ValueError(f"{spec.machine} has no GPU")
    is_staged = phase.offloads and ranks > 1
    staged = phase.exchange.message_bytes if is_staged else 0.0
    to_device, from_device = phase.to_device_bytes + staged, phase.from_device_bytes + staged
    copies = (2 * phase.exchange.rounds if is_staged else 0.0) + 4.0
    bandwidth = spec.gpu.link_bandwidth_bytes_per_second
    overhead = copies * spec.gpu.launch_seconds
    return DeviceCost(
        seconds=(to_device + from_device) / bandwidth + overhead,
        host_amounts=system_instructions(copies * _LAUNCH_INSTRUCTIONS),
        amounts={
            "to_device_bytes": to_device,
            "from_device_bytes": from_device,
            "to_device_seconds": to_device / bandwidth + overhead / 2,
            "from_device_seconds": from_device / bandwidth + overhead / 2,
            "copies": copies,
        },
    )


def message_cost(spec: MachineSpec, exchange: Exchange, ranks: int, placement: Placement) -> tuple[float, Amounts]:
    """Seconds in which a rank sends and receives, without waiting for slower ones; and what that executes."""
    if ranks == 1:
        return 0.0, {}
    per_node = placement.ranks_per_node
    near_bandwidth = _ON_NODE_BANDWIDTH_SHARE * spec.memory.bandwidth_bytes_per_second
    away, latency, bandwidth = 0.0, _ON_NODE_LATENCY_SECONDS, near_bandwidth
    if placement.nodes > 1 and spec.network is not None:
        away = (ranks - per_node) / (ranks - 1) * (1.0 if exchange.is_all_to_all else _NEIGHBOURS_AWAY_SHARE)
        latency = spec.network.latency_seconds + _SOFTWARE_LATENCY_SECONDS
        bandwidth = _NETWORK_SHARE * spec.network.bandwidth_bytes_per_second
    waiting = exchange.messages * ((1 - away) * _ON_NODE_LATENCY_SECONDS + away * latency)
    moving = exchange.message_bytes * per_node * ((1 - away) / near_bandwidth + away / bandwidth)
    reducing = exchange.reductions * ceil(log2(ranks)) * latency
    return waiting + moving + reducing, system_instructions(exchange.messages * _MESSAGE_INSTRUCTIONS)


def file_cost(files: FileTraffic) -> tuple[float, Amounts]:
    """Seconds of input and output, and their amounts."""
    seconds = (files.read_bytes + files.written_bytes) / _FILE_BYTES_PER_SECOND + files.opened * _OPEN_SECONDS
    return seconds, {
        "io_read_bytes": files.read_bytes,
        "io_written_bytes": files.written_bytes,
        "files_opened": files.opened,
    }
