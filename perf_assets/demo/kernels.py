"""The RAJAPerf kernels of the simulated fleet: figures that the suite reports, and behaviour of their loops.

`kernels.csv` has a line per kernel. The reported facts (sizes, repetitions, bytes, flops) are polynomials in the edge
length of the kernel's index space, lowest power first: `0 0 8` is 8 m². The traits are per innermost iteration, in
words of 8 bytes; they were written down from knowledge of the loop bodies, not fitted to times:

- swept: words of arrays traversed once before any is used again (reuse distance: the whole footprint);
- near: further words found within a few cache lines or in small local arrays; mid: those a row or a plane back;
- strided: words met walking down the columns of a row-major matrix, or picked by an index list;
- chained: operations of which each needs the result of the one before (sums, recurrences).
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Pattern = Literal["contiguous", "matvec", "matmul", "gather", "sort", "library"]


@dataclass(frozen=True)
class Polynomial:
    """A quantity as a polynomial in the edge length of a kernel's index space, lowest power first."""

    coefficients: tuple[float, ...]

    def __call__(self, edge: float) -> float:
        """Value at an edge length."""
        return float(sum(c * edge**power for power, c in enumerate(self.coefficients)))


@dataclass(frozen=True)
class Kernel:
    """One kernel: facts that the suite reports, and traits that decide its speed."""

    name: str
    is_suite_2022: bool
    """One of the 64 kernels that v2022.10.0 runs."""
    default_size: int
    default_reps: int
    dimension: int
    """Dimensions of the index space."""
    block: float
    """Problem size of one element or zone, for kernels whose edge counts these."""
    size: Polynomial | None
    """Actual problem size; None where it is the requested one."""
    kernels_per_rep: int
    iterations: Polynomial
    bytes_read: Polynomial
    bytes_written: Polynomial
    bytes_atomic: Polynomial
    flops: Polynomial
    pattern: Pattern
    inner: Polynomial
    """Innermost iterations of a repetition; a sort has log2 N times as many."""
    footprint: Polynomial
    """Distinct bytes that a repetition touches."""
    swept_read: float
    swept_update: float
    swept_write: float
    near: float
    mid: float
    mid_reuse: Polynomial
    """Reuse distance of mid words, bytes."""
    strided: float
    inner_flops: float
    """Additions and multiplications as compiled; the reported flops count by other rules."""
    chained: float
    divides: float
    math_calls: float
    integer: float
    vector: float
    """Share that a compiler vectorises without licence to reorder sums."""
    mispredicts: float
    atomics: float
    """In the parallel variants; the sequential ones use plain additions."""
    atomic_targets: float | None
    """Distinct addresses of atomics; None: one address per atomic."""
    items: Polynomial | None
    """Iterations that may run at once on a device; None is the problem size."""
    launches: Polynomial | None
    """Device kernels per repetition where they differ from `kernels_per_rep`."""
    syncs: int
    """Results the host reads per repetition (reductions)."""
    source: str

    def edge_of_request(self, requested_size: int) -> float:
        """Edge length that the suite chooses for a requested size."""
        if self.dimension == 1:
            return float(max(1, math.floor(requested_size / self.block + 0.5)))
        root = 1.0 / self.dimension
        return float(max(1, math.floor((requested_size / self.block) ** root + 2.0**root - 1.0)))

    def edge_of_size(self, problem_size: float) -> float:
        """Edge length, not rounded, of an actual problem size."""
        return float((problem_size / self.block) ** (1.0 / self.dimension))

    def problem_size(self, requested_size: int) -> int:
        """Actual problem size for a requested one."""
        if self.size is None:
            return requested_size
        return round(self.size(self.edge_of_request(requested_size)))


def _polynomial(text: str) -> Polynomial:
    return Polynomial(tuple(float(coefficient) for coefficient in text.split()))


def _kernel(row: dict[str, str]) -> Kernel:
    laws = ("iterations", "bytes_read", "bytes_written", "bytes_atomic", "flops", "inner", "footprint", "mid_reuse")
    optional_laws = ("size", "items", "launches")
    counts = ("default_size", "default_reps", "dimension", "kernels_per_rep", "syncs")
    texts = ("pattern", "source")
    named = {"kernel", "is_suite_2022", "atomic_targets", *laws, *optional_laws, *counts, *texts}
    values: dict[str, Any] = {column: float(text) for column, text in row.items() if column not in named}
    values |= {column: _polynomial(row[column]) for column in laws}
    values |= {column: _polynomial(row[column]) if row[column] else None for column in optional_laws}
    values |= {column: int(row[column]) for column in counts}
    values |= {column: row[column] for column in texts}
    targets = float(row["atomic_targets"]) if row["atomic_targets"] else None
    return Kernel(name=row["kernel"], is_suite_2022=row["is_suite_2022"] == "1", atomic_targets=targets, **values)


@cache
def load_kernels() -> dict[str, Kernel]:
    """All kernels of the table by name, sorted."""
    text = (resources.files("perf_assets.demo") / "kernels.csv").read_text("utf-8")
    return {row["kernel"]: _kernel(row) for row in csv.DictReader(text.splitlines())}


def suite_kernels() -> tuple[Kernel, ...]:
    """The 64 kernels that RAJAPerf v2022.10.0 runs."""
    return tuple(kernel for kernel in load_kernels().values() if kernel.is_suite_2022)
