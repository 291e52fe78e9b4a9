"""PAPI high-level output: `papi_hl_output/rank_<r>.json`, one file per process.

Regions are inclusive of the regions in them, so a thread's total is that of its top-level regions. Events that
PAPI could not add are not in the file at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, unreadable
from perf_assets.readers.json_text import finite_number, parse_json
from perf_assets.readers.metric_names import NO_UNIT, total_of

WALL_TIME = "real_time_nsec"
"""Wall-clock nanoseconds; `cycles` beside it are wall-clock cycles too, not PAPI_TOT_CYC."""

_UNITS = {WALL_TIME: "nsec"}
_NOT_METRICS = frozenset(("name", "parent_region_id"))
_TOP = -1
_RANK_FILE = re.compile(r"(?:^|/)rank_(\d{1,9})\.json$")


@dataclass(frozen=True, slots=True)
class _Process:
    """Content of one file."""

    source: SourceFile
    threads: list[dict[str, float]]
    """Totals of each thread."""
    labels: dict[str, str]


def read_outputs(run: str, sources: Sequence[SourceFile]) -> list[Profile]:
    """Profiles of a directory's files.

    Files whose rank numbers run from 0 without a gap are the ranks of one run. PAPI gives a random number to a
    process that has no rank, so every other file is a run of its own, and says so in its labels.
    """
    ranks, others = _grouped(sources)
    profiles = [_profile(run, [_read(source) for source in ranks])] if ranks else []
    for source in others:
        name = source.name if ranks or len(others) > 1 else run
        profiles.append(_profile(name, [_read(source)], {"rank_file": source.basename}))
    return profiles


def _grouped(sources: Sequence[SourceFile]) -> tuple[list[SourceFile], list[SourceFile]]:
    """Ranks of one run, and files that are each a run."""
    numbered: dict[int, SourceFile] = {}
    others: list[SourceFile] = []
    for source in sources:
        match = _RANK_FILE.search(source.name)
        if match is None or int(match[1]) in numbered:
            others.append(source)
        else:
            numbered[int(match[1])] = source
    ranks: list[SourceFile] = []
    while len(ranks) in numbered:
        ranks.append(numbered.pop(len(ranks)))
    first = min(numbered, default=0)
    if ranks and first and first <= 2 * (len(ranks) + len(numbered)):
        raise unreadable(numbered[first], f"the file of rank {len(ranks)} is missing beside it: copy all ranks")
    return ranks, sorted([*others, *numbered.values()], key=lambda source: source.name)


def _profile(run: str, processes: Sequence[_Process], more_labels: dict[str, str] | None = None) -> Profile:
    threads = [thread for process in processes for thread in process.threads]
    names = dict.fromkeys(name for thread in threads for name in thread)
    metrics: dict[str, MetricTotal] = {}
    for name in names:
        values = [thread[name] for thread in threads if name in thread]
        metrics[name] = total_of(values, len(processes), _UNITS.get(name, NO_UNIT))
    wall = metrics[WALL_TIME].max / 1e9 if WALL_TIME in metrics else None
    labels = processes[0].labels | (more_labels or {})
    return Profile(
        run=run,
        ranks=len(processes),
        threads_per_rank=max(len(process.threads) for process in processes),
        metrics=metrics,
        wall_seconds=wall or None,
        labels=labels,
    )


def _read(source: SourceFile) -> _Process:
    document = parse_json(source)
    threads = _object(source, document, "threads") if isinstance(document, dict) else {}
    if not threads:
        raise unreadable(source, "holds no threads: the PAPI run was not finished")
    labels = {
        key: value for key in ("papi_version", "cpu_info") if isinstance(value := document.get(key), str) and value
    }
    definitions = document.get("event_definitions")
    instant = _instant_events(definitions) if isinstance(definitions, dict) else frozenset()
    return _Process(source, [_thread(source, threads, key, instant) for key in threads], labels)


def _instant_events(definitions: dict[str, Any]) -> frozenset[str]:
    return frozenset(
        event
        for event, definition in definitions.items()
        if isinstance(definition, dict) and definition.get("type") == "instant"
    )


def _thread(source: SourceFile, threads: dict[str, Any], key: str, instant: frozenset[str]) -> dict[str, float]:
    """Totals of a thread over its top-level regions; of an instant event (a temperature, say) the largest."""
    totals: dict[str, float] = {}
    regions = _object(source, _object(source, threads, key), "regions")
    for region in regions.values():
        if not isinstance(region, dict):
            raise unreadable(source, f"thread {key[:20]} has a region that is no object")
        if finite_number(source, region.get("parent_region_id", _TOP), "parent_region_id") != _TOP:
            continue
        for event, stored in region.items():
            if event in _NOT_METRICS:
                continue
            value = finite_number(source, stored.get("region_value") if isinstance(stored, dict) else stored, event)
            if event in instant:
                totals[event] = max(value, totals.get(event, value))
            else:
                totals[event] = totals.get(event, 0.0) + value
    return totals


def _object(source: SourceFile, parent: dict[str, Any], key: str) -> dict[str, Any]:
    child = parent.get(key)
    if not isinstance(child, dict):
        raise unreadable(source, f"has no {key[:40]!r} object, as PAPI's high-level output has")
    return child
