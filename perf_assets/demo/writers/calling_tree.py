"""The calling-context tree of a simulated program, and how a thread's totals spread over it.

Every value of a tree is a sum of what its statements hold. Statement values are multiples of a grid that
float64 represents exactly, and the largest statement takes what is left, so that all sums along the tree
are exact: the root holds the given total to the last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.thread_profiles import ThreadKind, is_seconds, profiles_of, totals_of

_SECONDS_GRID = 2.0**-30


class ScopeKind(Enum):
    """Kind of a tree's node in the source code."""

    ENTRY = "entry"
    FUNCTION = "function"
    LOOP = "loop"
    CALL = "call"
    STATEMENT = "statement"


@dataclass(frozen=True)
class Place:
    """Place in the source where a function is defined."""

    module: str
    """Load module; empty for the program itself."""
    file: str


_MAIN = Place("", "src/main.cpp")
_SOLVER = Place("", "src/solver.cpp")
_OUTPUT = Place("", "src/output.cpp")
_MPI = Place("/usr/lib64/libmpi.so.12.1.1", "<unknown file>")
_OPENMP = Place("/usr/lib64/libgomp.so.1.0.0", "<unknown file>")
TOOL = Place("/opt/hpctoolkit/lib/hpctoolkit/ext-libs/libmonitor.so.0.0.0", "<unknown file>")
"""Place of nodes without one in the program, as HPCToolkit names it: roots and placeholders."""


@dataclass(frozen=True)
class Scope:
    """A node of the tree with all below it."""

    kind: ScopeKind
    line: int
    children: tuple["Scope", ...] = ()
    name: str = ""
    place: Place = TOOL
    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Statements: share of a thread's total, by kind of thread (main, worker, GPU stream)."""


def _entry(name: str, *children: Scope) -> Scope:
    return Scope(ScopeKind.ENTRY, 0, children, name)


def _function(name: str, place: Place, line: int, *children: Scope) -> Scope:
    return Scope(ScopeKind.FUNCTION, line, children, name, place)


def _loop(line: int, *children: Scope) -> Scope:
    return Scope(ScopeKind.LOOP, line, children)


def _call(line: int, callee: Scope) -> Scope:
    return Scope(ScopeKind.CALL, line, (callee,))


def _statement(line: int, main: float = 0.0, worker: float = 0.0, gpu: float = 0.0) -> Scope:
    return Scope(ScopeKind.STATEMENT, line, shares=(main, worker, gpu))


def _leaf(name: str, place: Place, line: int, main: float = 0.0, worker: float = 0.0, gpu: float = 0.0) -> Scope:
    return _function(name, place, line, _statement(line, main, worker, gpu))


def _main_functions(has_gpu: bool) -> tuple[Scope, ...]:
    device = (_call(124, _leaf("<gpu kernel>", TOOL, 0, gpu=0.9)), _call(127, _leaf("<gpu copyin>", TOOL, 0, gpu=0.1)))
    sweep = _loop(118, _statement(121, main=0.71), *(device if has_gpu else ()))
    steps = _loop(
        72,
        _call(75, _function("advance", _SOLVER, 112, sweep)),
        _call(83, _leaf("MPI_Allreduce", _MPI, 0, main=0.23)),
    )
    return (_function("main", _MAIN, 41, steps, _call(90, _leaf("write_output", _OUTPUT, 18, main=0.05))),)


def _worker_functions() -> tuple[Scope, ...]:
    region = _function("advance._omp_fn.0", _SOLVER, 112, _loop(118, _statement(121, worker=0.87)))
    return region, _leaf("gomp_team_barrier_wait_end", _OPENMP, 0, worker=0.12)


def _lost_functions() -> tuple[Scope, ...]:
    return (_leaf("<unknown procedure>", TOOL, 0, main=0.01, worker=0.01),)


@dataclass(frozen=True)
class Node:
    """A node with its place in the tree. Node 0 is the whole program."""

    index: int
    parent: int
    scope: Scope
    function: Scope
    """The function (or entry) whose source holds the node."""


