"""RAJAPerf's reports as its releases from v2025.12 on write them."""

import re
from pathlib import Path
from statistics import fmean

from perf_assets.demo.simulated import BenchmarkRun, KernelRun
from perf_assets.demo.writers.rajaperf_checksums import checksum_report
from perf_assets.demo.writers.rajaperf_command import command
from perf_assets.demo.writers.rajaperf_tables import (
    SEPARATOR,
    Suite,
    measured_reports,
    mpi_line,
    number_width,
    quotient,
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
    """Dimensions of the kernel's problem, as its name tells."""
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
    name_width = suite.name_width + 1
    counts = [_counts(kernel) for kernel in suite.kernels.values()]
    heads = list(counts[0]) if counts else []
    widths = {head: number_width(head, [row[head] for row in counts]) for head in heads}
    consistencies = [_consistency(kernel) for kernel in suite.kernels.values()]
    texts = {
        "ChecksumConsistency": max(map(len, ["ChecksumConsistency", *consistencies])) + _TEXT_GAP,
        "OperationalComplexity": len("OperationalComplexity") + _TEXT_GAP,
        "MaxPerfectLoopDimensions": len("MaxPerfectLoopDimensions") + _NUMBER_GAP,
        "ProblemDimensionality": len("ProblemDimensionality") + _NUMBER_GAP,
    }
    lines = [
        SEPARATOR.join(
            [
                "Kernel".ljust(name_width),
                *(head.rjust(widths[head]) for head in heads),
                *(head.ljust(width) for head, width in texts.items()),
            ]
        )
    ]
    for kernel, row, consistency in zip(suite.kernels, counts, consistencies, strict=True):
        dimensions = str(_dimensions(kernel))
        facts = [
            consistency.ljust(texts["ChecksumConsistency"]),
            _complexity(kernel).ljust(texts["OperationalComplexity"]),
            dimensions.rjust(texts["MaxPerfectLoopDimensions"]),
            dimensions.rjust(texts["ProblemDimensionality"]),
        ]
        numbers = [str(value).rjust(widths[head]) for head, value in row.items()]
        lines.append(SEPARATOR.join([kernel.ljust(name_width), *numbers, *facts]))
    return "\n".join(lines) + "\n"


def _run_data(suite: Suite) -> str:
    cells = [
        suite.cells[(kernel, column)]
        for kernel in suite.kernels
        for column in suite.columns
        if (kernel, column) in suite.cells
    ]
    rows = [_measured(cell) for cell in cells]
    heads = ("Mean time per rep (sec.)", "Mean Bandwidth (GiB per sec.)", "Mean flops (gigaFLOP per sec.)")
    names = {
        "Kernel": [cell.kernel for cell in cells],
        "Variant": [cell.variant for cell in cells],
        "Tuning": [cell.tuning for cell in cells],
    }
    widths = [max(len(text) for text in (head, *texts)) + _TEXT_GAP for head, texts in names.items()]
    size_width = number_width("Problem size", [cell.problem_size for cell in cells])
    verdict_width = len("Checksum") + _TEXT_GAP
    lines = [
        SEPARATOR.join(
            [
                *(head.ljust(width) for head, width in zip(names, widths, strict=True)),
                "Problem size".rjust(size_width),
                "Checksum".ljust(verdict_width),
                *(" " * _NUMBER_GAP + head for head in heads),
            ]
        )
    ]
    for cell, row in zip(cells, rows, strict=True):
        texts = [text.ljust(w) for text, w in zip((cell.kernel, cell.variant, cell.tuning), widths, strict=True)]
        verdict = "PASSED" if cell.is_checksum_ok else "FAILED"
        numbers = [f"{value:#.6g}".rjust(len(head) + _NUMBER_GAP) for value, head in zip(row, heads, strict=True)]
        lines.append(
            SEPARATOR.join([*texts, str(cell.problem_size).rjust(size_width), verdict.ljust(verdict_width), *numbers])
        )
    return "\n".join(lines) + "\n"


def _measured(cell: KernelRun) -> tuple[float, float, float]:
    """Time of a repetition, GiB moved and gigaFLOP done per second."""
    time = quotient(fmean(cell.pass_seconds), cell.reps)
    return time, quotient(cell.bytes_per_rep, time) / _GIB, quotient(cell.flops_per_rep, time) / _GIGA
