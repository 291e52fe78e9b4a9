"""Kernel times per element of a node: what describes machines that ran RAJAPerf at sizes of their own."""

import numpy as np
import pandas as pd
import pytest

from perf_assets.features.fleet.per_element import (
    ELEMENTS,
    are_per_element,
    kernels_per_element,
    of_kind,
    sizes_in_words,
    sizes_match,
)
from perf_assets.features.fleet.samples import NODE, benchmark_samples
from tests.features.fleet_tables import fleet_tables


def runs(machine: str, kernel: str, *times: tuple[int, int, float], power: float = 0.0) -> list[dict[str, object]]:
    """Rows of `NODE_KERNELS_QUERY`: size of a process, processes and seconds; operations grow as size^(1 + power)."""
    return [
        {
            "machine": machine,
            "kernel": kernel,
            "problem_size": size,
            "processes": processes,
            "seconds_per_rep": seconds,
            "bytes_per_rep": 24.0 * size,
            "flops_per_rep": 2.0 * size ** (1 + power),
        }
        for size, processes, seconds in times
    ]


def seconds_of(rows: list[dict[str, object]]) -> dict[tuple[str, str], float]:
    found = kernels_per_element(pd.DataFrame(rows))
    assert set(found["placement"]) == {NODE}
    assert set(found["problem_size"]) == {ELEMENTS}
    return {(row.machine, row.kernel): row.seconds_per_rep for row in found.itertuples()}  # type: ignore[misc]


def test_times_are_of_all_elements_of_a_node_whatever_a_process_has() -> None:
    whole, half = ELEMENTS // 4, ELEMENTS // 2
    found = seconds_of([*runs("four", "Stream_TRIAD", (whole, 4, 0.5)), *runs("one", "Stream_TRIAD", (half, 1, 0.5))])
    assert found["four", "Stream_TRIAD"] == pytest.approx(0.5)
    assert found["one", "Stream_TRIAD"] == pytest.approx(1.0), "half of the elements took as long"


def test_between_sizes_times_are_interpolated_and_outside_of_them_the_nearest_size_is_taken() -> None:
    # Time per element: 1 ns with a quarter of the elements, 4 ns with four times as many: 2 ns in the middle.
    small, large = ELEMENTS // 4, ELEMENTS * 4
    between = runs("m", "Stream_COPY", (small, 1, 1e-9 * small), (large, 1, 4e-9 * large))
    assert seconds_of(between)["m", "Stream_COPY"] == pytest.approx(2e-9 * ELEMENTS)
    below = runs("m", "Stream_COPY", (small // 2, 1, 3e-9 * small / 2), (small, 1, 1e-9 * small))
    assert seconds_of(below)["m", "Stream_COPY"] == pytest.approx(1e-9 * ELEMENTS)
    notes = sizes_in_words(pd.DataFrame([*between, *({**row, "machine": "n"} for row in below)]))
    assert notes[0].startswith(f"m is described by its time per element of a node with {ELEMENTS:,}: between sizes")
    assert notes[1].endswith(f"as with {small:,}, the nearest size that ran")


def test_kernels_whose_work_depends_on_the_size_are_left_out() -> None:
    sizes = ((2**18, 1, 1.0), (2**23, 1, 9.0))
    rows = [*runs("m", "Polybench_GEMM", *sizes, power=0.5), *runs("m", "Basic_DAXPY", *sizes)]
    assert {kernel for _, kernel in seconds_of(rows)} == {"Basic_DAXPY"}
    surface = [
        {**row, "flops_per_rep": 0.0, "bytes_per_rep": float(row["problem_size"]) ** (2 / 3)}  # type: ignore[arg-type]
        for row in runs("m", "Comm_HALO_PACKING", *sizes)
    ]
    assert kernels_per_element(pd.DataFrame(surface)).empty
    constant = [{**row, "bytes_per_rep": 8.0} for row in runs("m", "Basic_PI_REDUCE", *sizes)]
    assert len(kernels_per_element(pd.DataFrame(constant))) == 1, "its operations are what it takes time for"


def test_what_the_fleet_says_of_a_kernel_holds_for_each_machine() -> None:
    rows = [
        *runs("a", "Polybench_GEMM", (2**18, 1, 1.0), power=0.5),
        *runs("b", "Polybench_GEMM", (2**23, 1, 9.0), power=0.5),
    ]
    assert kernels_per_element(pd.DataFrame(rows), "a").empty
    assert len(kernels_per_element(pd.DataFrame(rows[:1]), "a")) == 1, "one machine alone cannot tell"


def test_machines_without_a_common_size_are_compared_per_element() -> None:
    kernels = fleet_tables().kernels
    assert sizes_match(kernels)
    machines = kernels["machine"].astype("category").cat.codes
    assert not sizes_match(kernels.assign(problem_size=kernels["problem_size"] + machines))


def test_an_encoder_gets_the_kind_of_times_that_it_knows() -> None:
    by_size = fleet_tables().kernels
    node = by_size.drop_duplicates(["machine", "kernel"]).assign(placement=NODE, problem_size=ELEMENTS)
    both = pd.concat([by_size, node])
    for kind in (by_size, node):
        known = benchmark_samples(kind)
        assert are_per_element(known.configurations) == (kind is node)
        asked = benchmark_samples(of_kind(both, known.configurations))
        assert asked.configurations == known.configurations
        assert np.array_equal(asked.log_seconds, known.log_seconds)
