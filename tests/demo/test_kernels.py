import csv
from pathlib import Path

import pytest

from perf_assets.demo.kernels import Kernel, load_kernels, suite_kernels
from perf_assets.demo.rajaperf import cpu_work, gpu_work

KERNELS = load_kernels()
LEADING_TERM_ONLY = {"Basic_MAT_MAT_SHARED", "Polybench_2MM", "Polybench_3MM", "Polybench_GEMM"}
"""The suite rounds the edges of these matrices up to tiles or down from ratios."""
TOUCHED_MANY_TIMES = LEADING_TERM_ONLY | {"Polybench_FLOYD_WARSHALL"}
"""Reported bytes count each matrix once, the loops sweep them many times."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_suite_of_2022_runs_64_kernels(shared_data: Path) -> None:
    assert len(suite_kernels()) == 64
    named = rows(shared_data / "rajaperf" / "expected" / "kernel_names_by_version.csv")
    in_2022 = {row["kernel"] for row in named if row["v2022.10.0"] == "1"}
    assert {kernel.name for kernel in suite_kernels()} == in_2022 - {"Apps_COUPLE"}


def test_table_equals_the_dry_run_of_the_suite(shared_data: Path) -> None:
    checked = 0
    for row in rows(shared_data / "rajaperf" / "expected" / "kernel_details_2024.csv"):
        kernel = KERNELS.get(row["kernel"])
        if kernel is None:
            continue
        is_default = row["requested_size"] == "default"
        request = kernel.default_size if is_default else int(row["requested_size"])
        edge = kernel.edge_of_request(request)
        read, written, atomic = kernel.bytes_read(edge), kernel.bytes_written(edge), kernel.bytes_atomic(edge)
        found = {
            "problem_size": kernel.problem_size(request),
            "default_reps": kernel.default_reps,
            "kernels_per_rep": kernel.kernels_per_rep,
            "bytes_per_rep": read + written + 2 * atomic,
            "bytes_read_per_rep": read,
            "bytes_written_per_rep": written,
            "bytes_atomic_modify_written_per_rep": atomic,
            "flops_per_rep": kernel.flops(edge),
        }
        if kernel.name in LEADING_TERM_ONLY:
            del found["flops_per_rep"]
        tolerance = 0.02 if kernel.name in LEADING_TERM_ONLY else 1e-9
        assert found == {key: pytest.approx(float(row[key]), rel=tolerance) for key in found}, (kernel.name, request)
        assert kernel.iterations(edge) == pytest.approx(float(row["iterations_per_rep"]), rel=0.03)
        checked += 1
    assert checked == 66 * 7


def test_matrix_products_have_their_flops_within_a_rounded_edge(shared_data: Path) -> None:
    for row in rows(shared_data / "rajaperf" / "expected" / "kernel_details_2024.csv"):
        if row["kernel"] in LEADING_TERM_ONLY and row["requested_size"] in ("1000000", "4000000", "10000000"):
            kernel = KERNELS[row["kernel"]]
            edge = kernel.edge_of_request(int(row["requested_size"]))
            assert kernel.flops(edge) == pytest.approx(float(row["flops_per_rep"]), rel=0.04)


def swept_bytes(kernel: Kernel, edge: float) -> float:
    words = kernel.swept_read + 2 * kernel.swept_update + kernel.swept_write + kernel.strided
    return 8 * words * kernel.inner(edge)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - TOUCHED_MANY_TIMES))
def test_what_the_loops_sweep_is_what_the_suite_reports(name: str) -> None:
    """Traits and facts come from different sources and must agree on the bytes that a repetition moves."""
    kernel = KERNELS[name]
    edge = kernel.edge_of_request(4_000_000)
    reported = kernel.bytes_read(edge) + kernel.bytes_written(edge) + 2 * kernel.bytes_atomic(edge)
    if reported < 1000:
        assert swept_bytes(kernel, edge) == 0
    else:
        assert 0.4 < swept_bytes(kernel, edge) / reported < 1.6


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_work_grows_with_size_and_is_finite(kernel: Kernel) -> None:
    small, large = (kernel.edge_of_request(size) for size in (100_000, 4_000_000))
    for make in (lambda edge: cpu_work(kernel, edge, is_parallel=True), lambda edge: gpu_work(kernel, edge)):
        first, second = make(small), make(large)
        assert sum(s.read_bytes + s.written_bytes for s in second.streams) >= sum(
            s.read_bytes + s.written_bytes for s in first.streams
        )
        assert second.integer_ops > first.integer_ops > 0
        assert all(stream.reuse_bytes > 0 for stream in second.streams)
        assert 0 <= second.vector_share <= 1
        assert 0 <= second.mispredict_rate <= 1


def test_only_parallel_variants_use_atomics_and_regions() -> None:
    kernel = KERNELS["Basic_PI_ATOMIC"]
    assert cpu_work(kernel, 1000.0, is_parallel=False).atomic_ops == 0
    parallel = cpu_work(kernel, 1000.0, is_parallel=True)
    assert (parallel.atomic_ops, parallel.atomic_targets, parallel.parallel_regions) == (1000, 1, 1)
    assert gpu_work(KERNELS["Polybench_FLOYD_WARSHALL"], 500.0).launches == 500


def test_every_line_says_where_its_facts_are_from() -> None:
    assert all(kernel.source for kernel in KERNELS.values())
    assert list(KERNELS) == sorted(KERNELS)
