"""A landed bundle as rows of the record, from its files and its manifest."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from perf_assets.core.environment import ENVIRONMENT_TAG, environment_of
from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.machines import parse_machine_spec
from perf_assets.core.manifest import (
    OBSERVED_TAG,
    SPEC_NAME,
    BundleFacts,
    Manifest,
    check_application,
    check_arguments,
    utc_naive,
)
from perf_assets.core.measurements import KernelTiming, Profile, Reading
from perf_assets.core.tables.landing import COUNTERS, RUNS, SPECS, TIMINGS
from perf_assets.core.text import printable
from perf_assets.readers.files import load, read_text, scan, system_errors
from perf_assets.readers.rajaperf.threads import threads_of
from perf_assets.readers.read import read_files
from perf_assets.readers.samples.table import IDENTITY, MAX_COLUMNS

_MAX_SPEC_BYTES = 2**20
_CROSS_MODELLING = "cross-modelling"
"""Format whose values are not sums over ranks."""
AGGREGATION_TAG, SUM_OVER_RANKS = "aggregation", "sum"
"""The tag by which a table of samples says that its values are sums over ranks."""

_AS_READ = (
    *("kernel", "variant", "tuning", "problem_size", "reps", "seconds_per_rep", "seconds_per_rep_min"),
    *("seconds_per_rep_max", "bytes_per_rep", "flops_per_rep", "is_valid", "invalid_reason"),
)
"""Columns of a kernel's row that are taken from the files as they are."""
_as_read = attrgetter(*_AS_READ)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BundleRows:
    """Rows that a bundle adds to the record."""

    format: str
    """File format that was recognised."""
    rows: Mapping[str, Iterable[Row]]
    """Rows by table name, with exactly the table's columns. They can be gone through once, are made meanwhile, and
    end with a `BadInputError` where the files turn out to be bad half way."""


def read_bundle(directory: Path, manifest: Manifest, digest: str, name: str) -> BundleRows:
    """Read the bundle `name` in `directory`; only files that the manifest lists are looked at.

    All files have been read when this returns: only the making of rows is left to their consumer.
    """
    with system_errors(name):
        return _read(directory, manifest, digest, name)


def _read(directory: Path, manifest: Manifest, digest: str, name: str) -> BundleRows:
    listed = frozenset(entry.path for entry in manifest.files)
    origin = {"machine": manifest.machine, "bundle": name, "bundle_digest": digest}
    rows: dict[str, Iterable[Row]] = {}
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
        compiler = reading.metadata.get("compiler")
        rows[TIMINGS.name] = (_timing_row(timing, manifest, compiler, origin) for timing in reading.timings)
    else:
        rows[RUNS.name] = _run_rows(reading, manifest, origin)
        rows[COUNTERS.name] = _counter_rows(reading, manifest, origin)
    return BundleRows(reading.format, rows)


def profile_rows(reading: Reading, facts: BundleFacts, name: str) -> tuple[Iterator[Row], Iterator[Row]]:
    """Rows of runs and of counters of what was read, as if it had landed as the bundle `name`."""
    origin = {"machine": facts.machine, "bundle": name, "bundle_digest": ""}
    return _run_rows(reading, facts, origin), _counter_rows(reading, facts, origin)


def _spec_row(directory: Path, origin: Row) -> Row:
    spec = parse_machine_spec(read_text(load(str(directory / SPEC_NAME), SPEC_NAME), _MAX_SPEC_BYTES))
    if spec.machine != origin["machine"]:
        raise BadInputError(f"{SPEC_NAME} is of machine {spec.machine}, but the manifest is of {origin['machine']}")
    row = spec.to_row() | origin | {"run": "."}
    return {column: row.get(column) for column in SPECS.column_names()}


def _timing_row(timing: KernelTiming, manifest: Manifest, compiler: str | None, origin: Row) -> Row:
    """A kernel's row. The files know best whether there was MPI; the manifest, how many threads OpenMP had."""
    threads = timing.threads if manifest.threads is None else threads_of(timing.variant, manifest.threads)
    return {
        **origin,
        **dict(zip(_AS_READ, _as_read(timing), strict=True)),
        "run": printable(timing.run),
        "ranks": manifest.ranks if timing.ranks is None else timing.ranks,
        "threads": threads,
        "counters": json.dumps(timing.counters, sort_keys=True),
        "compiler": compiler,
        "environment": _timing_environment(timing, manifest),
        "is_simulated": manifest.is_simulated,
    }


