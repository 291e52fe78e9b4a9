"""Runs to ask about: from files that a tool wrote, and from the warehouse."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError, UnknownError, like, listed
from perf_assets.core.manifest import MANIFEST_NAME, BundleFacts, parse_manifest
from perf_assets.core.measurements import Reading
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.core.tables.runs import CONFIGURATION, FEATURES
from perf_assets.core.text import first_problem
from perf_assets.readers.bundle import Row, profile_rows
from perf_assets.readers.read import read
from perf_assets.readers.samples.table import texts_of
from perf_assets.serving.requests import Run, checked
from perf_assets.storage.aliases import known_applications, load_aliases
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.workflows.fleet import open_warehouse
from perf_assets.workflows.landing.land import configuration_in

_SHARED = ("app", "args", "ranks", "threads", "gpus", "wall_seconds")


def read_rows(lake: Lake, path: Path, machine: str, given: Mapping[str, Any]) -> list[Row]:
    """Configurations in a file or folder as rows: what was measured in several profiling runs of one is put together.

    They are called as if the files had landed in this lake. `given` says what the files do not; the median counts, of
    times and of counters (per rank), as in the warehouse.
    """
    if not path.exists():
        raise BadInputError(f"{path} does not exist")
    facts, name = _facts(path, machine, given)
    reading = _read(path, facts.get("kind"))
    if reading.timings:
        raise BadInputError(f"{path}: holds RAJAPerf results, not the profile of an application: land it")
    runs: list[Row] = []
    counters: list[Row] = []
    for part, own_facts in _configurations(lake, reading, facts):
        try:
            bundle = BundleFacts.model_validate({**own_facts, "machine": machine, "collected_at": datetime.now(UTC)})
        except ValidationError as error:
            raise BadInputError(f"{path}: {first_problem(error)}") from None
        for rows, more in zip((runs, counters), profile_rows(part, bundle, name), strict=True):
            rows += more
    return _merged(path, runs, counters)


def _configurations(lake: Lake, reading: Reading, facts: Mapping[str, Any]) -> Iterator[tuple[Reading, dict[str, Any]]]:
    """A table, or each profile, with what it says of itself."""
    aliases = load_aliases(lake, known_applications(lake))
    if reading.format.startswith(("samples", "jobs")):
        names = aliases.applications(texts_of(reading.profiles, "app")) or None
        yield reading, {"target": "wall_seconds", "app_names": names, **facts, "kind": "samples"}
        return
    for profile in reading.profiles:
        labelled = {name: value for name, (value, _) in configuration_in(profile.labels, aliases).items()}
        yield replace(reading, profiles=[profile]), {**labelled, **facts, "kind": "profile"}


def read_runs(
    lake: Lake, path: Path, machine: str, given: Mapping[str, Any], uses_gpus: bool | None = None
) -> list[Run]:
    """Runs in a file or folder that was measured on a machine."""
    return [
        checked(
            Run,
            {
                "machine": machine,
                **{name: row[name] for name in (*CONFIGURATION, "wall_seconds", "counters")},
                "uses_gpus": uses_gpus,
            },
            str(path),
        )
        for row in read_rows(lake, path, machine, given)
    ]


def stored_runs(
    lake: Lake,
    machine: str,
    app: str | None = None,
    args: str | None = None,
    ranks: int | None = None,
    uses_gpus: bool | None = None,
) -> list[Run]:
    """Runs on a machine that are in the warehouse."""
    if machine not in lake.machines():
        near = like(machine, lake.machines())
        advice = f"did you mean {near}?" if near else f"there are {', '.join(lake.machines()) or 'none yet'}"
        raise UnknownError(f"machine {machine!r} is not known: {advice}")
    features = [feature.name for feature in XAMM_FEATURES]
    wanted = {"app": app, "args": None if args is None else _comparable(lake, args), "ranks": ranks}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    conditions = "".join(f" AND {name} = ${name}" for name in chosen)
    rows = open_warehouse(lake).frame(
        f"SELECT {', '.join((*CONFIGURATION, 'wall_seconds', *features))} FROM {FEATURES.name} "
        f"WHERE machine = $machine AND wall_seconds IS NOT NULL{conditions} ORDER BY ALL",
        {"machine": machine, **chosen},
    )
    if rows.empty:
        raise BadInputError(
            f"no run of {machine} in the warehouse is {_wording(chosen)}: {_advice(lake, machine, app)}"
        )
    return [
        checked(
            Run,
            {
                "machine": machine,
                **{name: row[name] for name in (*CONFIGURATION, "wall_seconds")},
                "counters": {name: row[name] for name in features},
                "uses_gpus": uses_gpus,
            },
            f"a run of {machine}",
        )
        for row in rows.to_dict("records")
    ]


def _advice(lake: Lake, machine: str, app: str | None) -> str:
    """Advice on what could have been meant."""
    query = f"SELECT DISTINCT app FROM {FEATURES.name} WHERE machine = ? AND wall_seconds IS NOT NULL ORDER BY app"
    apps = [str(name) for name in open_warehouse(lake).frame(query, [machine])["app"]]
    if not apps:
        return "it has no run of an application"
    if app is not None and app not in apps:
        near = like(app, apps)
        return f"did you mean {near}?" if near else f"there are runs of {listed(apps)}"
    return "leave --args or --ranks out, or see core_runs__features"


def _read(path: Path, kind: str | None) -> Reading:
    try:
        return read(path, kind)
    except BadInputError as error:
        # Of a folder, readers name the file in it that is wrong.
        raise (BadInputError(f"{path}: {error}") if path.is_dir() else error) from None


def _facts(path: Path, machine: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Facts about the files beside their content, and a name for them."""
    if not (path / MANIFEST_NAME).is_file():
        return dict(given), path.name or "."
    manifest = parse_manifest(LandedBundle(path.absolute()).manifest_bytes)
    if manifest.machine != machine:
        raise BadInputError(f"{path}: its {MANIFEST_NAME} says {manifest.machine}, not {machine}")
    known = manifest.model_dump(exclude={"files", "version", "collected_at"}, exclude_none=True)
    return {**known, **given}, path.absolute().name


def _merged(path: Path, runs: Sequence[Row], counters: Sequence[Row]) -> list[Row]:
    """One row per configuration."""
    by_run: dict[str, dict[str, float]] = defaultdict(dict)
    for row in counters:
        by_run[row["run"]][row["counter"]] = row["value_mean_over_ranks"]
    grouped: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in runs:
        grouped[tuple(row[name] for name in CONFIGURATION)].append(row)
    if not grouped:
        raise BadInputError(f"{path}: holds no run")
    rows_merged = []
    for of_one in grouped.values():
        times = [row["wall_seconds"] for row in of_one if row["wall_seconds"] is not None]
        if not times:
            raise BadInputError(f"{path}: says nothing of the run time: give --wall-seconds")
        values: dict[str, list[float]] = defaultdict(list)
        for row in of_one:
            for counter, value in by_run[row["run"]].items():
                values[counter].append(value)
        merged = {name: of_one[0][name] for name in _SHARED}
        merged |= {"wall_seconds": float(statistics.median(times))}
        merged |= {"counters": {name: float(statistics.median(rows_merged)) for name, rows_merged in values.items()}}
        rows_merged.append(merged)
    return rows_merged


def _comparable(lake: Lake, args: str) -> str:
    return load_catalogue(lake.site_catalogues()).comparable_args(args)


def _wording(chosen: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in chosen.items()) or "there"
