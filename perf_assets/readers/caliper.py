"""Caliper's text streams (`.cali`, versions 2.9 to 2.15): attributes, region paths, records, run metadata.

A line is a record: `__rec=node` builds a tree of attributes and values, `__rec=ctx` is one row of the profile,
`__rec=globals` is the run's metadata.
"""

import re
from dataclasses import dataclass, field

from perf_assets.readers.files import SourceFile, read_text, unreadable
from perf_assets.readers.metric_names import per_second

MAX_BYTES = 16 * 2**20

_NAME, _PROPERTIES = "8", "10"
_BUILT_IN = frozenset(map(str, range(12)))
"""Attributes and types that no file defines."""
_NESTED = 256
"""Property of an attribute whose values make a region path."""
_MAX_PATH = 8
_MAX_WHOLE_PATH = 64
"""Deepest path where rows of any depth are wanted; a deeper profile is refused, and not cut."""
_ADIAK_WHOLE = frozenset(("int", "unsigned int", "long", "unsigned long", "longlong", "unsigned longlong"))
_MAX_DESCRIPTION = 16
"""Nodes above an attribute that describe it: type, properties, alias, unit …"""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_USUAL_NODE = re.compile(r"__rec=node,id=(\d+),attr=(\d+),data=([^,\\]*)(?:,parent=(\d+))?")
"""Nearly all nodes: no escapes, fields in the usual order."""
_USUAL_ROW = "__rec=ctx,ref="


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of the profile."""

    name: str
    alias: str
    """Name for people, as in `Avg time/rank`; the name itself where there is none."""
    unit: str | None
    is_nested: bool


@dataclass(slots=True)
class Row:
    """One record of the profile."""

    path: tuple[str, ...]
    """Region path."""
    attributes: tuple[Attribute, ...]
    values: list[str]
    """Values, one per attribute."""
    kinds: tuple[str, ...] = ()
    """Attribute of each part of the path, as in function, loop, mpi.function; of whole profiles only."""
    facts: dict[str, str] = field(default_factory=dict)
    """Values of the record's nodes beside the path (channel, rank …); of whole profiles only."""


@dataclass(slots=True)
class CaliperRecords:
    """One `.cali` file."""

    rows: list[Row] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    """Whole numbers of the metadata that the application itself gave to Adiak: its problem size …"""


def units_per_second(attribute: Attribute) -> float:
    """Units of a time column that make a second.

    The unit attribute counts, even where the name contradicts it; the name only where there is none.
    """
    if attribute.unit is not None:
        return per_second(attribute.unit) or 1.0
    return 1e9 if attribute.name.endswith(".ns") else 1.0


_Node = tuple[str, str, str | None]
"""A value in the tree: id of its attribute, text, id of its parent."""


def read_stream(source: SourceFile, depth: int) -> CaliperRecords:
    """Read a file; of its rows only those whose region path has `depth` parts."""
    return _read(source, _RecordStream(depth))


def read_whole(source: SourceFile) -> CaliperRecords:
    """Read a file with its rows of any depth, and with what their nodes say beside the path."""
    return _read(source, _WholeStream())


def _read(source: SourceFile, stream: "_RecordStream") -> CaliperRecords:
    text = read_text(source, MAX_BYTES)
    if not text.endswith("\n"):
        raise unreadable(source, "does not end with a line break, it is cut off: copy it again")
    line = ""
    try:
        for line in _logical_lines(text):
            usual = _USUAL_NODE.fullmatch(line)
            if usual is not None:
                stream.take_node(*usual.groups())
                continue
            parts = line.split(",")
            if len(parts) == 4 and line.startswith(_USUAL_ROW) and "\\" not in line:
                stream.take_row(parts[1][4:], parts[2].removeprefix("attr="), parts[3].removeprefix("data="))
            else:
                stream.take(line)
    except (KeyError, ValueError, IndexError) as error:
        raise unreadable(source, f"has a bad record ({error}): {line[:80]!r}") from None
    if not stream.profile.metadata:
        raise unreadable(source, "has no run metadata at its end, it is cut off: copy it again")
    return stream.profile


