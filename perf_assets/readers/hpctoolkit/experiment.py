"""The header of HPCToolkit's `experiment.xml`: metrics, their formulas, and the program's totals.

The file is streamed and left as soon as what is needed was seen: the call tree, which is nearly all of it,
is never parsed.
"""

import os
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from xml.parsers import expat

from perf_assets.readers.files import SourceFile, opened, unreadable

_FIRST_CHUNK_BYTES = 16 * 1024
_MAX_CHUNK_BYTES = 8 * 2**20
_MAX_TOKEN_BYTES = 4 * 2**20
"""Largest tag or comment: the parser keeps it in memory until it ends."""
_MAX_DEPTH = 100
"""Elements in each other: the parser remembers every one that is open."""
_MAX_METRICS = 10_000
_MAX_DEFAULTS = 100
_MAX_DEFAULT_LENGTH = 100
"""The document type gives values to attributes that an element leaves out; too many of them could make a small
file expensive."""
_END_MARK = b"</HPCToolkitExperiment>"
_AFTER_METRICS = frozenset(("LoadModuleTable", "FileTable", "ProcedureTable", "SecCallPathProfileData"))
_TREE = frozenset(("PF", "Pr", "L", "C", "S", "SecFlatProfile"))


@dataclass(slots=True)
class XmlMetric:
    """A `<Metric>`: a summary over all profiles."""

    id: int
    name: str
    is_inclusive: bool
    finalize: str | None = None
    """Formula that turns the stored accumulators into the value."""


@dataclass(slots=True)
class ExperimentFile:
    """What the header says."""

    version: str = ""
    program: str = ""
    metrics: list[XmlMetric] = field(default_factory=list)
    db_metrics: dict[int, str] = field(default_factory=dict)
    """Column in the metric-db files -> name of each inclusive metric."""
    db_columns: int = 0
    """How many columns a metric-db file must have."""
    totals: dict[int, float] = field(default_factory=dict)
    """Metric id -> accumulator of the whole program, 6 significant digits."""


def read_experiment(source: SourceFile, with_totals: bool) -> ExperimentFile:
    """Read the header, and `with_totals` also the values of the whole program."""
    handler = _Handler(source, with_totals)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.EntityDeclHandler = handler.entity
    parser.AttlistDeclHandler = handler.default
    with opened(source) as stream:
        try:
            _feed(source, parser, stream)
        except _EnoughError:
            pass
        except expat.ExpatError as error:
            raise unreadable(source, f"is not well-formed XML ({error}): copy the file again") from None
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 256))
        is_complete = _END_MARK in stream.read(256)
    if not is_complete:
        raise unreadable(source, f"is cut off: it does not end with {_END_MARK.decode()}; copy the file again")
    if not handler.experiment.version:
        raise unreadable(source, "is no HPCToolkit experiment")
    return handler.experiment


class _EnoughError(Exception):
    """Everything that is wanted has been seen."""


def _feed(source: SourceFile, parser: expat.XMLParserType, stream: BinaryIO) -> None:
    """Parse in chunks of growing size: an element that is never closed is scanned again with every chunk."""
    size, fed = _FIRST_CHUNK_BYTES, 0
    while chunk := stream.read(size):
        parser.Parse(chunk, False)
        fed += len(chunk)
        if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES + len(chunk):
            raise unreadable(source, "has a tag or comment that is longer than any HPCToolkit writes: refused")
        size = min(2 * size, _MAX_CHUNK_BYTES)
    parser.Parse(b"", True)


class _Handler:
    """Takes the elements as they come, until the part that is wanted has ended."""

    def __init__(self, source: SourceFile, with_totals: bool) -> None:
        self.experiment = ExperimentFile()
        self._source = source
        self._with_totals = with_totals
        self._in_data = False
        self._default_count = 0
        self._depth = 0

    def entity(self, name: str, *_: Any) -> None:
        raise unreadable(self._source, f"declares the XML entity {name[:40]!r}, which no HPCToolkit writes: refused")

    def default(self, element: str, name: str, kind: str, value: str | None, required: int) -> None:
        self._default_count += value is not None
        if self._default_count > _MAX_DEFAULTS or len(value or "") > _MAX_DEFAULT_LENGTH:
            raise unreadable(self._source, "declares more default values than any HPCToolkit writes: refused")

    def end(self, tag: str) -> None:
        self._depth -= 1

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise unreadable(self._source, f"nests elements more than {_MAX_DEPTH} deep before its call tree: refused")
        if tag in _TREE or (tag in _AFTER_METRICS and not self._with_totals):
            raise _EnoughError
        try:
            self._take(tag, attributes)
        except (KeyError, ValueError) as error:
            raise unreadable(self._source, f"has a bad <{tag}> element ({error})") from None

    def _take(self, tag: str, attributes: dict[str, str]) -> None:
        experiment = self.experiment
        if tag == "M":
            if self._in_data:
                experiment.totals[int(attributes["n"])] = float(attributes["v"])
        elif tag == "Metric":
            self._limit(len(experiment.metrics))
            is_inclusive = attributes.get("t") == "inclusive"
            experiment.metrics.append(XmlMetric(int(attributes["i"]), attributes["n"], is_inclusive))
        elif tag == "MetricFormula":
            if attributes.get("t") == "finalize" and experiment.metrics:
                experiment.metrics[-1].finalize = attributes["frm"]
        elif tag == "MetricDB":
            self._take_db_metric(attributes)
        else:
            self._take_frame(tag, attributes)

    def _take_db_metric(self, attributes: dict[str, str]) -> None:
        self._limit(self.experiment.db_columns)
        column = int(attributes["db-id"])
        self.experiment.db_columns = int(attributes["db-num-metrics"])
        if attributes.get("t") == "inclusive":
            self.experiment.db_metrics[column] = attributes["n"]

    def _take_frame(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "HPCToolkitExperiment":
            self.experiment.version = attributes["version"]
        elif tag == "Header":
            self.experiment.program = attributes.get("n", "")
        elif tag == "SecCallPathProfileData":
            self._in_data = True

    def _limit(self, count: int) -> None:
        if count > _MAX_METRICS:
            raise unreadable(self._source, f"has more than {_MAX_METRICS} metrics")
