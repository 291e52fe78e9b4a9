"""RAJAPerf's checksum report: text with a block per kernel."""

import zlib

from perf_assets.demo.simulated import KernelRun
from perf_assets.demo.writers.rajaperf_tables import Suite

_NUMBER_WIDTH = 28
_VERDICT_WIDTH = 8
_TOLERANCE = 1e-10
_WRONG = 1.1
"""Factor by which the checksum of a failed run is off."""


def checksum_report(suite: Suite, has_verdict: bool) -> str:
    """Text of `*-checksum.txt`; from v2025.12 on it holds a verdict and relative differences."""
    names = [*suite.kernels, *("-".join(column) for column in suite.columns)]
    width = max((len(name) for name in names), default=0) + 1
    has_mpi = suite.run.ranks > 0
    lines = ["=" * 99, "Checksum Report " + (f"for {suite.run.ranks} MPI ranks " if has_mpi else ""), "=" * 99]
    lines += ["Kernel".ljust(width), "." * 56]
    lines += [
        head.ljust(width) + text for head, text in zip(("Variants", ""), _heads(has_verdict, has_mpi), strict=True)
    ]
    lines.append("-" * 88)
    for kernel in suite.kernels:
        lines += [kernel.ljust(width), "." * 56]
        ran = [(column, suite.cells[(kernel, column)]) for column in suite.columns if (kernel, column) in suite.cells]
        for column, cell in ran:
            lines.append("-".join(column).ljust(width) + _columns(cell, ran[0][1], has_verdict, has_mpi))
        lines += ["", "-" * 55]
    return "\n".join(lines) + "\n"


def _heads(has_verdict: bool, has_mpi: bool) -> tuple[str, str]:
    """The two lines of titles, after the column of names."""
    difference = "Checksum Rel Diff" if has_verdict else "Checksum Diff"
    titles = ["Average Checksum", f"Max {difference}", f"{difference} StdDev"] if has_mpi else ["Checksum", difference]
    notes = ["", "(vs. first variant listed)", ""][: len(titles)]
    first = second = ""
    if has_verdict:
        first, second = (
            "Result".ljust(_VERDICT_WIDTH) + "Tolerance".ljust(_NUMBER_WIDTH),
            " " * (_VERDICT_WIDTH + _NUMBER_WIDTH),
        )
    return (
        first + "".join(title.ljust(_NUMBER_WIDTH) for title in titles),
        second + "".join(note.ljust(_NUMBER_WIDTH) for note in notes),
    )


def _columns(cell: KernelRun, first: KernelRun, has_verdict: bool, has_mpi: bool) -> str:
    """Columns of a run in the report, compared with the first variant that is listed."""
    checksum, reference = _checksum(cell), _checksum(first)
    difference = abs(checksum - reference)
    if has_verdict and reference:
        difference /= abs(reference)
    numbers = [checksum, difference, *([0.0] if has_mpi else [])]
    text = ("PASSED" if cell.is_checksum_ok else "FAILED").ljust(_VERDICT_WIDTH) if has_verdict else ""
    if has_verdict:
        numbers.insert(0, _TOLERANCE)
    return text + "".join(f"{number:#.20g}".ljust(_NUMBER_WIDTH) for number in numbers)


def _checksum(cell: KernelRun) -> float:
    """A number that every variant of a kernel agrees on, unless its result is wrong."""
    if not cell.reps:
        return 0.0
    value = cell.problem_size * (1.0 + zlib.crc32(cell.kernel.encode()) / 2**32)
    return value if cell.is_checksum_ok else value * _WRONG
