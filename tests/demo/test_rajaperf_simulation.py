import math
from statistics import median

import pytest

from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.kernels import load_kernels
from perf_assets.demo.rajaperf import benchmark_runs, seconds_per_rep, variants
from perf_assets.demo.simulated import BenchmarkRun, KernelRun

MACHINES = load_machines()


@pytest.fixture(scope="module")
def lassen() -> list[BenchmarkRun]:
    return list(benchmark_runs(MACHINES["lassen"], 1.0, 7))


def find(run: BenchmarkRun, kernel: str, variant: str) -> KernelRun:
    return next(k for k in run.kernels if (k.kernel, k.variant) == (kernel, variant))


def test_scale_sets_the_number_of_invocations(lassen: list[BenchmarkRun]) -> None:
    assert len(lassen) == 9
    assert {(run.requested_size, run.threads) for run in lassen} == {
        (size, threads) for size in (100_000, 1_000_000, 4_000_000) for threads in (1, 22, 44)
    }
    assert len(list(benchmark_runs(MACHINES["quartz"], 0.1, 7))) == 2
    assert len(list(benchmark_runs(MACHINES["epyc-vm"], 2.0, 7))) == 18


def test_same_seed_same_runs_whatever_is_asked_before(lassen: list[BenchmarkRun]) -> None:
    assert list(benchmark_runs(MACHINES["lassen"], 0.2, 7)) == lassen[:2]
    other = next(iter(benchmark_runs(MACHINES["lassen"], 0.1, 8)))
    assert other.kernels[0].pass_seconds != lassen[0].kernels[0].pass_seconds


def test_noise_is_the_same_in_every_python_process() -> None:
    """Built on CRC-32 of names, never on `hash`."""
    run = next(iter(benchmark_runs(MACHINES["quartz"], 0.1, 0)))
    undisturbed = seconds_per_rep(MACHINES["quartz"], load_kernels()["Stream_TRIAD"], 1e6, "Base_Seq", 1)
    noise = find(run, "Stream_TRIAD", "Base_Seq").pass_seconds[0] / (1000 * undisturbed)
    assert noise == pytest.approx(1.004853751401, rel=1e-9)


def test_variants_follow_the_hardware(lassen: list[BenchmarkRun]) -> None:
    assert variants(MACHINES["quartz"]) == ("Base_Seq", "RAJA_Seq", "Base_OpenMP", "RAJA_OpenMP")
    assert variants(MACHINES["tioga"])[-2:] == ("Base_HIP", "RAJA_HIP")
    run = lassen[0]
    assert {k.variant for k in run.kernels} == set(variants(MACHINES["lassen"]))
    assert len({k.kernel for k in run.kernels}) == 64
    assert sum(k.variant == "Base_Seq" for k in run.kernels) == 64
    assert ("Algorithm_SORT", "Base_OpenMP") not in {(k.kernel, k.variant) for k in run.kernels}
    assert find(run, "Basic_DAXPY", "Base_CUDA").tuning == "block_256"
    assert find(run, "Basic_DAXPY", "Base_OpenMP").tuning == "default"


def test_few_repetitions_leave_the_longest_kernels_with_none(lassen: list[BenchmarkRun]) -> None:
    assert not [k for run in lassen if run.repetition_factor == 1 for k in run.kernels if k.reps == 0]
    short = next(run for run in lassen if run.repetition_factor < 1)
    without = {k.kernel for k in short.kernels if k.reps == 0}
    assert "Polybench_2MM" in without
    assert 1 <= len(without) <= 10
    assert all(0 < s < 1e-4 for k in short.kernels if k.reps == 0 for s in k.pass_seconds)


def test_times_are_positive_and_vary_a_little(lassen: list[BenchmarkRun]) -> None:
    cells = [k for run in lassen for k in run.kernels]
    assert all(len(k.pass_seconds) == 3 and min(k.pass_seconds) > 0 for k in cells)
    spreads = [max(k.pass_seconds) / min(k.pass_seconds) - 1 for k in cells if k.reps]
    assert 0.002 < median(spreads) < 0.03
    assert max(spreads) < 0.8
    assert 0 < sum(not k.is_checksum_ok for k in cells) < 0.01 * len(cells)


def test_reported_counts_are_consistent(lassen: list[BenchmarkRun]) -> None:
    for k in lassen[0].kernels:
        assert k.bytes_per_rep == k.bytes_read_per_rep + k.bytes_written_per_rep + 2 * k.bytes_atomic_per_rep
    assert find(lassen[0], "Basic_DAXPY", "Base_Seq").bytes_per_rep == 24_000_000
    assert find(lassen[0], "Polybench_FDTD_2D", "Base_Seq").problem_size == 1_001_000


def test_faster_hardware_is_faster_and_raja_costs_little() -> None:
    kernels = load_kernels()
    lassen, h100 = MACHINES["lassen"], MACHINES["h100"]
    for kernel in kernels.values():
        edge = kernel.edge_of_request(4_000_000)
        volta = seconds_per_rep(lassen, kernel, edge, "Base_CUDA", 1)
        assert seconds_per_rep(h100, kernel, edge, "Base_CUDA", 1) < volta
        assert 1 < seconds_per_rep(lassen, kernel, edge, "RAJA_CUDA", 1) / volta < 1.2
        assert math.isfinite(volta)
    triad, edge = kernels["Stream_TRIAD"], 4e6
    assert (
        seconds_per_rep(lassen, triad, edge, "Base_OpenMP", 44)
        < seconds_per_rep(lassen, triad, edge, "Base_Seq", 44) / 10
    )
