"""Caliper's text streams (`.cali`, versions 2.9 to 2.15): attributes, region paths, records, run metadata.

A line is a record: `__rec=node` builds a tree of attributes and values, `__rec=ctx` is one row of the profile,
`__rec=globals` is the run's metadata.
"""

import re
from dataclasses import dataclass, field

from perf_assets.readers.files import SourceFile, read_text, unreadable

MAX_BYTES = 16 * 2**20

_NAME, _PROPERTIES = "8", "10"
_BUILT_IN = frozenset(map(str, range(12)))
"""Attributes and types that no file defines."""
_NESTED = 256
"""Property of an attribute whose values make a region path."""
_MAX_PATH = 8
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
    """As many as attributes."""


@dataclass(slots=True)
class Profile:
    """One `.cali` file."""

    rows: list[Row] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)


_Node = tuple[str, str, str | None]
"""A value in the tree: id of its attribute, text, id of its parent."""


def read_stream(source: SourceFile, depth: int) -> Profile:
    """Read a file; of its rows only those whose region path has `depth` parts."""
    text = read_text(source, MAX_BYTES)
    if not text.endswith("\n"):
        raise unreadable(source, "does not end with a line break, it is cut off: copy it again")
    stream = _Stream(depth)
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


class _Stream:
    """Takes the records of a file one after the other."""

    def __init__(self, depth: int) -> None:
        self.profile = Profile()
        self._depth = depth
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
        if is_nested and len(path) < _MAX_PATH:
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
        columns = self._columns.get(identities)
        if columns is None:
            columns = tuple(self._attribute(identity) for identity in identities.split("="))
            self._columns[identities] = columns
        values = _split(data, "=")
        if len(values) != len(columns):
            raise ValueError(f"{len(values)} values for {len(columns)} attributes")
        self.profile.rows.append(Row(path, columns, values))

    def _attribute(self, identity: str) -> Attribute:
        """The attribute that a node defines, described by the nodes above it."""
        kind, name, ancestor = self._nodes[identity]
        if kind != _NAME:
            raise ValueError(f"{name[:40]!r} is no attribute")
        alias, unit, is_nested = name, None, False
        for _ in range(_MAX_DESCRIPTION):
            if ancestor is None:
                break
            kind, value, ancestor = self._nodes[ancestor]
            if kind == _PROPERTIES:
                is_nested = bool(int(value) & _NESTED)
            elif kind not in _BUILT_IN:
                meaning = self._nodes[kind][1]
                if meaning == "attribute.alias":
                    alias = value
                elif meaning == "attribute.unit":
                    unit = value
        return Attribute(name, alias, unit, is_nested)

    def _take_metadata(self, fields: dict[str, str]) -> None:
        found = self.profile.metadata
        seen: set[str] = set()
        for reference in fields["ref"].split("=") if "ref" in fields else ():
            identity: str | None = reference
            while identity is not None and identity not in seen:
                seen.add(identity)
                attribute, value, identity = self._nodes[identity]
                if attribute not in _BUILT_IN:
                    found.setdefault(self._nodes[attribute][1], value)
        if "attr" in fields:
            for identity, value in zip(fields["attr"].split("="), _split(fields["data"], "="), strict=True):
                found[self._nodes[identity][1]] = _plain(value)


def _fields(line: str) -> dict[str, str]:
    """Fields of a record: `key=value` or `key=value=value…`, still escaped."""
    fields: dict[str, str] = {}
    for part in _split(line, ","):
        key, _, value = part.partition("=")
        fields[key] = value
    return fields
