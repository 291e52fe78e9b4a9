"""HPCToolkit databases of format version 4 (`meta.db`, `profile.db`, `cct.db`; 2022.10 and later)."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from struct import Struct, pack

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.calling_tree import (
    CallingTree,
    Node,
    Place,
    Scope,
    ScopeKind,
    tree_flags,
    tree_with_entries,
)
from perf_assets.demo.writers.thread_profiles import (
    FIRST_GPU_THREAD,
    ThreadKind,
    ThreadProfile,
    host_id,
    invented,
    profiles_of,
)

ID_KINDS = ("SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE")
"""Kinds of parts of an identifier tuple; the position is the number in the file."""

SCOPES = ("point", "function", "lex_aware", "execution")
"""Propagation scopes; metric k has the ids 4k to 4k + 3, in this order."""

_SCOPE_TYPES = {"point": (1, 255), "function": (3, 0), "lex_aware": (0, 255), "execution": (2, 255)}
"""Type of each scope, and the bit of a context that stops its propagation."""

_ENTRY_KINDS = {"main thread": 1, "application thread": 2}
_SECTIONS = ("general", "id names", "metrics", "context", "strings", "modules", "files", "functions")
_HEADER_SIZE = 16 + 16 * len(_SECTIONS)

_METRICS_HEADER = Struct("<QLBBBxQHBxxxxx")
_METRIC = Struct("<QQQHHxxxx")
_SCOPE = Struct("<QBBxxxxxx")
_SCOPE_INSTANCE = Struct("<QHxxxxxx")
_SUMMARY = Struct("<QQBxHxxxx")
_CONTEXT_HEADER = Struct("<QHBxxxxx")
_ENTRY = Struct("<QQLHxxQ")
_CONTEXT = Struct("<QQLBBBBHxxxxxx")
_TABLE_HEADER = Struct("<QLHxx")
_PATH = Struct("<LxxxxQ")
_FUNCTION = Struct("<QQQQLL")

_HAS_FUNCTION, _HAS_SOURCE, _HAS_POINT = 1, 2, 4
_LEXICAL_FUNCTION, _LEXICAL_LOOP, _LEXICAL_LINE, _LEXICAL_INSTRUCTION = 0, 1, 2, 3


class _Strings:
    """NUL-terminated strings one after the other, each once."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.data = b""
        self._known: dict[str, int] = {}

    def at(self, text: str) -> int:
        """Position of a string in the file."""
        if text not in self._known:
            self._known[text] = self._start + len(self.data)
            self.data += text.encode() + b"\0"
        return self._known[text]


class _Sources:
    """Tables of load modules, source files and functions, in the order of first use."""

    def __init__(self, program: str, tree: CallingTree) -> None:
        self._program = program
        functions = [node.scope for node in tree.nodes if node.scope.kind is ScopeKind.FUNCTION]
        self.functions = list(dict.fromkeys((function.place, function.name, function.line) for function in functions))
        self.modules = list(dict.fromkeys(self.module(place) for place, _, _ in self.functions))
        self.files = list(dict.fromkeys(self.file(place) for place, _, _ in self.functions))

    def module(self, place: Place) -> str:
        """Path of a load module."""
        return place.module or f"/opt/apps/{self._program}/bin/{self._program}"

    def file(self, place: Place) -> str:
        """Path of a source file; what has none is named after its load module."""
        if place.module:
            return f"[{place.module.rpartition('/')[2]}]"
        return f"/opt/apps/{self._program}/{place.file}"

    def module_at(self, start: int, place: Place) -> int:
        """Position of a load module in the file, given where its section starts."""
        return start + _TABLE_HEADER.size + _PATH.size * self.modules.index(self.module(place))

    def file_at(self, start: int, place: Place) -> int:
        """Position of a source file in the file, given where its section starts."""
        return start + _TABLE_HEADER.size + _PATH.size * self.files.index(self.file(place))

    def function_at(self, start: int, function: Scope) -> int:
        """Position of a function in the file, given where its section starts."""
        row = self.functions.index((function.place, function.name, function.line))
        return start + _TABLE_HEADER.size + _FUNCTION.size * row

    def address(self, function: Scope) -> int:
        """Address of a function's start in its load module."""
        return 0x401000 + 0x400 * self.functions.index((function.place, function.name, function.line))


