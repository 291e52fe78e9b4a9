"""Simulated runs for the tests of the writers."""

import math
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from perf_assets.demo.simulated import BenchmarkRun, KernelRun, ProfiledRun

METRICS = ("REALTIME (sec)", "PAPI_TOT_INS", "bdw_ep::ARITH", "IO Bytes Read")
KERNELS = ("Basic_DAXPY", "Stream_TRIAD", "Apps_VOL3D", "Algorithm_ATOMIC")


def profiled_run(
    ranks: int = 4,
    threads: int = 2,
    hosts: int = 2,
    streams: int = 0,
    metrics: tuple[str, ...] = METRICS,
    seed: int = 7,
    program: str = "kripke",
) -> ProfiledRun:
    """A run with values that are no round numbers; the last metric is 0 everywhere."""
    random = np.random.default_rng(seed)

    def values(*shape: int) -> np.ndarray:
        found = random.uniform(1e3, 1e10, (*shape, len(metrics)))
        found[..., [metric.endswith("(sec)") for metric in metrics]] /= 1e8
        found[..., -1] = 0.0
        return found

    gpu = values(streams) if streams else None
    return ProfiledRun(program, ranks, threads, hosts, 12.3456789, metrics, values(ranks, threads), gpu, seed)


def expected_totals(run: ProfiledRun) -> dict[str, float]:
    """Sum of each metric over all threads and streams, counts rounded before."""
    rows = [row for rank in run.values.tolist() for row in rank]
    rows += [] if run.gpu_streams is None else run.gpu_streams.tolist()
    columns = zip(*rows, strict=True)
    return {
        metric: math.fsum(column) if metric.endswith("(sec)") else float(sum(round(value) for value in column))
        for metric, column in zip(run.metrics, columns, strict=True)
    }


@st.composite
def profiled_runs(draw: st.DrawFn, metrics: tuple[str, ...] = METRICS, max_streams: int = 4) -> ProfiledRun:
    """Any run with these metrics."""
    ranks, threads = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    counts, seconds = st.floats(0, 1e12), st.floats(0, 1e5).filter(lambda value: value == 0 or value > 1e-9)
    row = st.tuples(*(seconds if metric.endswith("(sec)") else counts for metric in metrics))
    values = draw(st.lists(row, min_size=ranks * threads, max_size=ranks * threads))
    streams = draw(st.lists(row, max_size=min(ranks, max_streams)))
    return ProfiledRun(
        program=draw(st.sampled_from(("kripke", "miniVite", "SW4lite"))),
        ranks=ranks,
        threads_per_rank=threads,
        hosts=draw(st.integers(1, ranks)),
        wall_seconds=draw(st.floats(0.001, 1e5)),
        metrics=metrics,
        values=np.array(values, float).reshape(ranks, threads, len(metrics)),
        gpu_streams=np.array(streams, float).reshape(-1, len(metrics)) if streams else None,
        seed=draw(st.integers(0, 2**31)),
    )


def kernel_run(kernel: str, variant: str = "Base_Seq", tuning: str = "default", **fields: object) -> KernelRun:
    """A kernel's run; `fields` replace the usual values."""
    usual: dict[str, object] = {
        "problem_size": 100000,
        "reps": 50,
        "iterations_per_rep": 100000,
        "kernels_per_rep": 1,
        "bytes_per_rep": 2400000,
        "bytes_read_per_rep": 1600000,
        "bytes_written_per_rep": 800000,
        "bytes_atomic_per_rep": 0,
        "flops_per_rep": 200000,
        "pass_seconds": (0.002508,),
    }
    return KernelRun(kernel, variant, tuning, **{**usual, **fields})  # type: ignore[arg-type]


def benchmark_run(kernels: tuple[KernelRun, ...], ranks: int = 0, passes: int = 1, threads: int = 2) -> BenchmarkRun:
    """A run of these kernels."""
    return BenchmarkRun("quartz", threads, ranks, 100000, 0.1, passes, "c++-12.2.0", 1_790_000_000, kernels)


@st.composite
def benchmark_runs(draw: st.DrawFn, max_passes: int = 3) -> BenchmarkRun:
    """Any run of a few kernels, of which not every variant and tuning is run."""
    passes = draw(st.integers(1, max_passes))
    columns = draw(
        st.lists(
            st.sampled_from([("Base_Seq", "default"), ("Base_OpenMP", "default"), ("RAJA_OpenMP", "new")]),
            min_size=1,
            unique=True,
        )
    )
    kernels = draw(st.lists(st.sampled_from(KERNELS), min_size=1, unique=True))
    whole = st.integers(0, 10**13)
    runs = []
    for kernel in kernels:
        facts = {
            "problem_size": draw(st.integers(1, 10**10)),
            "reps": draw(st.integers(0, 5000)),
            "iterations_per_rep": draw(whole),
            "kernels_per_rep": draw(st.integers(1, 100)),
            **{f"bytes{kind}_per_rep": draw(whole) for kind in ("", "_read", "_written", "_atomic")},
            "flops_per_rep": draw(whole),
        }
        some = draw(st.lists(st.sampled_from(columns), min_size=1, unique=True))
        for variant, tuning in some:
            seconds = draw(st.lists(st.floats(1e-5, 1e4), min_size=passes, max_size=passes))
            runs.append(kernel_run(kernel, variant, tuning, **facts, pass_seconds=tuple(seconds)))
    return benchmark_run(
        tuple(runs), ranks=draw(st.sampled_from((0, 1, 36))), passes=passes, threads=draw(st.integers(1, 128))
    )


def contents(directory: Path) -> dict[str, bytes]:
    """All files below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    }
