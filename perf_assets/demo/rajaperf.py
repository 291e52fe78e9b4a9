"""Simulated invocations of RAJAPerf on a machine of the fleet."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count, islice
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.hardware.device import gpu_seconds
from perf_assets.demo.hardware.processor import cpu_seconds
from perf_assets.demo.hardware.work import LINE_BYTES, Stream, Work
from perf_assets.demo.kernels import Kernel, load_kernels, suite_kernels
from perf_assets.demo.simulated import BenchmarkRun, KernelRun
from perf_assets.demo.tools.observation import generator

_WORD = 8.0
_NEAR_BYTES = 2048.0
"""Reuse distance of near words."""
_STRIDED_MISSES = 10.0
"""Independent misses in flight while walking columns: the line-fill buffers of a core."""
_GPU_TILE = 16.0
"""Edge of the thread block that shares a matrix element on a device."""
_RADIX_PASSES = 8
"""Passes of a device's radix sort over 8-byte keys, a byte each."""


def _inner_iterations(kernel: Kernel, edge: float) -> float:
    inner = kernel.inner(edge)
    return inner * math.log2(max(inner, 2.0)) if kernel.pattern == "sort" else inner


def _sorting_streams(kernel: Kernel, edge: float) -> tuple[Stream, ...]:
    """Every level of a quicksort sweeps the data in runs half as long as the level above."""
    footprint = kernel.footprint(edge)
    levels = range(round(math.log2(max(kernel.inner(edge), 2.0))))
    return tuple(
        Stream(read_bytes=footprint, written_bytes=footprint, reuse_bytes=footprint / 2.0**level) for level in levels
    )


def _common_streams(kernel: Kernel, edge: float) -> list[Stream]:
    words = _WORD * kernel.inner(edge)
    footprint = kernel.footprint(edge)
    update, write = kernel.swept_update * words, kernel.swept_write * words
    streams = [
        Stream(read_bytes=kernel.swept_read * words, reuse_bytes=footprint),
        Stream(read_bytes=update, written_bytes=update, reuse_bytes=footprint),
        Stream(written_bytes=write, reuse_bytes=footprint, bypasses_cache=kernel.pattern == "library"),
        Stream(read_bytes=kernel.near * words, reuse_bytes=_NEAR_BYTES),
        Stream(read_bytes=kernel.mid * words, reuse_bytes=kernel.mid_reuse(edge)),
    ]
    return [stream for stream in streams if stream.read_bytes or stream.written_bytes]


def _cpu_strided(kernel: Kernel, edge: float) -> tuple[Stream, ...]:
    strided = kernel.strided * _WORD * kernel.inner(edge)
    far = Stream(
        read_bytes=strided, reuse_bytes=kernel.footprint(edge), run_bytes=_WORD, outstanding_misses=_STRIDED_MISSES
    )
    if kernel.pattern == "gather":
        return (far,)
    # Walking down a column loads a line for each row; the next columns find it again if a line per row is still cached.
    first = _WORD / LINE_BYTES
    again = Stream(
        read_bytes=strided * (1.0 - first),
        reuse_bytes=LINE_BYTES * edge,
        run_bytes=_WORD,
        outstanding_misses=_STRIDED_MISSES,
    )
    first_visit = Stream(
        read_bytes=strided * first, reuse_bytes=far.reuse_bytes, run_bytes=_WORD, outstanding_misses=_STRIDED_MISSES
    )
    return (again, first_visit)


def _gpu_strided(kernel: Kernel, edge: float) -> tuple[Stream, ...]:
    strided = kernel.strided * _WORD * kernel.inner(edge)
    footprint = kernel.footprint(edge)
    if kernel.pattern == "gather":
        return (Stream(read_bytes=strided, reuse_bytes=footprint, run_bytes=_WORD),)
    if kernel.pattern == "matmul":
        shared = strided * (1.0 - 1.0 / _GPU_TILE)
        return (
            Stream(read_bytes=shared, reuse_bytes=_NEAR_BYTES),
            Stream(read_bytes=strided - shared, reuse_bytes=footprint),
        )
    # Neighbouring threads take neighbouring columns: what strides on a processor is contiguous here.
    return (Stream(read_bytes=strided, reuse_bytes=footprint),)


def _operations(kernel: Kernel, edge: float) -> Work:
    """Everything but the memory accesses and what differs between processor and device."""
    inner = _inner_iterations(kernel, edge)
    return Work(
        double_flops=kernel.inner_flops * inner,
        integer_ops=kernel.integer * inner,
        divides=kernel.divides * inner,
        math_calls=kernel.math_calls * inner,
        vector_share=kernel.vector,
        chained_flops=kernel.chained * inner,
        branches=inner * max(1.0, kernel.mispredicts),
        mispredict_rate=kernel.mispredicts / max(1.0, kernel.mispredicts),
    )


def _with_atomics(work: Work, kernel: Kernel, edge: float) -> Work:
    count = kernel.atomics * kernel.inner(edge)
    targets = max(count, 1.0) if kernel.atomic_targets is None else kernel.atomic_targets
    return replace(work, atomic_ops=count, atomic_targets=targets)