class _Contexts:
    """The context tree section."""

    def __init__(self, tree: CallingTree, sources: _Sources, modules: int, files: int, functions: int) -> None:
        self._tree, self._sources = tree, sources
        self._modules, self._files, self._functions = modules, files, functions
        self._children: dict[int, list[Node]] = {}
        for node in tree.nodes:
            self._children.setdefault(node.parent, []).append(node)

    def build(self, start: int, strings: _Strings) -> bytes:
        """The bytes of the section."""
        entries = self._children[0]
        at = start + _CONTEXT_HEADER.size + _ENTRY.size * len(entries)
        blocks: list[bytes] = []

        def place(node: Node) -> tuple[int, int]:
            """Append a node's children after all that is below them; return their size and position."""
            below = [place(child) for child in self._children.get(node.index, ())]
            rows = [
                self._row(child, *block) for child, block in zip(self._children.get(node.index, ()), below, strict=True)
            ]
            if node.scope.kind is ScopeKind.STATEMENT:
                rows = [self._instruction(node)]
            position = at + sum(len(block) for block in blocks)
            blocks.append(b"".join(rows))
            return len(blocks[-1]), position

        listed = b""
        for node in entries:
            size, position = place(node)
            name = node.scope.name
            listed += _ENTRY.pack(size, position, node.index, _ENTRY_KINDS[name], strings.at(name))
        header = _CONTEXT_HEADER.pack(start + _CONTEXT_HEADER.size, len(entries), _ENTRY.size)
        return header + listed + b"".join(blocks)

    def _row(self, node: Node, size: int, position: int) -> bytes:
        scope = node.scope
        if scope.kind is ScopeKind.FUNCTION:
            flex = pack("<Q", self._sources.function_at(self._functions, scope))
            head = _CONTEXT.pack(size, position, node.index, _HAS_FUNCTION, 1, _LEXICAL_FUNCTION, 1, 0)
            return head + flex
        lexical = _LEXICAL_LOOP if scope.kind is ScopeKind.LOOP else _LEXICAL_LINE
        flex = pack("<QQ", self._sources.file_at(self._files, node.function.place), scope.line)
        return _CONTEXT.pack(size, position, node.index, _HAS_SOURCE, 0, lexical, 2, 1) + flex

    def _instruction(self, statement: Node) -> bytes:
        number = 1 + len(self._tree.nodes) + self._tree.statements.index(statement)
        function = statement.function
        flex = pack(
            "<QQ",
            self._sources.module_at(self._modules, function.place),
            self._sources.address(function) + 4 * statement.scope.line,
        )
        return _CONTEXT.pack(0, 0, number, _HAS_POINT, 0, _LEXICAL_INSTRUCTION, 2, 1) + flex


@lru_cache(maxsize=64)
def taxonomy(metrics: tuple[str, ...]) -> str:
    """The text of `metrics/default.yaml`: how a viewer presents the metrics."""
    inputs, roots = ["version: 0", "inputs:"], ["roots:"]
    for metric in metrics:
        anchor = re.sub(r"[^A-Za-z0-9_]", lambda letter: f"x{ord(letter.group()):02x}_", metric) + "-sum-x5b_0x0x5d_"
        quoted = '"' + metric.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for scope in ("execution", "lex_aware", "function"):
            inputs += [
                f"  - &{anchor}-{scope}",
                f"    metric: {quoted}",
                f"    scope: {scope}",
                "    formula: $$",
                "    combine: sum",
            ]
        roots += [
            f"  - name: {quoted}",
            f"    description: {quoted}",
            "    variants:",
            "      Sum:",
            "        render: [number, percent]",
            "        formula:",
            "          inclusive:",
            f"            standard: *{anchor}-execution",
            "          exclusive:",
            f"            custom: *{anchor}-lex_aware",
            f"            standard: *{anchor}-function",
        ]
    return "\n".join(inputs + roots) + "\n"


_METRIC_CELL = np.dtype([("id", "<u2"), ("value", "<f8")])
_CONTEXT_INDEX = np.dtype([("id", "<u4"), ("start", "<u8")])
_PROFILE_CELL = np.dtype([("id", "<u4"), ("value", "<f8")])
_METRIC_INDEX = np.dtype([("id", "<u2"), ("start", "<u8")])

