from dataclasses import replace
from itertools import pairwise

import pytest

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.fleet_machines import load_machines, machine_text
from perf_assets.demo.hardware.device import gpu_seconds, gpu_traffic
from perf_assets.demo.hardware.processor import cache_traffic, cpu_seconds, instructions
from perf_assets.demo.hardware.work import LINE_BYTES, Stream, Work, miss_share

MIB = 2**20
MACHINES = load_machines()
WITH_GPU = [spec for spec in MACHINES.values() if spec.gpu is not None]


def triad(size_bytes: float, sweeps: float = 1.0) -> Work:
    """A sweep over three arrays of `size_bytes` together."""
    third = size_bytes / 3 * sweeps
    streams = (
        Stream(read_bytes=2 * third, reuse_bytes=size_bytes),
        Stream(written_bytes=third, reuse_bytes=size_bytes),
    )
    return Work(streams=streams, double_flops=2 * third / 8, integer_ops=third / 8, branches=third / 8, launches=1)


def with_memory(spec: MachineSpec, factor: float) -> MachineSpec:
    bandwidth = spec.memory.bandwidth_bytes_per_second * factor
    return spec.model_copy(update={"memory": spec.memory.model_copy(update={"bandwidth_bytes_per_second": bandwidth})})


def test_the_fleet_has_all_machines_with_sources() -> None:
    assert sorted(MACHINES) == [
        "cascadelake-8275cl", "cloud-skylake-96", "corona", "dane", "epyc-7742", "epyc-7r13", "epyc-vm", "grace",
        "h100", "icelake-8375c", "ivybridge-2695v2", "lassen", "quartz", "ruby", "skylake-6140", "skylake-8160",
        "tioga", "xeonmax",
    ]  # fmt: skip
    assert {spec.machine for spec in WITH_GPU} == {"corona", "lassen", "tioga", "h100"}
    assert all(len(spec.sources) >= 2 for spec in MACHINES.values())
    assert machine_text("quartz").startswith("machine: quartz")


@pytest.mark.parametrize("spec", MACHINES.values(), ids=MACHINES)
def test_caches_grow_and_slow_down_with_distance(spec: MachineSpec) -> None:
    caches = spec.caches
    assert caches.l1_bytes < caches.l2_bytes < caches.l3_bytes
    assert caches.l1_bytes_per_cycle > caches.l2_bytes_per_cycle > caches.l3_bytes_per_cycle


@pytest.mark.parametrize("spec", MACHINES.values(), ids=MACHINES)
def test_more_memory_bandwidth_is_never_slower(spec: MachineSpec) -> None:
    for threads in (1, spec.cpu.cores):
        times = [cpu_seconds(with_memory(spec, factor), triad(4e9), threads) for factor in (0.5, 1.0, 2.0, 4.0)]
        assert times == sorted(times, reverse=True)
    all_cores = [cpu_seconds(with_memory(spec, factor), triad(4e9), spec.cpu.cores) for factor in (0.05, 0.1)]
    assert all_cores[1] < 0.6 * all_cores[0]


@pytest.mark.parametrize("spec", MACHINES.values(), ids=MACHINES)
def test_threads_speed_up_large_parallel_work_until_memory_is_saturated(spec: MachineSpec) -> None:
    times = [cpu_seconds(spec, triad(4e9), threads) for threads in range(1, spec.cpu.cores + 1)]
    assert all(later <= earlier * 1.001 for earlier, later in pairwise(times))
    assert times[0] / times[-1] > 1.8
    compute = Work(double_flops=1e12)
    assert cpu_seconds(spec, compute, 1) / cpu_seconds(spec, compute, spec.cpu.cores) == pytest.approx(spec.cpu.cores)


def test_stream_bandwidth_is_that_of_the_literature() -> None:
    """STREAM triad moves four words a line with write-allocate; Quartz nodes reach 110 to 130 GB/s of 153.6."""
    moved = 4e9 * 4 / 3
    assert 100e9 < moved / cpu_seconds(MACHINES["quartz"], triad(4e9), 36) < 135e9
    assert 10e9 < moved / cpu_seconds(MACHINES["quartz"], triad(4e9), 1) < 16e9
    assert 650e9 < 4e9 / gpu_seconds(MACHINES["lassen"], triad(4e9)) < 850e9


@pytest.mark.parametrize("spec", MACHINES.values(), ids=MACHINES)
def test_data_in_a_nearer_cache_is_faster_per_byte(spec: MachineSpec) -> None:
    per_byte = [
        cpu_seconds(spec, triad(size, sweeps=1e9 / size), 1)
        for size in (spec.caches.l1_bytes / 4, spec.caches.l2_bytes / 2, 4e9)
    ]
    assert per_byte == sorted(per_byte)
    assert per_byte[2] > 2 * per_byte[0]


def test_more_threads_do_not_help_a_tiny_region() -> None:
    tiny = Work(double_flops=1e4, parallel_regions=1)
    assert cpu_seconds(MACHINES["dane"], tiny, 112) > cpu_seconds(MACHINES["dane"], tiny, 1)


def test_serial_share_bounds_the_speedup() -> None:
    work = Work(double_flops=1e12, serial_share=0.1)
    assert cpu_seconds(MACHINES["ruby"], work, 1) / cpu_seconds(MACHINES["ruby"], work, 56) < 10


