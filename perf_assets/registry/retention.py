"""Versions and runs of the registry that nothing needs any more, and their removal with their files."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from mlflow.entities.model_registry import ModelVersion

from perf_assets.core.errors import RegistryError
from perf_assets.core.paths import mlflow_tracking_uri
from perf_assets.core.site import RetentionSettings
from perf_assets.infra.postgres import Address, is_postgres
from perf_assets.registry.lineage import AMM, ENCODER, SOURCE, SOURCE_VERSION
from perf_assets.registry.store import open_store
from perf_assets.registry.versions import all_aliases, all_pages, predecessor_of

Key = tuple[str, int]
"""Name and number of a version."""


@dataclass(frozen=True)
class Superfluous:
    """Versions and runs that nothing needs any more."""

    versions: tuple[Key, ...]
    runs: tuple[str, ...]
    """Runs of MLflow: those of these versions, and old ones that made none."""


def superfluous(settings: RetentionSettings, now: datetime | None = None) -> Superfluous:
    """Versions and runs that may go.

    What stays: versions that an alias points to, or would point to again after a roll-back; the newest of each model
    and the young ones; the source models that any of these start from, and the encoders that any of these take.
    """
    client, since = open_store(), (now or datetime.now(UTC)) - timedelta(days=settings.days)
    every = {(v.name, int(v.version)): v for v in all_pages(client.search_model_versions)}
    kept = _in_use() | _recent(every.values(), settings.versions, since)
    kept |= set(_needed_by(kept & every.keys(), every))
    gone = sorted(every.keys() - kept)
    held = {every[key].run_id for key in every.keys() & kept}
    of_versions = {every[key].run_id for key in gone if every[key].run_id} - held
    old = {run.info.run_id for run in _runs(client) if _ended_before(run, since)} - {v.run_id for v in every.values()}
    return Superfluous(tuple(gone), tuple(sorted(of_versions | old)))


def remove(superfluous: Superfluous) -> None:
    """Remove versions and runs, and their files."""
    client = open_store()
    for name, number in superfluous.versions:
        version = client.get_model_version(name, str(number))
        client.delete_model_version(name, str(number))
        if version.model_id:
            client.delete_logged_model(version.model_id)
    for run in superfluous.runs:
        client.delete_run(run)
    _collect_garbage()


def _in_use() -> set[Key]:
    keys = {(name, number) for name, pointed in all_aliases().items() for number in pointed.values()}
    before = {(name, predecessor_of(name, number)) for name, number in keys}
    return keys | {(name, number) for name, number in before if number is not None}


def _recent(versions: Iterable[ModelVersion], count: int, since: datetime) -> set[Key]:
    numbers: dict[str, list[int]] = {}
    young = set()
    for version in versions:
        numbers.setdefault(version.name, []).append(int(version.version))
        if version.creation_timestamp >= since.timestamp() * 1000:
            young.add((version.name, int(version.version)))
    return young | {(name, number) for name, own in numbers.items() for number in sorted(own)[-count:]}


def _needed_by(kept: set[Key], every: dict[Key, ModelVersion]) -> Iterator[Key]:
    """Links of the chains of what is kept: source models, then encoders of both."""
    sources = {(SOURCE, int(number)) for key in kept if (number := every[key].tags.get(SOURCE_VERSION))}
    yield from sources
    wanted = {every[key].tags.get(ENCODER) for key in kept | sources if key in every} - {None}
    for key, version in every.items():
        if key[0] == AMM and version.tags.get(ENCODER) in wanted:
            yield key


def _runs(client: MlflowClient) -> Iterator[Run]:
    for experiment in all_pages(client.search_experiments):
        token = None
        while True:
            page = client.search_runs([experiment.experiment_id], "", ViewType.ACTIVE_ONLY, 1000, page_token=token)
            yield from page
            token = page.token
            if not token:
                break


def _ended_before(run: Run, since: datetime) -> bool:
    ended = run.info.end_time
    return ended is not None and ended < since.timestamp() * 1000


def _collect_garbage() -> None:
    """Let MLflow remove from its store and its files what was deleted."""
    uri = mlflow_tracking_uri()
    if is_postgres(uri):
        uri = Address(uri).url.render_as_string(hide_password=False)
    # Not as an argument, which everybody sees: it may hold a password.
    environment = {**os.environ, "MLFLOW_TRACKING_URI": uri, "MLFLOW_BACKEND_STORE_URI": uri}
    command = [sys.executable, "-m", "mlflow", "gc", "--older-than", "0s"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        raise RegistryError(f"what was deleted could not be removed from the store ({reason}): run 'mlflow gc'")
