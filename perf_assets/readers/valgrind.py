"""Cachegrind and Callgrind output: counters of a simulated processor, not of the machine."""

import re

from perf_assets.core.measurements import Profile
from perf_assets.core.text import without_folder
from perf_assets.readers.files import SourceFile, opened, unreadable
from perf_assets.readers.json_text import finite_number
from perf_assets.readers.metric_names import NO_UNIT, single_value

_CHUNK_BYTES = 2**20
_MAX_LINE_BYTES = 64 * 1024
_LINE = re.compile(rb"^(events|summary|totals|cmd|thread):[ \t]*([^\n]*)$", re.MULTILINE)
_DESCRIPTION = re.compile(rb"^desc: (I1|D1|LL) cache:[ \t]*([^\n]*)$", re.MULTILINE)


def read_output(run: str, source: SourceFile) -> Profile:
    """Totals of a program.

    `summary:` is the cost of the program run; `totals:`, where it is missing, the sum of the lines in the file.
    A file with several parts (threads or dumps) has several of them, which are added.
    """
    lines = _lines(source)
    if "events" not in lines:
        raise unreadable(source, "has no events: line, so its numbers cannot be named")
    events = lines["events"][0].split()
    costs = lines.get("summary") or lines.get("totals")
    if not costs:
        raise unreadable(source, "has neither summary: nor totals:, it is cut off: copy it again")
    metrics = {}
    for index, event in enumerate(events):
        value = sum(_cost(source, line.split(), index) for line in costs)
        metrics[event] = single_value(value, NO_UNIT)
    labels = {"counters": "simulated"}
    labels |= {f"simulated_{name}": text for name, text in _caches(source).items()}
    if "cmd" in lines:
        program, *arguments = map(without_folder, lines["cmd"][0].split() or [""])
        labels |= {name: text for name, text in (("program", program), ("args", " ".join(arguments))) if text}
    threads = max(1, len(set(lines.get("thread", ()))))
    return Profile(run=run, ranks=1, threads_per_rank=threads, metrics=metrics, labels=labels)


def _cost(source: SourceFile, costs: list[str], index: int) -> float:
    """One number of a cost line, whose trailing zeros may be left out."""
    value = finite_number(source, costs[index], "a cost") if index < len(costs) else 0.0
    if value < 0:
        raise unreadable(source, f"has a negative cost {value}")
    return value


def _lines(source: SourceFile) -> dict[str, list[str]]:
    """The lines that matter, by their first word; the file is read in chunks."""
    lines: dict[str, list[str]] = {}
    with opened(source) as stream:
        rest = b""
        while chunk := stream.read(_CHUNK_BYTES):
            complete, _, rest = (rest + chunk).rpartition(b"\n")
            _collect(complete, lines)
            if len(rest) > _MAX_LINE_BYTES:
                raise unreadable(source, "has a line that is too long for a Valgrind file")
        _collect(rest, lines)
    return lines


def _collect(text: bytes, counts: dict[str, list[str]]) -> None:
    for match in _LINE.finditer(text):
        counts.setdefault(match[1].decode(), []).append(match[2].decode("utf-8", "replace").strip())


def _caches(source: SourceFile) -> dict[str, str]:
    return {
        match[1].decode(): match[2].decode("utf-8", "replace").strip() for match in _DESCRIPTION.finditer(source.head)
    }