_TABLE = Struct("<QLBxxx")
_PROFILE_INFO = Struct("<QQLxxxxQQLxxxx")
_CONTEXT_INFO = Struct("<QQHxxxxxxQ")
_ID = Struct("<BxHLQ")


def write_v4_database(directory: Path, run: ProfiledRun) -> None:
    """Write the database's files into `directory`; there are no traces."""
    flags = tree_flags(run)
    values, profiles = _values(run), profiles_of(run)
    # hpcprof lists profiles in the order in which its threads finished them.
    order = sorted(range(len(profiles)), key=lambda index: invented(run.seed, f"profile {index}"))
    profiles = [profiles[index] for index in order]
    values = np.concatenate([values.sum(axis=0, keepdims=True), values[order]])
    (directory / "meta.db").write_bytes(meta_db(run.program, run.metrics, *flags))
    (directory / "profile.db").write_bytes(_profile_db(run, profiles, values))
    (directory / "cct.db").write_bytes(_cct_db(values))
    (directory / "metrics").mkdir(exist_ok=True)
    (directory / "metrics" / "default.yaml").write_text(taxonomy(run.metrics), encoding="utf-8")


def _values(run: ProfiledRun) -> NDArray[np.float64]:
    """All values of all profiles; shape (profiles, contexts, metric ids)."""
    flags = tree_flags(run)
    tree = tree_with_entries(*flags)
    sums = scope_sums(*flags) @ tree.spread(run)
    shaped = sums.reshape(len(sums), len(SCOPES), contexts_count(tree), len(run.metrics))
    return shaped.transpose(0, 2, 3, 1).reshape(len(sums), contexts_count(tree), -1)


def _id_tuple(run: ProfiledRun, profile: ThreadProfile) -> bytes:
    ids = [("NODE", 1, profile.host, host_id(run, profile.host)), ("RANK", 0, profile.rank, profile.rank)]
    if profile.kind is ThreadKind.GPU:
        stream = profile.thread - FIRST_GPU_THREAD
        ids += [("GPUDEVICE", 0, 0, 0), ("GPUCONTEXT", 0, 0, 0), ("GPUSTREAM", 0, stream, stream)]
    else:
        ids.append(("THREAD", 0, profile.thread, profile.thread))
    return pack("<Q", len(ids)) + b"".join(
        _ID.pack(ID_KINDS.index(kind), flags, logical, physical) for kind, flags, logical, physical in ids
    )


@dataclass(frozen=True)
class _Sparse:
    """One plane of values without its zeros."""

    cells_count: int
    cells: bytes
    """(column, value) pairs."""
    indices_count: int
    indices: bytes
    """(row, first cell) pairs."""


class _Blocks:
    """Value blocks, each an array of values and an array of indices into it, one after the other."""

    def __init__(self, start: int, value_alignment: int, index_alignment: int) -> None:
        self._parts: list[bytes] = []
        self._value_alignment, self._index_alignment = value_alignment, index_alignment
        self.end = start

    def append(self, values: bytes, indices: bytes) -> tuple[int, int]:
        """Place one block; return the positions of its two arrays."""
        return self._place(values, self._value_alignment), self._place(indices, self._index_alignment)

    def _place(self, data: bytes, alignment: int) -> int:
        at = aligned(self.end, alignment)
        self._parts += (b"\0" * (at - self.end), data)
        self.end = at + len(data)
        return at

    def finished(self, footer: bytes, alignment: int) -> bytes:
        """All blocks and the footer of the file."""
        self._place(footer, alignment)
        return b"".join(self._parts)


def _sparse(cube: NDArray[np.float64], cell: np.dtype[np.void], index: np.dtype[np.void]) -> Iterator[_Sparse]:
    """The values of each plane that are not zero, row by row."""
    planes, rows, columns = np.nonzero(cube)
    cells = np.empty(len(planes), cell)
    cells["id"], cells["value"] = columns, cube[planes, rows, columns]
    counts = np.count_nonzero(cube, axis=2)
    first = 0
    for in_rows in counts:
        used = np.flatnonzero(in_rows)
        indices = np.empty(len(used), index)
        indices["id"], indices["start"] = used, (np.cumsum(in_rows) - in_rows)[used]
        last = first + int(in_rows.sum())
        yield _Sparse(last - first, cells[first:last].tobytes(), len(used), indices.tobytes())
        first = last


