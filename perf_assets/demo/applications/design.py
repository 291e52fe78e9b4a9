"""Configurations of an application that are run: parameter grids, in an order whose every prefix covers them evenly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from math import gcd, prod
from typing import Any

from perf_assets.demo.applications.phases import Phase

MAX_FOOTPRINT_BYTES = 3e9
"""Memory of one rank: what fits beside the others on the smallest machine."""
MAX_CORE_OPERATIONS = 5e12
"""Operations of one core: some twenty minutes on a slow one."""
MIN_CORE_OPERATIONS = 1e9
_GOLDEN_SECTION = 0.6180339887498949

Point = tuple[Any, ...]
"""One value of each axis of a grid."""


@dataclass(frozen=True)
class Configuration:
    """One way to run an application, the same on every machine."""

    app: str
    args: str
    """Arguments without the one that selects the back end."""
    ranks: int
    threads: int
    """Threads of one rank."""
    footprint_bytes: float
    """Memory of one rank."""
    phases: tuple[Phase, ...]
    """Work of one rank."""

    @property
    def key(self) -> str:
        """Text that identifies the configuration."""
        return f"{self.app}|{self.args}|{self.ranks}|{self.threads}"

    @property
    def core_operations(self) -> float:
        """Arithmetic and memory operations of one thread, unvectorised."""
        operations = 0.0
        for phase in self.phases:
            work = phase.work
            touched = sum(s.read_bytes + s.written_bytes for s in (*work.streams, *phase.scratch))
            operations += work.double_flops + work.single_flops + work.integer_ops + work.branches + touched / 8
        return operations / self.threads


@dataclass(frozen=True)
class Grid:
    """A full-factorial grid of parameters."""

    axes: tuple[tuple[Any, ...], ...]
    """Values per parameter; the first axis varies fastest."""

    def walk(self) -> Iterator[Point]:
        """Every point once, in an order (a rank-1 lattice) of which any beginning covers all axes."""
        size = prod(len(axis) for axis in self.axes)
        start = max(int(size * _GOLDEN_SECTION), 1)
        stride = next(step for step in count(start) if gcd(step, size) == 1)
        for index in range(size):
            rest = index * stride % size
            point = []
            for axis in self.axes:
                rest, digit = divmod(rest, len(axis))
                point.append(axis[digit])
            yield tuple(point)


@dataclass(frozen=True)
class Application:
    """A program with the configurations in which it is run."""

    name: str
    program: str
    """Name of the executable."""
    configuration_count: int
    """At scale 1."""
    has_gpu_back_end: bool
    imbalance: float
    """Spread of the ranks' work: standard deviation of its logarithm."""
    coarse: Grid
    """Configurations that people run by hand."""
    fine: Grid
    """Continues where the coarse grid ends."""
    describe: Callable[..., Configuration | None]
    """Configuration at a point, given its values one by one; None where the program refuses to run."""

    def sequence(self) -> Iterator[Configuration]:
        """All configurations, in an order that does not depend on how many are wanted."""
        known = set()
        for point in self.coarse.walk():
            configuration = self.describe(*point)
            if configuration is not None and _is_reasonable(configuration):
                known.add(configuration.key)
                yield configuration
        for point in self.fine.walk():
            configuration = self.describe(*point)
            if configuration is not None and _is_reasonable(configuration) and configuration.key not in known:
                yield configuration

    def configurations(self, scale: float) -> Iterator[Configuration]:
        """The configurations of a fleet of this scale: those of a smaller one, and more."""
        return islice(self.sequence(), max(3, round(self.configuration_count * scale)))


def _is_reasonable(configuration: Configuration) -> bool:
    return (
        configuration.footprint_bytes <= MAX_FOOTPRINT_BYTES
        and MIN_CORE_OPERATIONS <= configuration.core_operations <= MAX_CORE_OPERATIONS
    )
