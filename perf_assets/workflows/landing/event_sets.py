"""Events that tools are to count: those of the counter catalogue, in its order of preference."""

import re
from importlib.resources import files
from pprint import pformat

from perf_assets.core.catalogue import Catalogue

_GENERIC = frozenset(
    (
        "instructions", "branches", "branch-misses", "l1-dcache-loads", "l1-dcache-load-misses", "l1-dcache-stores",
        "stalled-cycles-frontend", "stalled-cycles-backend", "page-faults",
    )
)  # fmt: skip
"""Events that perf knows on every machine, as the catalogue's names are in lower case."""
_NATIVE = re.compile(r"[a-z][a-z0-9_]*\.[a-z0-9_]+|ex_ret_\w+|l2_cache_misses_from_dc_misses")
_DEVICE = re.compile(r"__|\.sum$|_sum$")
_PAPI = re.compile(r"PAPI_\w+")
_LIKWID = re.compile(r"(?!PAPI_|PM_|SQ_|TC[CP]_|IO |EPT$|ARITH$)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_EVENTS = re.compile(r"^(EVENTS: [^\n]* = )\{.*?^\}$", re.MULTILINE | re.DOTALL)

EventSets = dict[str, dict[str, list[list[str]]]]
"""Ways to get each quantity with each tool: the events of a way, in order of preference."""


def event_sets(catalogue: Catalogue, microarchitecture: str | None) -> EventSets:
    """Events of all formulas that hold for a micro-architecture (None: any), as each tool calls them."""
    sets: EventSets = {}
    for tool, name_of in _NAMES.items():
        quantities = sets.setdefault(tool, {})
        for formula in catalogue.formulas:
            names = [name_of(counter) for counter in formula.counters]
            known = [name for name in names if name is not None]
            if (microarchitecture is None or formula.applies_to(microarchitecture)) and len(known) == len(names):
                ways = quantities.setdefault(formula.quantity, [])
                if known not in ways:
                    ways.append(known)
    return sets


def measure_script(sets: EventSets) -> str:
    """Text of the script that measures on a node, with these events."""
    text = files("perf_assets.workflows.landing").joinpath("measure_node.py").read_text()
    return _EVENTS.sub(lambda head: f"{head[1]}{pformat(sets, width=118, sort_dicts=False)}", text, count=1)


def _of_perf(counter: str) -> str | None:
    if counter.lower() in _GENERIC:
        # perf reads all of its names in lower case but the first letter of caches.
        return re.sub("^l1", "L1", counter.lower())
    return counter if _NATIVE.fullmatch(counter) and not _DEVICE.search(counter) else None


def _of_papi(counter: str) -> str | None:
    return counter if _PAPI.fullmatch(counter) else None


def _of_likwid(counter: str) -> str | None:
    return counter if _LIKWID.fullmatch(counter) else None


_NAMES = {"perf": _of_perf, "papi": _of_papi, "likwid": _of_likwid}
