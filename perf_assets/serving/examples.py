"""Questions for people to copy."""

from typing import Any

_COUNTERS = {"PAPI_TOT_INS": 3.1e10, "PAPI_LD_INS": 9.3e9, "PAPI_SR_INS": 2.8e9, "PAPI_BR_INS": 6.6e9}
_RUN: dict[str, Any] = {"app": "Kripke", "args": "--zones 32,32,32 --groups 32", "ranks": 8, "threads": 4}

QUESTION: dict[str, Any] = {
    "target": "dane",
    "runs": [{"machine": "quartz", **_RUN, "wall_seconds": 4.86, "counters": _COUNTERS}],
}
TABLE_QUESTION: dict[str, Any] = {"rows": [{"flops": 3.1e9, "ranks": 8, "solver": "cg"}]}
OBSERVATION: dict[str, Any] = {
    "machine": "dane",
    **_RUN,
    "gpus": 0,
    "wall_seconds": 3.4,
    "reference": {"machine": "quartz", **_RUN, "wall_seconds": 4.86, "counters": _COUNTERS},
}