def test_chains_branches_and_scalar_code_cost_time() -> None:
    spec = MACHINES["quartz"]
    plain = Work(double_flops=1e9, branches=1e8)
    reference = cpu_seconds(spec, plain, 1)
    assert cpu_seconds(spec, replace(plain, chained_flops=1e9), 1) > 5 * reference
    assert cpu_seconds(spec, replace(plain, mispredict_rate=0.3), 1) > 1.5 * reference
    assert cpu_seconds(spec, replace(plain, vector_share=0.0), 1) > 3 * reference
    assert cpu_seconds(spec, replace(plain, divides=1e9), 1) > 5 * reference


def test_pointer_chasing_costs_the_memory_latency_for_each_access() -> None:
    spec = MACHINES["quartz"]
    chase = Stream(read_bytes=8e6, reuse_bytes=1e12, run_bytes=8, outstanding_misses=1)
    assert cpu_seconds(spec, Work(streams=(chase,)), 1) == pytest.approx(1e6 * spec.memory.latency_seconds, rel=0.2)


def test_contended_atomics_serialise() -> None:
    spec = MACHINES["quartz"]
    one_target = Work(atomic_ops=1e6, atomic_targets=1)
    assert cpu_seconds(spec, one_target, 36) > 5 * cpu_seconds(spec, one_target, 1)
    assert cpu_seconds(spec, replace(one_target, atomic_targets=1e6), 36) < cpu_seconds(spec, one_target, 1)


def test_cache_traffic_falls_from_level_to_level_and_counts_write_allocation() -> None:
    spec = MACHINES["ruby"]
    for size in (16e3, 512e3, 20e6, 4e9):
        traffic = cache_traffic(spec, triad(size), 1)
        assert traffic.l2_bytes >= traffic.l3_bytes >= traffic.memory_bytes
        assert traffic.l1_miss_lines >= traffic.l2_miss_lines >= traffic.l3_miss_lines
    beyond = cache_traffic(spec, triad(3e12), 1)
    assert beyond.memory_bytes == pytest.approx(4e12, rel=1e-3)
    assert beyond.l3_miss_lines == pytest.approx(3e12 / LINE_BYTES, rel=1e-3)
    assert beyond.l3_miss_store_lines == pytest.approx(1e12 / LINE_BYTES, rel=1e-3)
    inside = cache_traffic(spec, triad(8e3), 1)
    assert inside.l2_bytes < 0.02 * inside.l1_bytes


def test_stores_past_the_cache_are_not_read_first() -> None:
    copy = Stream(written_bytes=1e9, reuse_bytes=1e12)
    spec = MACHINES["quartz"]
    plain = cache_traffic(spec, Work(streams=(copy,)), 1).memory_bytes
    assert plain == pytest.approx(
        2 * cache_traffic(spec, Work(streams=(replace(copy, bypasses_cache=True),)), 1).memory_bytes
    )


def test_wider_vectors_need_fewer_instructions() -> None:
    work = triad(1e9)
    counts = [instructions(MACHINES[machine], work).total for machine in ("lassen", "quartz", "dane")]
    assert counts == sorted(counts, reverse=True)
    assert instructions(MACHINES["dane"], replace(work, vector_share=0.0)).vector_flops == 0


def test_miss_share_is_a_share_that_grows_with_distance() -> None:
    shares = [miss_share(distance, MIB) for distance in (0, 1e3, MIB / 2, MIB, 2 * MIB, 1e12)]
    assert shares == sorted(shares)
    assert shares[0] < 1e-6
    assert shares[3] == pytest.approx(0.5)
    assert shares[-1] == pytest.approx(1.0)
    assert miss_share(1.0, 0.0) == 1.0


@pytest.mark.parametrize("spec", WITH_GPU, ids=lambda spec: spec.machine)
def test_launch_overhead_dominates_tiny_kernels_and_vanishes_in_large_ones(spec: MachineSpec) -> None:
    assert spec.gpu is not None
    tiny = replace(triad(8e3), parallel_items=333)
    assert gpu_seconds(spec, tiny) < 3 * spec.gpu.launch_seconds
    assert gpu_seconds(spec, replace(tiny, launches=100)) > 30 * gpu_seconds(spec, tiny)
    large = triad(8e9)
    assert gpu_seconds(spec, large) == pytest.approx(gpu_seconds(spec, replace(large, launches=0)), rel=0.02)


@pytest.mark.parametrize("spec", WITH_GPU, ids=lambda spec: spec.machine)
def test_a_device_needs_parallelism_and_likes_contiguous_data(spec: MachineSpec) -> None:
    times = [gpu_seconds(spec, replace(triad(1e9), parallel_items=items)) for items in (1e3, 1e4, 1e5, 1e7)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 10 * times[-1]
    gather = Work(streams=(Stream(read_bytes=1e9, reuse_bytes=1e12, run_bytes=8),))
    assert gpu_traffic(spec, gather).memory_bytes == pytest.approx(4e9)


def test_a_device_is_asked_only_where_there_is_one() -> None:
    with pytest.raises(ValueError, match="quartz has no GPU"):
        gpu_seconds(MACHINES["quartz"], triad(1e6))


def test_newer_machines_stream_faster() -> None:
    """Order of published STREAM and BabelStream results."""
    hosts = [
        cpu_seconds(MACHINES[m], triad(4e9), MACHINES[m].cpu.cores)
        for m in ("ivybridge-2695v2", "quartz", "ruby", "dane")
    ]
    assert hosts == sorted(hosts, reverse=True)
    devices = [gpu_seconds(MACHINES[m], triad(4e9)) for m in ("lassen", "corona", "tioga", "h100")]
    assert devices == sorted(devices, reverse=True)
