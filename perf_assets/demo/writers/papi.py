"""PAPI's high-level output, one JSON file per rank, as PAPI 7 writes it."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.thread_profiles import ThreadKind, is_seconds, profiles_of, totals_of

_CLOCK_MHZ = 2000
"""Rate of the time stamp counter."""
_PROCESSOR = "Intel(R) Xeon(R) Platinum 8480+"
_SOLVER_SHARE = 0.9375
"""Share of the nested region; a sum of powers of two, so that shares of counts are exact."""


def write_papi(directory: Path, run: ProfiledRun) -> None:
    """Write `papi_hl_output/rank_NNNNNN.json` for each rank into `directory`."""
    output = directory / "papi_hl_output"
    output.mkdir(exist_ok=True)
    counts = _counts(run)
    # PAPI silently leaves out what the machine cannot count.
    events = [
        n for n, metric in enumerate(run.metrics) if not is_seconds(metric) and not np.isnan(counts[..., n]).any()
    ]
    names, counts = [run.metrics[number] for number in events], counts[:, :, events]
    for rank in range(run.ranks):
        text = json.dumps(_document(names, counts[rank], run.wall_seconds), indent=2, separators=(",", ":"))
        (output / f"rank_{rank:06d}.json").write_text(text + "\n", encoding="utf-8")


def _counts(run: ProfiledRun) -> NDArray[np.float64]:
    """Counts by rank, thread and metric. A GPU's events are read by the main thread of its rank."""
    totals = totals_of(run)
    threads = run.ranks * run.threads_per_rank
    counts = totals[:threads].reshape(run.values.shape).copy()
    for profile, values in zip(profiles_of(run), totals, strict=True):
        if profile.kind is ThreadKind.GPU:
            counts[profile.rank, 0] += values
    return counts


def _document(events: list[str], counts: NDArray[np.float64], seconds: float) -> dict[str, object]:
    return {
        "papi_version": "7.0.0.0",
        "cpu_info": _PROCESSOR,
        "max_cpu_rate_mhz": str(_CLOCK_MHZ),
        "min_cpu_rate_mhz": str(_CLOCK_MHZ),
        "event_definitions": {event: {"component": "perf_event", "type": "delta"} for event in events},
        "threads": {
            str(thread): {
                "regions": {
                    "0": _region("computation", "-1", events, values, seconds, 1.0),
                    "1": _region("solver", "0", events, values, seconds, _SOLVER_SHARE),
                }
            }
            for thread, values in enumerate(counts)
        },
    }


def _region(
    name: str, parent: str, events: list[str], values: NDArray[np.float64], seconds: float, share: float
) -> dict[str, str]:
    """One region, with `share` of the thread's counts and time."""
    nanoseconds = round(seconds * share * 1e9)
    numbers = {"cycles": nanoseconds * _CLOCK_MHZ // 1000, "real_time_nsec": nanoseconds}
    numbers |= {event: int(value * share) for event, value in zip(events, values, strict=True)}
    return {"name": name, "parent_region_id": parent, **{event: str(number) for event, number in numbers.items()}}
