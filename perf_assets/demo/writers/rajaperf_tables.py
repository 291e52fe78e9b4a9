"""Parts that all releases of RAJAPerf write in the same way: the command of a run; timing, speedup, figure of merit."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from perf_assets.demo.simulated import BenchmarkRun, KernelRun

SEPARATOR = " , "
COMBINERS: dict[str, tuple[str, Callable[[Iterable[float]], float]]] = {
    "Average": ("Mean", fmean),
    "Minimum": ("Min", min),
    "Maximum": ("Max", max),
}
"""Word in the file name: word in the title, and how the passes are combined."""

_SMALLEST_CELL = 8
_FOM_TOLERANCE = 0.1

Column = tuple[str, str]
"""Variant and tuning."""


@dataclass(frozen=True)
class Suite:
    """A run as its reports arrange it: one row per kernel, one column per variant and tuning."""

    run: BenchmarkRun

    @cached_property
    def cells(self) -> dict[tuple[str, Column], KernelRun]:
        """Kernel runs by kernel and column of the report."""
        return {(kernel.kernel, (kernel.variant, kernel.tuning)): kernel for kernel in self.run.kernels}

    @cached_property
    def kernels(self) -> dict[str, KernelRun]:
        """Kernels in order, each with one of its runs, which agree on all but time."""
        first: dict[str, KernelRun] = {}
        for kernel in self.run.kernels:
            first.setdefault(kernel.kernel, kernel)
        return first

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """Variants in order; the first is the reference."""
        return tuple(dict.fromkeys(kernel.variant for kernel in self.run.kernels))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Variants with tunings, the tunings of a variant side by side."""
        pairs = dict.fromkeys((kernel.variant, kernel.tuning) for kernel in self.run.kernels)
        return tuple(sorted(pairs, key=lambda column: self.variants.index(column[0])))

    @property
    def combiners(self) -> tuple[str, ...]:
        """Names of the combinations of passes that are reported."""
        return tuple(COMBINERS) if self.run.passes > 1 else ("Average",)

    @property
    def name_width(self) -> int:
        """Width of the column of kernel names."""
        return max((len(kernel) for kernel in self.kernels), default=0) + 1

    def seconds(self, kernel: str, column: Column, combiner: str) -> float | None:
        """Time of all repetitions of a pass; None where nothing was run."""
        cell = self.cells.get((kernel, column))
        return None if cell is None else COMBINERS[combiner][1](cell.pass_seconds)

    def reference(self, kernel: str, variant: str) -> Column | None:
        """The tuning of a variant that others are compared with: its first that was run."""
        return next((c for c in self.columns if c[0] == variant and (kernel, c) in self.cells), None)


def output_directory(run: BenchmarkRun) -> str:
    """Folder of the run's reports on its machine."""
    return f"/scratch/rajaperf/{run.machine}_t{run.threads}_s{run.requested_size}"


def arguments(suite: Suite) -> list[str]:
    """The program and its arguments."""
    run = suite.run
    words = ["/opt/rajaperf/bin/raja-perf.exe", "--outdir", output_directory(run)]
    words += ["--kernels", *suite.kernels, "--variants", *suite.variants]
    words += ["--size", str(run.requested_size), "--repfact", f"{run.repetition_factor:g}"]
    if run.passes > 1:
        words += ["--npasses", str(run.passes), "--npasses-combiners", *suite.combiners]
    return words


def command(suite: Suite) -> str:
    """The command line of the run."""
    launcher = ["srun", "-n", str(suite.run.ranks)] if suite.run.ranks else []
    return " ".join([f"OMP_NUM_THREADS={suite.run.threads}", *launcher, *arguments(suite)])


def mpi_line(run: BenchmarkRun) -> str:
    """First line of the reports that describe kernels."""
    return f"Kernels run on {run.ranks} MPI ranks\n" if run.ranks else "Kernels run without MPI\n"


def number_width(head: str, values: Sequence[int]) -> int:
    """Width of a column of whole numbers."""
    return max(len(head), len(str(max(values, default=0))) - 1) + 3


def quotient(dividend: float, divisor: float) -> float:
    """A quotient as C++ has it, which does not fail for 0."""
    if divisor:
        return dividend / divisor
    return math.nan if not dividend or math.isnan(dividend) else math.copysign(math.inf, dividend)


def timing_report(suite: Suite, combiner: str, heads: tuple[str, str]) -> str:
    """Text of `*-timing-<combiner>.csv`; `heads` name the two header rows."""
    title = f"{COMBINERS[combiner][0]} Runtime Report (sec.) "
    rows = [
        [_cell(suite.seconds(kernel, column, combiner), ".6f") for column in suite.columns] for kernel in suite.kernels
    ]
    return _grid(suite, title, heads, rows)


def speedup_report(suite: Suite, combiner: str, heads: tuple[str, str]) -> str:
    """Text of `*-speedup-<combiner>.csv`."""
    title = f"{COMBINERS[combiner][0]} Speedup Report (T_ref/T_var): ref var = {suite.variants[0]} "
    rows = []
    for kernel in suite.kernels:
        reference = suite.reference(kernel, suite.variants[0])
        base = None if reference is None else suite.seconds(kernel, reference, combiner)
        times = [suite.seconds(kernel, column, combiner) for column in suite.columns]
        rows.append([_cell(None if base is None or time is None else quotient(base, time), ".3f") for time in times])
    return _grid(suite, title, heads, rows)


