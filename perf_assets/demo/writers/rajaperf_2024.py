"""RAJAPerf's reports as its releases up to v2025.03 write them, with the command that ran it."""

from pathlib import Path

from perf_assets.demo.simulated import BenchmarkRun
from perf_assets.demo.writers.rajaperf_checksums import checksum_report
from perf_assets.demo.writers.rajaperf_tables import (
    Suite,
    command,
    left,
    measured_reports,
    mpi_line,
    number_width,
    output_directory,
    right,
    table_text,
    write_reports,
)

_HEADS = ("Kernel", "Kernel")
_KERNEL_COLUMNS = {
    "Problem size": "problem_size",
    "Reps": "reps",
    "Iterations/rep": "iterations_per_rep",
    "Kernels/rep": "kernels_per_rep",
    "Bytes/rep": "bytes_per_rep",
    "FLOPS/rep": "flops_per_rep",
    "BytesRead/rep": "bytes_read_per_rep",
    "BytesWritten/rep": "bytes_written_per_rep",
    "BytesAtomicModifyWritten/rep": "bytes_atomic_per_rep",
}
"""Column: field of `KernelRun`."""


def write_rajaperf_2024(directory: Path, run: BenchmarkRun) -> None:
    """Write `RAJAPerf-*.csv`, the checksums, `cmd.txt` and `stdout.log` into `directory`."""
    suite = Suite(run)
    kernels = _kernels_table(suite)
    reports = {
        "RAJAPerf-kernels.csv": mpi_line(run) + kernels,
        "RAJAPerf-checksum.txt": checksum_report(suite, has_verdict=False),
        "cmd.txt": command(suite) + "\n" + _outcome(run),
        "stdout.log": _standard_output(suite, kernels),
    }
    write_reports(directory, reports | measured_reports(suite, _HEADS, not_run="0"))


def _kernels_table(suite: Suite) -> str:
    columns = {
        head: [getattr(kernel, field) for kernel in suite.kernels.values()] for head, field in _KERNEL_COLUMNS.items()
    }
    widths = {head: number_width(head, values) for head, values in columns.items()}
    widths["Kernels/rep"] = len("Kernels/rep")
    numbers = [right(head, map(str, values), widths[head]) for head, values in columns.items()]
    return table_text([left("Kernels", suite.kernels, suite.name_width + 1), *numbers])


def _outcome(run: BenchmarkRun) -> str:
    seconds = sum(sum(kernel.pass_seconds) for kernel in run.kernels)
    return f"rc=0 wall={seconds:.9f}\n"


def _standard_output(suite: Suite, kernels: str) -> str:
    """Output of the program before it runs the kernels."""
    run = suite.run
    head, _, rows = kernels.partition("\n")
    columns = "\n".join("-".join(column) for column in suite.columns)
    return (
        f"\n\nReading command line input...\nCompiler: {run.compiler}\n\nSetting up suite based on input...\n\n\n"
        "RAJA performance suite run summary....\n--------------------------------------\n\n"
        f"How suite will be run:\n\t # passes = {run.passes}\n\t Kernel size = {run.requested_size}\n"
        f"\t Kernel rep factor = {run.repetition_factor:g}\n"
        f"\t Output files will be named {output_directory(run)}/RAJAPerf*\n\n"
        "The following kernels and variants (when available for a kernel) will be run:\n\n"
        f"Variants and Tunings\n--------\n{columns}\n\n{head}\n{'-' * len(head)}\n{rows}\n\n"
        "Running specified kernels and variants...\n\n\nGenerate run report files...\n\n\nDONE!!!....\n"
    )
