"""HPCToolkit databases of the generation `experiment.xml` + `*.metric-db` (hpcprof-mpi up to 2021)."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from struct import Struct
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.calling_tree import (
    TOOL,
    CallingTree,
    Node,
    Place,
    Scope,
    ScopeKind,
    tree_flags,
    tree_with_roots,
)
from perf_assets.demo.writers.thread_profiles import host_id, process_id, profiles_of

DOCTYPE = Path(__file__).with_name("experiment.dtd").read_text()
"""The declaration that stands at the top of every `experiment.xml`."""
_DB_HEADER = Struct(">18s5scii")
_STATED_HEADER_SIZE = 24
"""Size that the tool writes into the XML; the real header is 8 bytes longer."""


def write_xml_database(directory: Path, run: ProfiledRun) -> None:
    """Write `experiment.xml` and one metric-db per thread and GPU stream into `directory`."""
    flags = tree_flags(run)
    tree = tree_with_roots(*flags)
    values = _columns(tree, tree.spread(run))
    for profile, rows in zip(profiles_of(run), values, strict=True):
        name = (
            f"1.{run.program}-{profile.rank:06d}-{profile.thread:03d}-{host_id(run, profile.host):08x}"
            f"-{process_id(run, profile)}-0.metric-db"
        )
        (directory / name).write_bytes(_metric_db(rows))
    document = _document(run.program, run.metrics, *flags)
    (directory / "experiment.xml").write_text(_filled(document, values.sum(axis=0)), encoding="utf-8")


def _columns(tree: CallingTree, statements: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inclusive and exclusive values in turn; shape (profiles, 1 + nodes, 2 * metrics)."""
    inclusive, exclusive = tree.inclusive @ statements, tree.exclusive @ statements
    columns = np.stack([inclusive, exclusive], axis=-1)
    return columns.reshape(*columns.shape[:2], -1)


def _metric_db(rows: NDArray[np.float64]) -> bytes:
    nodes, metrics = rows.shape
    return _DB_HEADER.pack(b"HPCPROF-metricdb__", b"00.10", b"b", nodes, metrics) + rows.astype(">f8").tobytes()


@dataclass(frozen=True)
class _Document:
    """An `experiment.xml` without its values."""

    pieces: tuple[str, ...]
    """Text before the values of each node, the whole program first."""
    end: str
    value_formats: tuple[str, ...]
    """Format of the values of each column."""


def _filled(document: _Document, values: NDArray[np.float64]) -> str:
    parts: list[str] = []
    for piece, row in zip(document.pieces, values.tolist(), strict=True):
        parts.append(piece)
        cells = [form % value for form, value in zip(document.value_formats, row, strict=True) if value]
        if cells:
            parts += (*cells, "\n")
    parts.append(document.end)
    return "".join(parts)


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})


