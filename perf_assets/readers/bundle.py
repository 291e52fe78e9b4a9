"""A landed bundle as rows of the record: what its files say together with what its manifest says."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.machines import parse_machine_spec
from perf_assets.core.manifest import SPEC_NAME, Manifest, utc_naive
from perf_assets.core.measurements import KernelTiming, Profile, Reading
from perf_assets.core.tables import COUNTERS, RUNS, SPECS, TIMINGS
from perf_assets.readers.rajaperf_threads import threads_of
from perf_assets.readers.read import read_files
from perf_assets.readers.sample_table import IDENTITY
from perf_assets.readers.source import load, printable, read_text, scan, system_errors

_MAX_SPEC_BYTES = 2**20
_AS_GIVEN = ("samples", "cross-modelling")
"""Formats whose values are no sums over ranks."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BundleRows:
    """What a bundle adds to the record."""

    format: str
    """File format that was recognised."""
    rows: Mapping[str, list[Row]]
    """Rows by table name, with exactly the table's columns."""


def read_bundle(directory: Path, manifest: Manifest, digest: str, name: str) -> BundleRows:
    """Read the bundle `name` in `directory`; only files that the manifest lists are looked at."""
    with system_errors(name):
        return _read(directory, manifest, digest, name)


def _read(directory: Path, manifest: Manifest, digest: str, name: str) -> BundleRows:
    listed = frozenset(entry.path for entry in manifest.files)
    origin = {"machine": manifest.machine, "bundle": name, "bundle_digest": digest}
    rows: dict[str, list[Row]] = {}
    if SPEC_NAME in listed:
        rows[SPECS.name] = [_spec_row(directory, origin)]
    sources = scan(directory, listed)
    missing = listed - {source.name for source in sources} - {SPEC_NAME}
    if missing:
        raise UnreadableFileError(f"{printable(min(missing))}: is listed in the manifest but is not a file there")
    if not sources and rows:
        return BundleRows("machine-spec", rows)
    reading = read_files(sources, name, manifest.kind)
    if manifest.kind == "rajaperf":
        rows[TIMINGS.name] = [_timing_row(timing, manifest, origin) for timing in reading.timings]
    else:
        rows[RUNS.name], rows[COUNTERS.name] = _profile_rows(reading, manifest, origin)
    return BundleRows(reading.format, rows)


def _spec_row(directory: Path, origin: Row) -> Row:
    spec = parse_machine_spec(read_text(load(str(directory / SPEC_NAME), SPEC_NAME), _MAX_SPEC_BYTES))
    if spec.machine != origin["machine"]:
        raise BadInputError(f"{SPEC_NAME} is of machine {spec.machine}, but the manifest is of {origin['machine']}")
    found = spec.to_row() | origin | {"run": "."}
    return {column: found.get(column) for column in SPECS.column_names()}


def _timing_row(timing: KernelTiming, manifest: Manifest, origin: Row) -> Row:
    """A kernel's row. The files know best whether there was MPI; the manifest, how many threads OpenMP had."""
    threads = timing.threads if manifest.threads is None else threads_of(timing.variant, manifest.threads)
    return {
        **origin,
        "run": printable(timing.run),
        "kernel": timing.kernel,
        "variant": timing.variant,
        "tuning": timing.tuning,
        "problem_size": timing.problem_size,
        "reps": timing.reps,
        "ranks": manifest.ranks if timing.ranks is None else timing.ranks,
        "threads": threads,
        "seconds_per_rep": timing.seconds_per_rep,
        "seconds_per_rep_min": timing.seconds_per_rep_min,
        "seconds_per_rep_max": timing.seconds_per_rep_max,
        "bytes_per_rep": timing.bytes_per_rep,
        "flops_per_rep": timing.flops_per_rep,
        "is_valid": timing.is_valid,
        "invalid_reason": timing.invalid_reason,
        "is_simulated": manifest.is_simulated,
    }


def _profile_rows(reading: Reading, manifest: Manifest, origin: Row) -> tuple[list[Row], list[Row]]:
    is_given = reading.format.startswith(_AS_GIVEN)
    runs: list[Row] = []
    counters: list[Row] = []
    has_target = False
    for profile in reading.profiles:
        run = origin | {"run": printable(profile.run)}
        row = _run_row(profile, reading, manifest, run)
        has_target = has_target or row["target_value"] is not None
        runs.append(row)
        counters.extend(_counter_rows(profile, manifest.target, run, 1 if is_given else row["ranks"]))
    if manifest.target is not None and not has_target:
        raise BadInputError(
            f"no row has a number in the column {manifest.target[:80]!r}, which the manifest names as target: "
            "correct the manifest or the table"
        )
    return runs, counters


def _run_row(profile: Profile, reading: Reading, manifest: Manifest, run: Row) -> Row:
    labels = reading.metadata | profile.labels
    if manifest.kind == "samples":
        given: Mapping[str, Any] = {key: labels.pop(key) for key in IDENTITY & labels.keys()}
        labels.pop("rows", None)
    else:
        given = {}
    wall_seconds = profile.wall_seconds if "wall_seconds" in given else manifest.wall_seconds or profile.wall_seconds
    if wall_seconds is not None and not 0 < wall_seconds < math.inf:
        raise UnreadableFileError(f"{run['run']}: its run time of {wall_seconds} seconds is impossible")
    target = manifest.target
    return {
        **run,
        "app": given.get("app") or manifest.app or run["bundle"],
        "args": given.get("args", manifest.args),
        "ranks": profile.ranks if "ranks" in given else manifest.ranks or profile.ranks,
        "threads": profile.threads_per_rank if "threads" in given else manifest.threads or profile.threads_per_rank,
        "nodes": profile.hosts if "nodes" in given else manifest.nodes or profile.hosts,
        "gpus": int(given["gpus"]) if "gpus" in given else manifest.gpus,
        "wall_seconds": wall_seconds,
        "target_column": target,
        "target_value": None if target is None else _target_value(profile, target, given),
        "labels": json.dumps(labels, sort_keys=True, ensure_ascii=False),
        "format": reading.format,
        "collected_at": utc_naive(manifest.collected_at),
        "is_simulated": manifest.is_simulated,
    }


def _target_value(profile: Profile, target: str, given: Mapping[str, Any]) -> float | None:
    if target in profile.metrics:
        return profile.metrics[target].sum
    return float(given[target]) if target in given and target not in ("app", "args") else None


def _counter_rows(profile: Profile, target: str | None, run: Row, ranks: int) -> Iterator[Row]:
    for counter, total in profile.metrics.items():
        if counter == target:
            continue
        if not (math.isfinite(total.sum) and math.isfinite(total.min) and math.isfinite(total.max)):
            raise UnreadableFileError(f"{run['run']}: the counter {counter[:80]!r} is not finite")
        yield {
            **run,
            "counter": printable(counter),
            "unit": total.unit,
            "value_sum": total.sum,
            "value_mean_over_ranks": total.sum / ranks,
            "value_min": total.min,
            "value_max": total.max,
            "running_ratio": total.running_ratio,
        }