def _profile_db(run: ProfiledRun, profiles: list[ThreadProfile], values: NDArray[np.float64]) -> bytes:
    """The values by profile; `values` has the summary first."""
    tuples = [_id_tuple(run, profile) for profile in profiles]
    infos_at = 0x30
    infos_size = _TABLE.size + _PROFILE_INFO.size * len(values)
    tuples_at = infos_at + infos_size
    tuples_size = sum(len(item) for item in tuples)
    tuple_places = [0, *accumulate((len(item) for item in tuples[:-1]), initial=tuples_at)]
    blocks = _Blocks(tuples_at + tuples_size, 2, 4)
    infos = []
    for plane, id_tuple in zip(_sparse(values, _METRIC_CELL, _CONTEXT_INDEX), tuple_places, strict=True):
        cells_at, indices_at = blocks.append(plane.cells, plane.indices)
        is_summary = id_tuple == 0
        infos.append(
            _PROFILE_INFO.pack(plane.cells_count, cells_at, plane.indices_count, indices_at, id_tuple, is_summary)
        )
    table = _TABLE.pack(infos_at + _TABLE.size, len(infos), _PROFILE_INFO.size)
    header = file_header("prof", (infos_size, infos_at), (tuples_size, tuples_at))
    return b"".join([header, table, *infos, *tuples, blocks.finished(b"_prof.db", 8)])


def _cct_db(values: NDArray[np.float64]) -> bytes:
    """Values of `profile.db` by context and without the summary; profiles keep their numbers."""
    by_context = values.transpose(1, 2, 0).copy()
    by_context[:, :, 0] = 0.0
    infos_at = 0x30
    infos_size = _TABLE.size + _CONTEXT_INFO.size * len(by_context)
    blocks = _Blocks(infos_at + infos_size, 4, 2)
    infos = []
    for plane in _sparse(by_context, _PROFILE_CELL, _METRIC_INDEX):
        cells_at, indices_at = blocks.append(plane.cells, plane.indices)
        infos.append(_CONTEXT_INFO.pack(plane.cells_count, cells_at, plane.indices_count, indices_at))
    table = _TABLE.pack(infos_at + _TABLE.size, len(infos), _CONTEXT_INFO.size)
    header = file_header("ctxt", (infos_size, infos_at)).ljust(infos_at, b"\0")
    return b"".join([header, table, *infos, blocks.finished(b"__ctx.db", 4)])


def file_header(kind: str, *sections: tuple[int, int]) -> bytes:
    """The start of every v4 file, with size and position of each section."""
    return b"HPCTOOLKIT" + kind.encode() + b"\x04\x00" + b"".join(pack("<QQ", *section) for section in sections)


