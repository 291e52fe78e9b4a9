"""Observed runs as bundles of the landing zone: how they get there, and how they are found again."""

import csv
import hashlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import MANIFEST_NAME, OBSERVED_TAG, BundleFacts, parse_manifest
from perf_assets.core.text import first_problem
from perf_assets.serving.requests import Observation, Run
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.storage.landing import land

_PREFIX = "observed-"
_REFERENCE_TAG = "reference"
_SIMULATED_TAG = "simulated"
_TABLE = "run.csv"
_TARGET = "wall_seconds"
_IDENTITY = ("app", "args", "ranks", "threads", "nodes", "gpus", _TARGET)


@dataclass(frozen=True)
class LandedObservation:
    """An observed run in the landing zone."""

    bundle: str
    handed_in_at: datetime
    observation: Observation


def check_counters(observation: Observation) -> None:
    """Refuse counters whose names are those of something else."""
    taken = sorted(set(observation.counters) & set(_IDENTITY))
    if taken:
        raise BadInputError(f"counters.{taken[0]}: is no counter, but says which run it is: leave it out")


def land_observation(lake: Lake, observation: Observation, *, is_simulated: bool) -> tuple[str, bool]:
    """Let an observed run appear as a bundle of samples; its name, and whether it is new.

    The same run handed in again changes nothing. Its reference run, where it was given, goes with it as a tag: it is
    no measurement of this machine.
    """
    name = _name_of(observation)
    if (lake.landing / observation.machine / name / MANIFEST_NAME).is_file():
        return name, False
    now = datetime.now(UTC)
    tags = {OBSERVED_TAG: now.isoformat()}
    if observation.reference is not None:
        tags[_REFERENCE_TAG] = observation.reference.model_dump_json()
    if is_simulated:
        tags[_SIMULATED_TAG] = "true"
    try:
        facts = BundleFacts(
            kind="samples",
            target=_TARGET,
            tags=tags,
            collected_at=observation.collected_at or now,
            **observation.model_dump(exclude={"counters", "reference", "collected_at"}),
        )
    except ValidationError as error:
        raise BadInputError(first_problem(error)) from None
    landing = land(lake, facts, name, lambda folder: _write(folder, observation))
    return landing.bundle.name, landing.is_new


def observed_runs(lake: Lake, machine: str, known: Collection[str] = ()) -> Iterator[LandedObservation]:
    """Observed runs of a machine that are in the landing zone and not among the known bundles, oldest first.

    What cannot be read is left to ingestion, which says why.
    """
    observed = []
    for name in _names(lake, machine):
        if name not in known:
            try:
                observed.append(_read(LandedBundle(lake.landing / machine / name), machine))
            except (BadInputError, ValidationError, ValueError, OSError):
                continue
    yield from sorted(observed, key=lambda landed: (landed.handed_in_at, landed.bundle))


def landing_changed(lake: Lake, machine: str) -> int:
    """A number that changes when bundles of a machine come or go: a reason to look, never a proof."""
    try:
        return (lake.landing / machine).stat().st_mtime_ns
    except OSError:
        return 0


def _names(lake: Lake, machine: str) -> list[str]:
    try:
        with os.scandir(lake.landing / machine) as entries:
            return [entry.name for entry in entries if entry.name.startswith(_PREFIX)]
    except FileNotFoundError:
        return []


def _read(bundle: LandedBundle, machine: str) -> LandedObservation:
    manifest = parse_manifest(bundle.manifest_bytes)
    reference = manifest.tags.get(_REFERENCE_TAG)
    observation = Observation(
        machine=machine,
        app=manifest.app or "",
        args=manifest.args,
        ranks=manifest.ranks or 1,
        threads=manifest.threads or 1,
        nodes=manifest.nodes,
        gpus=manifest.gpus,
        wall_seconds=manifest.wall_seconds or 0.0,
        collected_at=manifest.collected_at,
        reference=None if reference is None else Run.model_validate_json(reference),
    )
    handed_in = datetime.fromisoformat(manifest.tags.get(OBSERVED_TAG, ""))
    return LandedObservation(bundle.name, handed_in, observation)


def _name_of(observation: Observation) -> str:
    content = observation.model_dump_json(exclude_none=True).encode()
    stem = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in observation.app)
    return f"{_PREFIX}{stem[:60]}-{hashlib.sha256(content).hexdigest()[:16]}"


def _write(folder: Path, observation: Observation) -> None:
    """A table of one row: configuration and time are in the manifest too, which says what is meant by no arguments."""
    row: dict[str, object] = {
        "ranks": observation.ranks,
        "threads": observation.threads,
        _TARGET: repr(observation.wall_seconds),
    }
    row |= {name: getattr(observation, name) for name in ("nodes", "gpus") if getattr(observation, name) is not None}
    row |= {name: repr(value) for name, value in observation.measured.items()}
    with (folder / _TABLE).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
