"""What the writers write, the readers read back."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf_assets.core.measurements import KernelTiming, Profile
from perf_assets.demo.fleet import write_samples_csv, write_samples_parquet
from perf_assets.demo.simulated import BenchmarkRun, ProfiledRun
from perf_assets.demo.writers.caliper import write_caliper
from perf_assets.demo.writers.hpctoolkit_v4 import write_v4_database
from perf_assets.demo.writers.hpctoolkit_xml import write_xml_database
from perf_assets.demo.writers.papi import write_papi
from perf_assets.demo.writers.perf_stat import write_perf_stat
from perf_assets.demo.writers.rajaperf_2024 import write_rajaperf_2024
from perf_assets.demo.writers.rajaperf_2026 import write_rajaperf_2026
from perf_assets.readers.read import read
from tests.demo.writers.conftest import benchmark_run, benchmark_runs, expected_totals, kernel_run, profiled_runs

EVENTS = ("PAPI_TOT_INS", "PAPI_L2_LDM", "bdw_ep::ARITH")
few = settings(max_examples=40, deadline=None)


def only_profile(write: Callable[[Path], None], form: str) -> Profile:
    """The one profile in what was written."""
    with TemporaryDirectory() as name:
        write(Path(name))
        reading = read(Path(name))
    assert reading.format == form
    (profile,) = reading.profiles
    return profile


def timings_of(write: Callable[[Path], None], form: str) -> dict[tuple[str, str, str], KernelTiming]:
    """Kernel times in what was written."""
    with TemporaryDirectory() as name:
        write(Path(name))
        reading = read(Path(name))
    assert reading.format == form
    return {(timing.kernel, timing.variant, timing.tuning): timing for timing in reading.timings}


def rounded(value: float, metric: str) -> float:
    return value if metric.endswith("(sec)") else float(round(value))


@pytest.mark.parametrize(
    ("writer", "form"), [(write_xml_database, "hpctoolkit-xml-metricdb"), (write_v4_database, "hpctoolkit-v4")]
)
@few
@given(run=profiled_runs())
def test_hpctoolkit(writer: Callable[[Path, ProfiledRun], None], form: str, run: ProfiledRun) -> None:
    profile = only_profile(lambda directory: writer(directory, run), form)
    assert (profile.ranks, profile.threads_per_rank, profile.hosts) == (run.ranks, run.threads_per_rank, run.hosts)
    assert profile.labels["program"] == run.program
    assert list(profile.metrics) == list(run.metrics)
    for number, (metric, expected) in enumerate(expected_totals(run).items()):
        values = run.values[..., number].ravel().tolist()
        values += [] if run.gpu_streams is None else run.gpu_streams[:, number].tolist()
        values = [rounded(value, metric) for value in values]
        total = profile.metrics[metric]
        assert total.sum == pytest.approx(expected, rel=1e-13, abs=0)
        assert (total.min, total.max) == (min(values), max(values))


@few
@given(run=profiled_runs(metrics=("REALTIME (sec)", *EVENTS)))
def test_papi(run: ProfiledRun) -> None:
    profile = only_profile(lambda directory: write_papi(directory, run), "papi-hl-json")
    assert (profile.ranks, profile.threads_per_rank) == (run.ranks, run.threads_per_rank)
    assert profile.wall_seconds == pytest.approx(run.wall_seconds, abs=1e-9)
    assert set(profile.metrics) == {"cycles", "real_time_nsec", *EVENTS}
    for metric, expected in expected_totals(run).items():
        if metric in EVENTS:
            assert profile.metrics[metric].sum == expected


@few
@given(run=profiled_runs(metrics=EVENTS), share=st.integers(1, 100))
def test_perf_stat(run: ProfiledRun, share: int) -> None:
    profile = only_profile(
        lambda directory: write_perf_stat(directory / "perf.csv", run, {EVENTS[0]: share / 100}), "perf-stat-csv"
    )
    assert profile.wall_seconds == pytest.approx(run.wall_seconds, abs=1e-9)
    assert set(profile.metrics) == {"task-clock", "duration_time", *EVENTS}
    for metric, expected in expected_totals(run).items():
        assert profile.metrics[metric].sum == expected
    assert profile.metrics[EVENTS[0]].running_ratio == pytest.approx(share / 100)
    assert profile.metrics[EVENTS[1]].running_ratio == 1.0


@pytest.mark.parametrize("writer", [write_samples_csv, write_samples_parquet])
@few
@given(rows=st.lists(st.tuples(st.floats(-1e300, 1e300), st.integers(0, 2**40)), min_size=1, max_size=20))
def test_samples(writer: Callable[[Path, pd.DataFrame], None], rows: list[tuple[float, int]]) -> None:
    frame = pd.DataFrame(rows, columns=["runtime", "instructions"])
    with TemporaryDirectory() as name:
        writer(Path(name) / "samples", frame)
        profiles = list(read(Path(name)).profiles)
    found = [(profile.metrics["runtime"].sum, profile.metrics["instructions"].sum) for profile in profiles]
    assert found == [(runtime, float(instructions)) for runtime, instructions in rows]


def check_facts(run: BenchmarkRun, found: dict[tuple[str, str, str], KernelTiming]) -> None:
    """All but the times."""
    assert set(found) == {(kernel.kernel, kernel.variant, kernel.tuning) for kernel in run.kernels}
    for kernel in run.kernels:
        timing = found[(kernel.kernel, kernel.variant, kernel.tuning)]
        assert (timing.problem_size, timing.reps) == (kernel.problem_size, kernel.reps)
        assert (timing.bytes_per_rep, timing.flops_per_rep) == (kernel.bytes_per_rep, kernel.flops_per_rep)
        assert timing.threads == (run.threads if "OpenMP" in kernel.variant else 1)
        assert timing.is_valid == (kernel.reps > 0)


@few
@given(run=benchmark_runs())
def test_rajaperf_2024(run: BenchmarkRun) -> None:
    found = timings_of(lambda directory: write_rajaperf_2024(directory, run), "rajaperf-csv-2024")
    check_facts(run, found)
    for kernel in run.kernels:
        timing = found[(kernel.kernel, kernel.variant, kernel.tuning)]
        assert timing.ranks == run.ranks
        if kernel.reps:
            unit = kernel.reps
            assert timing.seconds_per_rep == float(f"{fmean(kernel.pass_seconds):.6f}") / unit
            if run.passes > 1:
                assert timing.seconds_per_rep_min == float(f"{min(kernel.pass_seconds):.6f}") / unit
                assert timing.seconds_per_rep_max == float(f"{max(kernel.pass_seconds):.6f}") / unit


@few
@given(run=benchmark_runs())
def test_rajaperf_2026(run: BenchmarkRun) -> None:
    found = timings_of(lambda directory: write_rajaperf_2026(directory, run), "rajaperf-csv-2026")
    check_facts(run, found)
    for kernel in run.kernels:
        timing = found[(kernel.kernel, kernel.variant, kernel.tuning)]
        assert timing.ranks == run.ranks
        if kernel.reps:
            # kernel-run-data.csv has six digits of the time per repetition, and is the one that counts.
            seconds = float(f"{fmean(kernel.pass_seconds) / kernel.reps:.6g}")
            assert timing.seconds_per_rep == pytest.approx(seconds, rel=1e-14)


@few
@given(run=benchmark_runs(max_passes=2))
def test_caliper(run: BenchmarkRun) -> None:
    found = timings_of(lambda directory: write_caliper(directory, run), "caliper")
    check_facts(run, found)
    for kernel in run.kernels:
        timing = found[(kernel.kernel, kernel.variant, kernel.tuning)]
        if kernel.reps:
            expected = float(f"{sum(kernel.pass_seconds):.6f}") / run.passes / kernel.reps
            assert timing.seconds_per_rep == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("writer", "form"), [(write_rajaperf_2024, "rajaperf-csv-2024"), (write_rajaperf_2026, "rajaperf-csv-2026")]
)
def test_wrong_results_are_recognised(writer: Callable[[Path, BenchmarkRun], None], form: str) -> None:
    runs = (kernel_run("Stream_TRIAD"), kernel_run("Stream_TRIAD", "RAJA_Seq", is_checksum_ok=False))
    found = timings_of(lambda directory: writer(directory, benchmark_run(runs)), form)
    assert [timing.is_valid for timing in found.values()] == [True, False]