@dataclass(frozen=True)
class CallingTree:
    """The nodes in document order, and which statements each of their values sums."""

    entries: tuple[Scope, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes but the whole program, parents before children; indices from 1."""
        nodes: list[Node] = []

        def visit(scope: Scope, parent: int, function: Scope) -> None:
            owner = scope if scope.kind in (ScopeKind.FUNCTION, ScopeKind.ENTRY) else function
            node = Node(len(nodes) + 1, parent, scope, owner)
            nodes.append(node)
            for child in scope.children:
                visit(child, node.index, owner)

        for entry in self.entries:
            visit(entry, 0, entry)
        return tuple(nodes)

    @cached_property
    def statements(self) -> tuple[Node, ...]:
        """The nodes that hold values of their own."""
        return tuple(node for node in self.nodes if node.scope.kind is ScopeKind.STATEMENT)

    def above(self, node: Node) -> Iterator[Node]:
        """The node and its ancestors, upwards."""
        while node.index:
            yield node
            if not node.parent:
                return
            node = self.nodes[node.parent - 1]

    def inside_function(self, node: Node) -> Iterator[Node]:
        """The node and its ancestors up to its function, upwards."""
        for scope in self.above(node):
            yield scope
            if scope.scope.kind is ScopeKind.FUNCTION:
                return

    @cached_property
    def inclusive(self) -> NDArray[np.float64]:
        """1 where a node's inclusive value holds a statement; shape (1 + nodes, statements)."""
        sums = np.zeros((len(self.nodes) + 1, len(self.statements)))
        sums[0] = 1.0
        for column, statement in enumerate(self.statements):
            for node in self.above(statement):
                sums[node.index, column] = 1.0
        return sums

    @cached_property
    def exclusive(self) -> NDArray[np.float64]:
        """1 where a statement belongs to a function or loop without a call in between; shape as `inclusive`."""
        sums = np.zeros((len(self.nodes) + 1, len(self.statements)))
        for column, statement in enumerate(self.statements):
            for node in self.inside_function(statement):
                sums[node.index, column] = 1.0
        return sums

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of each statement by kind of thread; shape (kinds, statements), rows sum to 1."""
        shares: NDArray[np.float64] = np.array([node.scope.shares for node in self.statements]).T
        sums = shares.sum(axis=1, keepdims=True)
        # A row is all zero where this run has no thread of that kind.
        rows: NDArray[np.float64] = np.divide(shares, sums, out=np.zeros_like(shares), where=sums > 0)
        return rows

    def spread(self, run: ProfiledRun) -> NDArray[np.float64]:
        """Share of each statement in each profile's totals; shape (profiles, statements, metrics)."""
        kinds = np.array([profile.kind for profile in profiles_of(run)])
        totals = totals_of(run)
        shares = self.shares[kinds]
        grid = np.where([is_seconds(metric) for metric in run.metrics], _SECONDS_GRID, 1.0)
        parts: NDArray[np.float64] = np.floor(totals[:, None, :] * shares[:, :, None] / grid) * grid
        rest = shares.argmax(axis=1)
        rows = np.arange(len(kinds))
        parts[rows, rest] = 0.0
        parts[rows, rest] = totals - parts.sum(axis=1)
        return parts


@lru_cache(maxsize=8)
def tree_with_roots(has_workers: bool, has_gpu: bool) -> CallingTree:
    """The tree as `experiment.xml` has it: threads and broken unwinds are top-level roots, and a root calls."""
    roots = {"<program root>": _main_functions(has_gpu)}
    if has_workers:
        roots["<thread root>"] = _worker_functions()
    roots["<partial call paths>"] = _lost_functions()
    entries = [_entry(name, *(_call(0, function) for function in functions)) for name, functions in roots.items()]
    return CallingTree(tuple(entries))


@lru_cache(maxsize=8)
def tree_with_entries(has_workers: bool, has_gpu: bool) -> CallingTree:
    """The tree as `meta.db` has it: one entry point per way a thread starts, functions right below it."""
    entries = [_entry("main thread", *_main_functions(has_gpu))]
    if has_workers:
        entries.append(_entry("application thread", *_worker_functions()))
    return CallingTree(tuple(entries))


def tree_flags(run: ProfiledRun) -> tuple[bool, bool]:
    """Whether a run has worker threads, and whether it has GPU streams."""
    kinds = {profile.kind for profile in profiles_of(run)}
    return ThreadKind.WORKER in kinds, ThreadKind.GPU in kinds