def _launches(kernel: Kernel, edge: float) -> float:
    return kernel.launches(edge) if kernel.launches else float(kernel.kernels_per_rep)


def cpu_work(kernel: Kernel, edge: float, *, is_parallel: bool) -> Work:
    """One repetition on processors; `is_parallel` chooses the OpenMP variant with its regions and atomics."""
    streams = (
        _sorting_streams(kernel, edge)
        if kernel.pattern == "sort"
        else (*_common_streams(kernel, edge), *_cpu_strided(kernel, edge))
    )
    work = replace(_operations(kernel, edge), streams=streams)
    if not is_parallel:
        return work
    return _with_atomics(replace(work, parallel_regions=_launches(kernel, edge)), kernel, edge)


def gpu_work(kernel: Kernel, edge: float) -> Work:
    """One repetition on a device."""
    inner = kernel.inner(edge)
    if kernel.pattern == "sort":
        footprint = kernel.footprint(edge)
        keys = _WORD * inner
        # Each pass counts the keys, then reads and scatters keys and values.
        one_pass = (
            Stream(read_bytes=keys + footprint, reuse_bytes=footprint),
            Stream(written_bytes=footprint, reuse_bytes=footprint),
        )
        return Work(
            streams=one_pass * _RADIX_PASSES,
            integer_ops=10.0 * inner * _RADIX_PASSES,
            parallel_items=inner,
            launches=2.0 * _RADIX_PASSES,
        )
    work = replace(
        _operations(kernel, edge),
        streams=(*_common_streams(kernel, edge), *_gpu_strided(kernel, edge)),
        parallel_items=kernel.items(edge) if kernel.items else inner,
        launches=_launches(kernel, edge),
        host_syncs=float(kernel.syncs),
    )
    return _with_atomics(work, kernel, edge)


_SIZES_WITH_REPETITION_FACTORS = ((1_000_000, 1.0), (100_000, 1.0), (4_000_000, 0.1))
"""At a tenth of the repetitions the longest kernels are left with none, as in the real suite."""
_PASSES = 3
COMPILER = "g++-12.2.0"
FIRST_LAUNCH = 1_700_000_000
_SECONDS_BETWEEN_LAUNCHES = 5_400

_RUN_SPREAD = 0.02
"""Relative spread between invocations: clocks, placement of pages, neighbours."""
_KERNEL_SPREAD = 0.015
_PASS_SPREAD = 0.01
_DISTURBED_PASS_PROBABILITY = 0.01
_DISTURBED_PASS_FACTORS = (1.1, 1.6)
_FAILED_CHECKSUM_PROBABILITY = 0.001
_PASS_OVERHEAD_SECONDS = 2e-5
"""Timers and set-up of a pass: all that a kernel with no repetitions takes."""
_RAJA_FACTOR = 1.03
_RAJA_REDUCTION_FACTOR = 1.10
"""Lambdas and views cost a few percent, reducer objects more."""

_UNDEFINED = {
    "Base_OpenMP": {"Algorithm_SORT", "Algorithm_SORTPAIRS"},
    "RAJA_Seq": {"Basic_INDEXLIST"},
    "RAJA_OpenMP": {"Basic_INDEXLIST"},
    "RAJA_CUDA": {"Basic_INDEXLIST"},
    "RAJA_HIP": {"Basic_INDEXLIST"},
}
"""Kernels that the suite does not implement in a variant."""
_GPU_TUNINGS = {
    "Algorithm_SCAN": "default",
    "Algorithm_SORT": "default",
    "Algorithm_SORTPAIRS": "default",
    "Apps_CONVECTION3DPA": "block_64",
    "Apps_DIFFUSION3DPA": "block_64",
    "Apps_MASS3DPA": "block_25",
}
"""Kernels with one device tuning of their own; all others have block_256."""


def variants(spec: MachineSpec) -> tuple[str, ...]:
    """Variants that run on this machine; the first is the reference of the speedup report."""
    host = ("Base_Seq", "RAJA_Seq", "Base_OpenMP", "RAJA_OpenMP")
    if spec.gpu is None:
        return host
    model = "CUDA" if "NVIDIA" in spec.gpu.model else "HIP"
    return (*host, f"Base_{model}", f"RAJA_{model}")


def seconds_per_rep(spec: MachineSpec, kernel: Kernel, edge: float, variant: str, threads: int) -> float:
    """Undisturbed time of one repetition at an edge length of the kernel's index space."""
    programming, _, model = variant.partition("_")
    if model in ("CUDA", "HIP"):
        seconds = gpu_seconds(spec, gpu_work(kernel, edge))
    elif model == "OpenMP":
        seconds = cpu_seconds(spec, cpu_work(kernel, edge, is_parallel=True), threads)
    else:
        seconds = cpu_seconds(spec, cpu_work(kernel, edge, is_parallel=False), 1)
    if programming == "RAJA":
        seconds *= _RAJA_REDUCTION_FACTOR if kernel.syncs else _RAJA_FACTOR
    return seconds