def aligned(size: int, to: int) -> int:
    """`size` rounded up to a multiple of `to`."""
    return -(-size // to) * to


def contexts_count(tree: CallingTree) -> int:
    """Contexts with values: the whole program, the nodes, and one instruction per statement."""
    return 1 + len(tree.nodes) + len(tree.statements)


@lru_cache(maxsize=8)
def scope_sums(has_workers: bool, has_gpu: bool) -> NDArray[np.float64]:
    """1 where a context's value holds a statement; shape (scopes * contexts, statements)."""
    tree = tree_with_entries(has_workers, has_gpu)
    first = 1 + len(tree.nodes)
    sums = np.zeros((len(SCOPES), contexts_count(tree), len(tree.statements)))
    _, function, lexical, execution = range(len(SCOPES))
    sums[function, :first], sums[execution, :first] = tree.exclusive, tree.inclusive
    for column, statement in enumerate(tree.statements):
        sums[:, first + column, column] = 1.0
        loops = 0
        for node in tree.inside_function(statement):
            # An outer loop does not count what belongs to a loop inside it; the function counts both.
            loops += node.scope.kind is ScopeKind.LOOP
            if node.scope.kind is not ScopeKind.LOOP or loops == 1:
                sums[lexical, node.index, column] = 1.0
    return sums.reshape(-1, len(tree.statements))


def _general(start: int, program: str) -> bytes:
    strings = _Strings(start + 16)
    return pack("<QQ", strings.at(program), strings.at("TODO database description")) + strings.data


def _id_names(start: int) -> bytes:
    strings = _Strings(start + 16 + 8 * len(ID_KINDS) + 1)
    pointers = b"".join(pack("<Q", strings.at(name)) for name in ID_KINDS)
    return pack("<QQ", start + 16, len(ID_KINDS)) + pointers + b"\0" + strings.data


def _metrics(start: int, metrics: tuple[str, ...]) -> bytes:
    scopes_at = start + _METRICS_HEADER.size
    metrics_at = scopes_at + len(SCOPES) * _SCOPE.size
    instances_at = metrics_at + len(metrics) * _METRIC.size
    per_metric = len(SCOPES) * (_SCOPE_INSTANCE.size + _SUMMARY.size)
    strings = _Strings(instances_at + len(metrics) * per_metric)
    scopes = b"".join(_SCOPE.pack(strings.at(name), *_SCOPE_TYPES[name]) for name in SCOPES)
    formula = strings.at("$$")
    described, instances = b"", b""
    for number, metric in enumerate(metrics):
        at = instances_at + len(instances)
        described += _METRIC.pack(
            strings.at(metric), at, at + len(SCOPES) * _SCOPE_INSTANCE.size, len(SCOPES), len(SCOPES)
        )
        ids = [(scopes_at + scope * _SCOPE.size, len(SCOPES) * number + scope) for scope in range(len(SCOPES))]
        instances += b"".join(_SCOPE_INSTANCE.pack(scope, metric_id) for scope, metric_id in ids)
        instances += b"".join(_SUMMARY.pack(scope, formula, 0, metric_id) for scope, metric_id in ids)
    header = _METRICS_HEADER.pack(
        metrics_at, len(metrics), _METRIC.size, _SCOPE_INSTANCE.size, _SUMMARY.size, scopes_at, len(SCOPES), _SCOPE.size
    )
    return header + scopes + described + instances + strings.data


def _paths(start: int, paths: Iterable[str], strings: _Strings) -> bytes:
    rows = [_PATH.pack(0, strings.at(path)) for path in paths]
    return _TABLE_HEADER.pack(start + _TABLE_HEADER.size, len(rows), _PATH.size) + b"".join(rows)


def _functions(start: int, sources: _Sources, strings: _Strings, modules: int, files: int) -> bytes:
    rows = [
        _FUNCTION.pack(
            strings.at(name),
            sources.module_at(modules, place),
            sources.address(Scope(ScopeKind.FUNCTION, line, (), name, place)),
            sources.file_at(files, place),
            line,
            0,
        )
        for place, name, line in sources.functions
    ]
    return _TABLE_HEADER.pack(start + _TABLE_HEADER.size, len(rows), _FUNCTION.size) + b"".join(rows)


@lru_cache(maxsize=64)
def meta_db(program: str, metrics: tuple[str, ...], has_workers: bool, has_gpu: bool) -> bytes:
    """The bytes of `meta.db`."""
    tree = tree_with_entries(has_workers, has_gpu)
    sources = _Sources(program, tree)
    data = b"\0" * _HEADER_SIZE
    places: dict[str, tuple[int, int]] = {}

    def append(section: str, build: Callable[[int], bytes], alignment: int = 8) -> int:
        nonlocal data
        data = data.ljust(aligned(len(data), alignment), b"\0")
        start = len(data)
        content = build(start)
        data += content
        places[section] = (len(content), start)
        return start

    append("general", lambda start: _general(start, program))
    append("id names", _id_names)
    append("metrics", lambda start: _metrics(start, metrics))
    strings = _Strings(len(data))
    _collect(strings, tree, sources)
    append("strings", lambda start: strings.data, alignment=1)
    modules = append("modules", lambda start: _paths(start, sources.modules, strings))
    files = append("files", lambda start: _paths(start, sources.files, strings))
    functions = append("functions", lambda start: _functions(start, sources, strings, modules, files))
    contexts = _Contexts(tree, sources, modules, files, functions)
    append("context", lambda start: contexts.build(start, strings))
    return file_header("meta", *(places[section] for section in _SECTIONS)) + data[_HEADER_SIZE:] + b"_meta.db"


def _collect(strings: _Strings, tree: CallingTree, sources: _Sources) -> None:
    """Put all names into the string table, which stands before the tables that use it."""
    for text in (
        *(entry.name for entry in tree.entries),
        *sources.modules,
        *sources.files,
        *(name for _, name, _ in sources.functions),
    ):
        strings.at(text)
