"""Which events perf is asked for: those of the counter catalogue, in its order of preference."""

import re

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


def perf_events(catalogue: Catalogue, microarchitecture: str | None) -> list[str]:
    """Events of all formulas that hold for a micro-architecture, as perf calls them, without repetition."""
    events: dict[str, None] = {}
    for formula in catalogue.formulas:
        names = list(formula.counters)
        if (microarchitecture is None or formula.applies_to(microarchitecture)) and all(map(_is_of_perf, names)):
            events |= dict.fromkeys(name.lower() if name.lower() in _GENERIC else name for name in names)
    return list(events)


def _is_of_perf(name: str) -> bool:
    if _DEVICE.search(name):
        return False
    return name.lower() in _GENERIC or _NATIVE.fullmatch(name) is not None
