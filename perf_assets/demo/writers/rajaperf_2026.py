"""RAJAPerf's reports as its releases from v2025.12 on write them."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from perf_assets.demo.simulated import BenchmarkRun, KernelRun
from perf_assets.demo.writers.rajaperf_checksums import checksum_report
from perf_assets.demo.writers.rajaperf_tables import (
    Suite,
    command,
    left,
    measured_reports,
    mpi_line,
    number_width,
    quotient,
    right,
    table_text,
    write_reports,
)

_HEADS = ("Variant", "Tuning")
_MATRIX_PRODUCTS = ("2MM", "3MM", "GEMM", "MAT_MAT_SHARED", "FLOYD_WARSHALL")
_TEXT_GAP, _NUMBER_GAP = 2, 3
_GIB, _GIGA = 2.0**30, 1e9


def write_rajaperf_2026(directory: Path, run: BenchmarkRun) -> None:
    """Write `RAJAPerf-*.csv`, the checksums and `cmd.txt` into `directory`."""
    suite = Suite(run)
    reports = {
        "RAJAPerf-kernel-details.csv": mpi_line(run) + _details(suite),
        "RAJAPerf-kernel-run-data.csv": mpi_line(run) + _run_data(suite),
        "RAJAPerf-checksum.txt": checksum_report(suite, has_verdict=True),
        "cmd.txt": command(suite) + "\n",
    }
    write_reports(directory, reports | measured_reports(suite, _HEADS, not_run="Not run"))


def _counts(kernel: KernelRun) -> dict[str, int]:
    touched = kernel.bytes_read_per_rep + kernel.bytes_written_per_rep + kernel.bytes_atomic_per_rep
    return {
        "Problem size": kernel.problem_size,
        "Reps": kernel.reps,
        "Iterations/rep": kernel.iterations_per_rep,
        "Kernels/rep": kernel.kernels_per_rep,
        "BytesMoved/rep": kernel.bytes_per_rep,
        "FLOPS/rep": kernel.flops_per_rep,
        "BytesTouched/rep": touched,
        "BytesRead/rep": kernel.bytes_read_per_rep,
        "BytesWritten/rep": kernel.bytes_written_per_rep,
        "BytesModifyWritten/rep": 0,
        "BytesAtomicModifyWritten/rep": kernel.bytes_atomic_per_rep,
        "BytesAllocated/rep": touched,
    }


def _dimensions(kernel: str) -> int:
    """Dimensions of the kernel's problem, from its name."""
    match = re.search(r"([23])D", kernel)
    return int(match[1]) if match else 1


def _complexity(kernel: str) -> str:
    if kernel.endswith(_MATRIX_PRODUCTS):
        return "O(N^(3/2))"
    return "O(N*lgN)" if "SORT" in kernel else "O(N)"


def _consistency(kernel: KernelRun) -> str:
    """Whether the result is the same in every run: atomic updates come in any order."""
    return "Inconsistent" if kernel.bytes_atomic_per_rep else "ConsistentPerVariantTuning"


def _details(suite: Suite) -> str:
    counts = [_counts(kernel) for kernel in suite.kernels.values()]
    columns = {head: [row[head] for row in counts] for head in (counts[0] if counts else ())}
    consistencies = [_consistency(kernel) for kernel in suite.kernels.values()]
    wide = max(map(len, ["ChecksumConsistency", *consistencies])) + _TEXT_GAP
    complexity, dimensions = "OperationalComplexity", [str(_dimensions(kernel)) for kernel in suite.kernels]
    return table_text(
        [
            left("Kernel", suite.kernels, suite.name_width + 1),
            *(right(head, map(str, values), number_width(head, values)) for head, values in columns.items()),
            left("ChecksumConsistency", consistencies, wide),
            left(complexity, map(_complexity, suite.kernels), len(complexity) + _TEXT_GAP),
            *(_numbers_below(head, dimensions) for head in ("MaxPerfectLoopDimensions", "ProblemDimensionality")),
        ]
    )


def _numbers_below(head: str, numbers: Sequence[str]) -> list[str]:
    """A column whose head stands at the left, and its numbers at the right."""
    width = len(head) + _NUMBER_GAP
    return [head.ljust(width), *(number.rjust(width) for number in numbers)]


def _run_data(suite: Suite) -> str:
    cells = [
        suite.cells[(kernel, column)]
        for kernel in suite.kernels
        for column in suite.columns
        if (kernel, column) in suite.cells
    ]
    names = {head: [getattr(cell, head.lower()) for cell in cells] for head in ("Kernel", "Variant", "Tuning")}
    sizes = [cell.problem_size for cell in cells]
    verdicts = ["PASSED" if cell.is_checksum_ok else "FAILED" for cell in cells]
    heads = ("Mean time per rep (sec.)", "Mean Bandwidth (GiB per sec.)", "Mean flops (gigaFLOP per sec.)")
    measured = [[f"{value:#.6g}" for value in _measured(cell)] for cell in cells]
    return table_text(
        [
            *(left(head, texts, max(map(len, (head, *texts))) + _TEXT_GAP) for head, texts in names.items()),
            right("Problem size", map(str, sizes), number_width("Problem size", sizes)),
            left("Checksum", verdicts, len("Checksum") + _TEXT_GAP),
            *(right(head, (row[n] for row in measured), len(head) + _NUMBER_GAP) for n, head in enumerate(heads)),
        ]
    )


def _measured(cell: KernelRun) -> tuple[float, float, float]:
    """Time of a repetition, GiB moved and gigaFLOP done per second."""
    time = quotient(fmean(cell.pass_seconds), cell.reps)
    return time, quotient(cell.bytes_per_rep, time) / _GIB, quotient(cell.flops_per_rep, time) / _GIGA