def _timing_environment(timing: KernelTiming, manifest: Manifest) -> str | None:
    """Software as a person gave it, else as the files name it, else as the tags do."""
    tagged = environment_of(manifest.tags)
    return tagged if manifest.tags.get(ENVIRONMENT_TAG) else timing.environment or tagged


def _run_rows(reading: Reading, manifest: BundleFacts, origin: Row) -> Iterator[Row]:
    has_value = manifest.target is None
    for profile in reading.profiles:
        row = _run_row(profile, reading, manifest, origin | {"run": printable(profile.run)})
        has_value = has_value or row["target_value"] is not None
        yield row
    if not has_value:
        raise BadInputError(
            f"no row has a number in the column {str(manifest.target)[:80]!r}, which the manifest names as target: "
            "correct the manifest or the table"
        )


def has_target(reading: Reading, target: str) -> bool:
    """Whether some row of a table has a number in the column that is to be predicted."""
    return any(
        _target_value(profile, target, {key: profile.labels[key] for key in IDENTITY & profile.labels.keys()})
        is not None
        for profile in reading.profiles
    )


def _run_row(profile: Profile, reading: Reading, manifest: BundleFacts, run: Row) -> Row:
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
    given_name = given.get("app")
    app = (manifest.app_names or {}).get(given_name, given_name) if given_name else manifest.app or run["bundle"]
    args = given["args"] if "args" in given else manifest.args or _own_args(manifest, run)
    try:
        check_application(app), check_arguments(args)
    except ValueError as error:
        raise UnreadableFileError(f"{run['run']}: {error}") from None
    return {
        **run,
        "app": app,
        "args": args,
        "ranks": _ranks(profile, manifest),
        "threads": profile.threads_per_rank if "threads" in given else manifest.threads or profile.threads_per_rank,
        "nodes": profile.hosts if "nodes" in given else manifest.nodes or profile.hosts,
        "gpus": int(given["gpus"]) if "gpus" in given else manifest.gpus,
        "wall_seconds": wall_seconds,
        "target_column": target,
        "target_value": None if target is None else _target_value(profile, target, given),
        "labels": json.dumps(labels, sort_keys=True),
        "environment": environment_of(_software(labels, manifest) | manifest.tags),
        "format": reading.format,
        "collected_at": utc_naive(manifest.collected_at),
        "is_simulated": manifest.is_simulated or labels.get("counters") == "simulated",
    }


def _software(labels: Mapping[str, str], manifest: BundleFacts) -> dict[str, str]:
    """Labels that may say which software a run was made with: columns of a table of samples are features."""
    if manifest.kind == "samples":
        return {name: text for name, text in labels.items() if name == ENVIRONMENT_TAG}
    return dict(labels)


def _own_args(manifest: BundleFacts, run: Row) -> str:
    """Arguments of a run that has none: a sample is then a configuration of its own, comparable with no other.

    But an observed run without arguments is known to have none.
    """
    if manifest.kind != "samples" or OBSERVED_TAG in manifest.tags:
        return ""
    return f"{run['machine']}/{run['bundle']}/{run['run']}"


def _target_value(profile: Profile, target: str, given: Mapping[str, Any]) -> float | None:
    if target in profile.metrics:
        return profile.metrics[target].sum
    return float(given[target]) if target in given and target not in ("app", "args") else None


def _ranks(profile: Profile, manifest: BundleFacts) -> int:
    """MPI ranks of a run: a row of samples knows its own, otherwise the manifest knows best."""
    is_own = manifest.kind == "samples" and "ranks" in profile.labels
    return profile.ranks if is_own else manifest.ranks or profile.ranks


def _counter_rows(reading: Reading, manifest: BundleFacts, origin: Row) -> Iterator[Row]:
    if manifest.kind == "samples":
        is_sum = manifest.tags.get(AGGREGATION_TAG) == SUM_OVER_RANKS
    else:
        is_sum = not reading.format.startswith(_CROSS_MODELLING)
    seen: set[str] = set()
    for profile in reading.profiles:
        if not profile.metrics.keys() <= seen:
            seen |= profile.metrics.keys()
            if len(seen) > MAX_COLUMNS:
                raise UnreadableFileError(
                    f"{printable(profile.run)}: more than {MAX_COLUMNS} different counters: split it"
                )
        run = origin | {"run": printable(profile.run)}
        ranks = _ranks(profile, manifest) if is_sum else 1
        for counter, total in profile.metrics.items():
            if counter == manifest.target:
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
