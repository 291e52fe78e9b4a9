"""Time of work on one device, and the traffic in its memory system.

Time joins launches, transfers, arithmetic, and memory and L2 bandwidth limited by the parallelism at hand.
"""

from dataclasses import dataclass

from perf_assets.core.machines import Gpu, MachineSpec
from perf_assets.demo.hardware.work import SUSTAINED_MEMORY_SHARE, Work, miss_share, overlapped

SECTOR_BYTES = 32
"""Smallest transfer of a device's memory system."""
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


@dataclass(frozen=True)
class GpuTraffic:
    """Bytes at each level of a device's memory system."""

    l1_bytes: float
    l2_bytes: float
    memory_bytes: float


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
    bandwidth = SUSTAINED_MEMORY_SHARE * gpu.bandwidth_bytes_per_second
    items = work.parallel_items
    if items is not None:
        bandwidth = min(bandwidth, items * _GPU_THREAD_BYTES_IN_FLIGHT / _GPU_LATENCY_SECONDS)
    spread = bandwidth / (SUSTAINED_MEMORY_SHARE * gpu.bandwidth_bytes_per_second)
    doubles = work.double_flops + work.divides * _GPU_DIVIDE_FLOPS + work.math_calls * _GPU_MATH_CALL_FLOPS
    arithmetic = (doubles / gpu.peak_double_flops + work.single_flops / gpu.peak_single_flops) / _GPU_FLOP_SHARE
    arithmetic += work.integer_ops / (gpu.peak_single_flops / 2 * _GPU_INTEGER_PER_FLOP_PEAK)
    if items is not None:
        arithmetic = max(arithmetic, (doubles + work.single_flops) / (items * _GPU_FLOPS_PER_THREAD_SECOND))
    busy = overlapped(
        arithmetic,
        traffic.l1_bytes / (gpu.bandwidth_bytes_per_second * _GPU_L1_BANDWIDTH_RATIO * spread),
        traffic.l2_bytes / (gpu.bandwidth_bytes_per_second * _GPU_L2_BANDWIDTH_RATIO * spread),
        traffic.memory_bytes / bandwidth,
    )
    atomics = work.atomic_ops / (work.atomic_targets * _GPU_SAME_ADDRESS_ATOMICS_PER_SECOND)
    overhead = gpu.launch_seconds * (work.launches + _GPU_SYNC_LAUNCHES * work.host_syncs)
    return busy + atomics + overhead + work.host_device_bytes / gpu.link_bandwidth_bytes_per_second
