"""What one repetition of a RAJAPerf kernel asks of a processor or a device."""

import math
from dataclasses import replace

from perf_assets.demo.hardware.work import LINE_BYTES, Stream, Work
from perf_assets.demo.kernels import Kernel

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