def _cell(value: float | None, form: str) -> str:
    return "Not run" if value is None else format(value, form)


def _grid(suite: Suite, title: str, heads: tuple[str, str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(variant), len(tuning), _SMALLEST_CELL) for variant, tuning in suite.columns]
    lines = [title + SEPARATOR * len(widths)]
    for level, head in enumerate(heads):
        names = [column[level].ljust(width) for column, width in zip(suite.columns, widths, strict=True)]
        lines.append(SEPARATOR.join([head.ljust(suite.name_width), *names]))
    for kernel, row in zip(suite.kernels, rows, strict=True):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(SEPARATOR.join([kernel.ljust(suite.name_width), *cells]))
    return "\n".join(lines) + "\n"


def fom_report(suite: Suite, not_run: str) -> str | None:
    """Text of `*-fom.csv`: slowdown of RAJA against base; None where no base variant was run."""
    columns = _fom_columns(suite)
    if not columns:
        return None
    width = max(len("-".join(column)) for column in columns)
    title = "FOM Report : signed speedup(-)/slowdown(+) for each PM (base vs. RAJA) -> (T_RAJA - T_base) / T_base )"
    note = "'OVER_TOL' in column to right if RAJA speedup is over tolerance"

    def line(head: str, cells: Iterable[tuple[str, str]]) -> str:
        padded = [f"{text.ljust(width)},{flag.ljust(8)}" for text, flag in cells]
        return SEPARATOR.join([head.ljust(suite.name_width), *padded])

    values = {(kernel, column): _slowdown(suite, kernel, column) for kernel in suite.kernels for column in columns}
    lines = [text + SEPARATOR * (2 * len(columns)) for text in (title, note)]
    lines.append(line("Kernel", [("-".join(column), "") for column in columns]))
    for kernel in suite.kernels:
        cells = []
        for column in columns:
            value = values[(kernel, column)]
            flag = "OVER_TOL" if value is not None and value > _FOM_TOLERANCE else ""
            if column == suite.reference(kernel, _base_of(column[0])):
                flag = "base_ref"
            cells.append((not_run if value is None else f"{value:.2g}", flag))
        lines.append(line(kernel, cells))
    lines.append(line("", [("", "")] * len(columns)))
    for head, combine in _COLUMN_SUMMARIES.items():
        run = [[value for kernel in suite.kernels if (value := values[(kernel, c)]) is not None] for c in columns]
        lines.append(line(head, [(f"{combine(column):.2g}", "") for column in run]))
    return "\n".join(lines) + "\n"


def _mean_square_deviation(values: Sequence[float]) -> float:
    mean = fmean(values)
    return fmean((value - mean) ** 2 for value in values)


_COLUMN_SUMMARIES: dict[str, Callable[[Sequence[float]], float]] = {
    "Col Min": min,
    "Col Max": max,
    "Col Avg": fmean,
    "Col Std Dev": _mean_square_deviation,  # the tool takes no root
}


def _base_of(variant: str) -> str:
    return "Base_" + variant.partition("_")[2]


def _fom_columns(suite: Suite) -> list[Column]:
    models = dict.fromkeys(variant.partition("_")[2] for variant in suite.variants if variant.startswith("Base_"))
    return [column for model in models for column in suite.columns if column[0].partition("_")[2] == model]


def _slowdown(suite: Suite, kernel: str, column: Column) -> float | None:
    base = suite.reference(kernel, _base_of(column[0]))
    time = suite.seconds(kernel, column, "Average")
    base_time = None if base is None else suite.seconds(kernel, base, "Average")
    if time is None:
        return None
    return 0.0 if base_time is None else quotient(time - base_time, base_time) + 0.0


def measured_reports(suite: Suite, heads: tuple[str, str], not_run: str) -> dict[str, str]:
    """Reports that every release writes, by the name of the file: times, speedups, figures of merit."""
    reports = {}
    for combiner in suite.combiners:
        reports[f"RAJAPerf-timing-{combiner}.csv"] = timing_report(suite, combiner, heads)
        reports[f"RAJAPerf-speedup-{combiner}.csv"] = speedup_report(suite, combiner, heads)
    merit = fom_report(suite, not_run=not_run)
    return reports if merit is None else {**reports, "RAJAPerf-fom.csv": merit}


def write_reports(directory: Path, reports: Mapping[str, str]) -> None:
    """Write reports by their names."""
    for name, text in reports.items():
        (directory / name).write_text(text, encoding="ascii")


def left(head: str, texts: Iterable[str], width: int) -> list[str]:
    """A column with its head, filled up at the right."""
    return [text.ljust(width) for text in (head, *texts)]


def right(head: str, texts: Iterable[str], width: int) -> list[str]:
    """A column with its head, filled up at the left."""
    return [text.rjust(width) for text in (head, *texts)]


def table_text(columns: Iterable[Sequence[str]]) -> str:
    """Text of a table, from its columns."""
    return "\n".join(map(SEPARATOR.join, zip(*columns, strict=True))) + "\n"