class _Names:
    """The short numbers that stand for load modules, files, procedures and static scopes."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._next = 2
        self.modules: dict[str, int] = {}
        self.files: dict[tuple[str, str], int] = {}
        self.procedures: dict[tuple[str, str], int] = {}

    def number(self) -> int:
        """A number that nothing else has."""
        self._next += 1
        return self._next - 1

    def module(self, place: Place) -> int:
        """Number of a load module."""
        name = place.module or self._program
        if name not in self.modules:
            self.modules[name] = self.number()
        return self.modules[name]

    def file(self, place: Place) -> int:
        """Number of a source file in its load module."""
        self.module(place)
        key = (place.module, place.file)
        if key not in self.files:
            self.files[key] = self.number()
        return self.files[key]

    def procedure(self, function: Scope) -> int:
        """Number of a procedure."""
        self.file(function.place)
        key = (function.place.module, function.name)
        if key not in self.procedures:
            self.procedures[key] = self.number()
        return self.procedures[key]

    def tables(self) -> str:
        """The three tables of the section header."""
        mark = {TOOL.module: ' f="1"'}
        modules = [f'    <LoadModule i="{i}" n="{_attribute(name)}"/>\n' for name, i in self.modules.items()]
        files = [f'    <File i="{i}" n="{_attribute(name)}"/>\n' for (_, name), i in self.files.items()]
        procedures = [
            f'    <Procedure i="{i}" n="{_attribute(name)}"{mark.get(module, "")}/>\n'
            for (module, name), i in self.procedures.items()
        ]
        return (
            f"  <LoadModuleTable>\n{''.join(modules)}  </LoadModuleTable>\n"
            f"  <FileTable>\n{''.join(files)}  </FileTable>\n"
            f"  <ProcedureTable>\n{''.join(procedures)}  </ProcedureTable>\n"
        )


@lru_cache(maxsize=64)
def _document(program: str, metrics: tuple[str, ...], has_workers: bool, has_gpu: bool) -> _Document:
    tree = tree_with_roots(has_workers, has_gpu)
    names = _Names(program)
    opened, closed = [""] * (len(tree.nodes) + 1), [""] * (len(tree.nodes) + 1)
    for node in tree.nodes:
        opened[node.index], closed[node.index] = _tags(node, names)
    title = _attribute(program)
    head = (
        f'<?xml version="1.0"?>\n{DOCTYPE}<HPCToolkitExperiment version="2.1">\n'
        f'<Header n="{title}">\n  <Info/>\n</Header>\n<SecCallPathProfile i="0" n="{title}">\n<SecHeader>\n'
        f"{_metric_tables(metrics)}{names.tables()}  <Info/>\n</SecHeader>\n<SecCallPathProfileData>\n"
    )
    pieces, open_nodes = [head], [0]
    for node in tree.nodes:
        before = ""
        while open_nodes[-1] != node.parent:
            before += closed[open_nodes.pop()]
        pieces.append(before + opened[node.index])
        open_nodes.append(node.index)
    end = "".join(closed[index] for index in reversed(open_nodes))
    end += "</SecCallPathProfileData>\n</SecCallPathProfile>\n</HPCToolkitExperiment>\n"
    count = 2 * len(metrics)
    formats = tuple(f'<M n="{count + column}" v="%g"/>' for column in range(count))
    return _Document(tuple(pieces), end, formats)


def _tags(node: Node, names: _Names) -> tuple[str, str]:
    """The opening and closing line of a node."""
    scope = node.scope
    if scope.kind in (ScopeKind.ENTRY, ScopeKind.FUNCTION):
        procedure, file, module = names.procedure(scope), names.file(scope.place), names.module(scope.place)
        attributes = f's="{procedure}" l="{scope.line}" lm="{module}" f="{file}" n="{procedure}"'
        tag = "PF"
    elif scope.kind is ScopeKind.LOOP:
        tag, attributes = "L", f's="{names.number()}" l="{scope.line}" f="{names.file(node.function.place)}"'
    else:
        tag = "C" if scope.kind is ScopeKind.CALL else "S"
        attributes = f's="{names.number()}" l="{scope.line}"'
    return f'<{tag} i="{node.index + 1}" {attributes}>\n', f"</{tag}>\n"


def _metric_tables(metrics: tuple[str, ...]) -> str:
    """The summary metrics of the XML and, before them in number, the metrics of the metric-db files."""
    count = 2 * len(metrics)
    summaries, stored = [], []
    for column in range(count):
        kind, letter = (("inclusive", "I"), ("exclusive", "E"))[column % 2]
        name, partner = _attribute(metrics[column // 2]), column ^ 1
        summaries.append(
            f'    <Metric i="{count + column}" n="{name}:Sum ({letter})" v="derived-incr" em="0" es="0" ep="0" '
            f't="{kind}" partner="{count + partner}" show="1" show-percent="1">\n'
            f'      <MetricFormula t="combine" frm="sum(${count + column}, ${count + column})"/>\n'
            f'      <MetricFormula t="finalize" frm="${count + column}"/>\n'
            f'      <Info><NV n="units" v="events"/></Info>\n    </Metric>\n'
        )
        stored.append(
            f'    <MetricDB i="{column}" n="{name} ({letter})" t="{kind}" partner="{partner}" db-glob="*.metric-db" '
            f'db-id="{column}" db-num-metrics="{count}" db-header-sz="{_STATED_HEADER_SIZE}"/>\n'
        )
    return (
        f"  <MetricTable>\n{''.join(summaries)}  </MetricTable>\n"
        f"  <MetricDBTable>\n{''.join(stored)}  </MetricDBTable>\n"
    )