def _logical_lines(text: str) -> list[str]:
    """Lines, those that end with an escaped line break put together."""
    lines = text.split("\n")
    if "\\\n" not in text:
        return lines
    joined: list[str] = []
    open_line: list[str] = []
    for line in lines:
        open_line.append(line)
        if not _ends_escaped(line):
            joined.append("\n".join(open_line))
            open_line = []
    return [*joined, "\n".join(open_line)]


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that no backslash precedes."""
    if "\\" not in text:
        return text.split(separator)
    parts: list[str] = []
    pieces: list[str] = []
    for piece in text.split(separator):
        pieces.append(piece)
        if not _ends_escaped(piece):
            parts.append(separator.join(pieces))
            pieces = []
    return [*parts, separator.join(pieces)] if pieces else parts


def _ends_escaped(text: str) -> bool:
    """Whether what follows `text` is escaped: it ends with an odd number of backslashes."""
    return text.endswith("\\") and (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: match[1], text) if "\\" in text else text


class _RecordStream:
    """Takes the records of a file one after the other."""

    def __init__(self, depth: int, max_path: int = _MAX_PATH) -> None:
        self.profile = CaliperRecords()
        self._depth = depth
        self._max_path = max_path
        self._nodes: dict[str, _Node] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        """Node -> region path, where it has one."""
        self._nested: dict[str, bool] = dict.fromkeys(_BUILT_IN, False)
        """Attribute -> whether its values make a region path."""
        self._columns: dict[str, tuple[Attribute, ...]] = {}
        """List of attribute ids as it stands in a record -> attributes. Most records have the same list."""

    def take(self, line: str) -> None:
        """Take one record of any form."""
        fields = _fields(line)
        kind = fields.get("__rec")
        if kind == "node":
            self.take_node(fields["id"], fields["attr"], _plain(fields["data"]), fields.get("parent"))
        elif kind == "ctx":
            self.take_row(fields.get("ref", ""), fields.get("attr", ""), fields.get("data", ""))
        elif kind == "globals":
            self._take_metadata(fields)
        elif line and kind is None and not line.startswith("#"):
            raise ValueError("not a Caliper record")

    def take_node(self, identity: str, attribute: str, value: str, parent: str | None) -> None:
        """Take a node of the tree. Its parent, unless it is built in, came before it."""
        if identity in self._nodes:
            raise ValueError(f"node {identity[:20]} is defined twice")
        if parent is not None and parent not in self._nodes:
            parent = None
        self._nodes[identity] = (attribute, value, parent)
        is_nested = self._nested.get(attribute)
        if is_nested is None:
            is_nested = self._nested[attribute] = self._attribute(attribute).is_nested
        path = () if parent is None else self._paths.get(parent, ())
        if is_nested and len(path) < self._max_path:
            path = (*path, value)
        if path:
            self._paths[identity] = path

    def take_row(self, references: str, identities: str, data: str) -> None:
        """Take a row of the profile, unless its path has another depth."""
        path: tuple[str, ...] = ()
        for reference in references.split("=") if references else ():
            if reference not in self._nodes:
                raise ValueError(f"node {reference[:20]} is not defined")
            path = path or self._paths.get(reference, ())
        if len(path) != self._depth or not identities:
            return
        columns, values = self._cells(identities, data)
        self.profile.rows.append(Row(path, columns, values))

    def _cells(self, identities: str, data: str) -> tuple[tuple[Attribute, ...], list[str]]:
        """Columns and values of a row."""
        columns = self._columns.get(identities)
        if columns is None:
            columns = tuple(self._attribute(identity) for identity in identities.split("="))
            self._columns[identities] = columns
        values = _split(data, "=")
        if len(values) != len(columns):
            raise ValueError(f"{len(values)} values for {len(columns)} attributes")
        return columns, values

    def _attribute(self, identity: str) -> Attribute:
        """The attribute that a node defines, described by the nodes above it."""
        kind, name, _ = self._nodes[identity]
        if kind != _NAME:
            raise ValueError(f"{name[:40]!r} is no attribute")
        described = self._description(identity)
        return Attribute(
            name,
            described.get("attribute.alias", name),
            described.get("attribute.unit"),
            bool(int(described.get(_PROPERTIES, 0)) & _NESTED),
        )

    def _description(self, identity: str) -> dict[str, str]:
        """Properties of an attribute from the nodes above the one that defines it, by their own id."""
        described: dict[str, str] = {}
        ancestor = self._nodes[identity][2]
        for _ in range(_MAX_DESCRIPTION):
            if ancestor is None:
                break
            kind, value, ancestor = self._nodes[ancestor]
            if kind == _PROPERTIES:
                described[kind] = value
            elif kind not in _BUILT_IN:
                described[self._nodes[kind][1]] = value
        return described

    def _take_metadata(self, fields: dict[str, str]) -> None:
        metadata = self.profile.metadata
        seen: set[str] = set()
        for reference in fields["ref"].split("=") if "ref" in fields else ():
            identity: str | None = reference
            while identity is not None and identity not in seen:
                seen.add(identity)
                attribute, value, identity = self._nodes[identity]
                if attribute not in _BUILT_IN:
                    name = self._nodes[attribute][1]
                    metadata.setdefault(name, value)
                    self._take_parameter(attribute, name, value)
        if "attr" in fields:
            for identity, value in zip(fields["attr"].split("="), _split(fields["data"], "="), strict=True):
                name = self._nodes[identity][1]
                metadata[name] = _plain(value)
                self._take_parameter(identity, name, metadata[name])

    def _take_parameter(self, attribute: str, name: str, value: str) -> None:
        """Nothing here: who wants rows of one depth knows what program it is."""


class _WholeStream(_RecordStream):
    """Takes rows of any depth."""

    def __init__(self) -> None:
        super().__init__(depth=0, max_path=_MAX_WHOLE_PATH + 1)
        self._trails: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]] = {}
        """Node -> path, attribute of each of its parts, and other facts."""

    def take_row(self, references: str, identities: str, data: str) -> None:
        """Take a row of the profile."""
        path: tuple[str, ...] = ()
        kinds: tuple[str, ...] = ()
        facts: dict[str, str] = {}
        for reference in references.split("=") if references else ():
            trail = self._trails.get(reference) or self._trail(reference)
            path, kinds = path + trail[0], kinds + trail[1]
            facts |= trail[2]
        if len(path) > _MAX_WHOLE_PATH:
            raise ValueError(f"regions are nested more than {_MAX_WHOLE_PATH} deep")
        if identities:
            columns, values = self._cells(identities, data)
            self.profile.rows.append(Row(path, columns, values, kinds, facts))

    def _trail(self, reference: str) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
        if reference not in self._nodes:
            raise ValueError(f"node {reference[:20]} is not defined")
        parts: list[tuple[str, str]] = []
        facts: dict[str, str] = {}
        identity: str | None = reference
        for _ in range(2 * _MAX_WHOLE_PATH):
            if identity is None:
                break
            attribute, value, identity = self._nodes[identity]
            if self._nested[attribute]:
                parts.append((value, self._nodes[attribute][1]))
            elif attribute not in _BUILT_IN:
                facts.setdefault(self._nodes[attribute][1], value)
        else:
            raise ValueError(f"regions are nested more than {_MAX_WHOLE_PATH} deep")
        trail = (tuple(value for value, _ in reversed(parts)), tuple(kind for _, kind in reversed(parts)), facts)
        self._trails[reference] = trail
        return trail

    def _take_parameter(self, attribute: str, name: str, value: str) -> None:
        described = self._description(attribute)
        if described.get("adiak.type") in _ADIAK_WHOLE and described.get("adiak.subcategory", "none") == "none":
            self.profile.parameters[name] = value


def _fields(line: str) -> dict[str, str]:
    """Fields of a record: `key=value` or `key=value=value…`, still escaped."""
    fields: dict[str, str] = {}
    for part in _split(line, ","):
        key, _, value = part.partition("=")
        fields[key] = value
    return fields