def _pass_seconds(undisturbed: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """Measured times of all repetitions: one row per cell of the report, one column per pass."""
    shape = (len(undisturbed), _PASSES)
    run_and_kernel = np.exp(random.normal(0.0, _RUN_SPREAD) + random.normal(0.0, _KERNEL_SPREAD, shape[0]))
    factors = run_and_kernel[:, None] * np.exp(np.abs(random.normal(0.0, _PASS_SPREAD, shape)))
    disturbed = random.random(shape) < _DISTURBED_PASS_PROBABILITY
    factors *= np.where(disturbed, random.uniform(*_DISTURBED_PASS_FACTORS, shape), 1.0)
    overheads = _PASS_OVERHEAD_SECONDS * np.exp(random.normal(0.0, 0.1, shape))
    return np.asarray(undisturbed[:, None] * factors + overheads)


def _repetitions(kernel: Kernel, run: BenchmarkRun) -> int:
    return int(kernel.default_reps * run.repetition_factor)


def _kernel_run(
    kernel: Kernel, variant: str, run: BenchmarkRun, pass_seconds: tuple[float, ...], is_checksum_ok: bool
) -> KernelRun:
    edge = kernel.edge_of_request(run.requested_size)
    on_device = variant.endswith(("CUDA", "HIP"))
    read, written, atomic = (round(law(edge)) for law in (kernel.bytes_read, kernel.bytes_written, kernel.bytes_atomic))
    return KernelRun(
        kernel=kernel.name,
        variant=variant,
        tuning=_GPU_TUNINGS.get(kernel.name, "block_256") if on_device else "default",
        problem_size=kernel.problem_size(run.requested_size),
        reps=_repetitions(kernel, run),
        iterations_per_rep=round(kernel.iterations(edge)),
        kernels_per_rep=kernel.kernels_per_rep,
        # An atomic update reads and writes its target.
        bytes_per_rep=read + written + 2 * atomic,
        bytes_read_per_rep=read,
        bytes_written_per_rep=written,
        bytes_atomic_per_rep=atomic,
        flops_per_rep=round(kernel.flops(edge)),
        pass_seconds=pass_seconds,
        is_checksum_ok=is_checksum_ok,
    )


def _plan(spec: MachineSpec) -> Iterator[tuple[int, float, int]]:
    """Requested size, repetition factor and threads of one invocation after the other, without end."""
    thread_counts = sorted({spec.cpu.cores, max(1, spec.cpu.cores // 2), 1}, reverse=True)
    for _ in count():
        for size, repetition_factor in _SIZES_WITH_REPETITION_FACTORS:
            for threads in thread_counts:
                yield size, repetition_factor, threads


def benchmark_runs(spec: MachineSpec, scale: float, seed: int) -> Iterator[BenchmarkRun]:
    """Simulated invocations on one machine: nine at scale 1, at least two; the same seed gives the same runs."""
    invocations = max(2, round(9 * scale))
    first = FIRST_LAUNCH + crc32(spec.machine.encode()) % 10_000_000
    for index, (size, repetition_factor, threads) in enumerate(islice(_plan(spec), invocations)):
        launched_at = first + index * _SECONDS_BETWEEN_LAUNCHES
        yield benchmark_run(spec, f"invocation {index}", seed, threads, size, repetition_factor, launched_at)


def benchmark_run(
    spec: MachineSpec,
    name: str,
    seed: int,
    threads: int,
    size: int,
    repetition_factor: float,
    launched_at: int,
    compiler: str = COMPILER,
) -> BenchmarkRun:
    """A run with what its kernels take on a machine; the same name and seed give the same times."""
    run = BenchmarkRun(
        machine=spec.machine,
        threads=threads,
        ranks=0,
        requested_size=size,
        repetition_factor=repetition_factor,
        passes=_PASSES,
        compiler=compiler,
        launched_at=launched_at,
        kernels=(),
    )
    return _with_kernels(run, _undisturbed_seconds(spec, size, threads), name, seed)


@lru_cache(maxsize=64)
def _undisturbed_seconds(spec: MachineSpec, size: int, threads: int) -> dict[tuple[str, str], float]:
    """Time of one repetition by kernel and variant, of all that the suite implements."""
    return {
        (kernel.name, variant): seconds_per_rep(spec, kernel, kernel.edge_of_request(size), variant, threads)
        for kernel in suite_kernels()
        for variant in variants(spec)
        if kernel.name not in _UNDEFINED.get(variant, ())
    }


def _with_kernels(run: BenchmarkRun, undisturbed: dict[tuple[str, str], float], name: str, seed: int) -> BenchmarkRun:
    kernels = load_kernels()
    random = generator(seed, (run.machine, name))
    totals = [_repetitions(kernels[kernel], run) * seconds for (kernel, _), seconds in undisturbed.items()]
    measured = _pass_seconds(np.array(totals), random).tolist()
    checksums = random.random(len(totals)) >= _FAILED_CHECKSUM_PROBABILITY
    cells = (
        _kernel_run(kernels[kernel], variant, run, tuple(seconds), bool(is_ok))
        for (kernel, variant), seconds, is_ok in zip(undisturbed, measured, checksums, strict=True)
    )
    return replace(run, kernels=tuple(cells))
