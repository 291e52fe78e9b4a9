"""Job logs of any kind that is known, chosen by what stands in the file."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from perf_assets.core.errors import UnreadableFileError
from perf_assets.scheduling.traces.clock import known_zone
from perf_assets.scheduling.traces.lines import log_lines
from perf_assets.scheduling.traces.log import trace_of
from perf_assets.scheduling.traces.swf import read_swf
from perf_assets.scheduling.traces.tables import FLUX, kind_of, log_rows, read_table
from perf_assets.scheduling.traces.trace import Trace


def read_trace(path: Path, zone: str | None = None) -> Trace:
    """Trace of a log: Standard Workload Format, Slurm, CSM, or Flux (table or JSON lines); plain or gzip.

    `zone` is that of local times, where the log does not say.
    """
    known_zone(zone)
    first = next((line.strip() for line in log_lines(path) if line.strip()), "")
    if first.startswith("{"):
        return _read_flux_json(path, zone)
    kind = kind_of(first)
    return read_swf(path, zone) if kind is None else read_table(path, kind, zone)


def _read_flux_json(path: Path, zone: str | None) -> Trace:
    """Trace of `flux jobs --json`, a line per job."""
    places = {what: place for place, what in enumerate(FLUX.columns)}
    return trace_of(log_rows(path, FLUX, places, _flux_records(path), len(places), zone))


def _flux_records(path: Path) -> Iterator[list[str]]:
    """Words in the order of Flux's columns; none where a line is not an object."""
    for line in log_lines(path):
        if not line.strip():
            continue
        try:
            job = json.loads(line)
        except (ValueError, RecursionError):
            job = None
        if not isinstance(job, dict):
            yield []
        elif isinstance(job.get("jobs"), list):
            raise UnreadableFileError(f"{path} is one document: write it as a line per job (jq -c '.jobs[]')")
        else:
            yield [_word(job, names) for names in FLUX.columns.values()]


def _word(job: dict[str, object], names: Sequence[str]) -> str:
    value = next((job[name] for name in names if name in job), None)
    return "" if value is None or isinstance(value, dict | list) else str(value)
