"""Running the jobs from a command, with the persistent Dagster instance, so that the UI shows them."""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.paths import check_dagster_home, database_of
from perf_assets.core.tables.datasets import MODELX_TABLE
from perf_assets.core.tables.models import AMMS, TRANSFER_MATRIX
from perf_assets.core.tables.vectors import VECTOR_GROWTH, VECTOR_SCORES
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.defs import jobs, partitions
from perf_assets.defs import logging as progress
from perf_assets.defs.build import build_definitions
from perf_assets.defs.machines.assets import MAP
from perf_assets.defs.operate.dead_runs import PROCESS_TAG, end_dead_runs, own_process
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.targets.assets import NOT_MADE, PAGE
from perf_assets.infra.locks import exclusive
from perf_assets.infra.postgres import Address
from perf_assets.storage.datasets import dataset_digests
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import landed_datasets

_BAD_INPUT_ERRORS = {
    BadInputError.__name__,
    *(kind.__name__ for kind in BadInputError.__subclasses__()),
    "DagsterAssetCheckFailedError",
}
_CLASS_NAME = re.compile(r"^[\w.]+: ")
DEFINITIONS = "perf_assets.definitions"
"""Module of the definitions, and name of their code location."""
_ORIGIN = {
    "__class__": "ExternalPipelineOrigin",
    "external_repository_origin": {
        "__class__": "ExternalRepositoryOrigin",
        "repository_location_origin": {
            "__class__": "ManagedGrpcPythonEnvRepositoryLocationOrigin",
            "loadable_target_origin": {"__class__": "LoadableTargetOrigin", "module_name": DEFINITIONS},
            "location_name": DEFINITIONS,
        },
        "repository_name": "__repository__",
    },
}
"""Origin of a run of the code location, as Dagster stores it with the run; the name of the job is to be added."""
_OPENING_SECONDS = 120.0
"""Wait for other processes that open the same home: the first of them makes all tables."""
_QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_WITH_PROGRESS: dict[str, Any] = {"loggers": {progress.NAME: {}}}
OnStage = Callable[[str], None]
"""Receives the title of each part of the work as it begins."""


@dataclass(frozen=True)
class _Stage:
    """A job, or some of its assets, that is one part of what a command does."""

    title: str
    job: str
    """Name of the job."""
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Configuration by step; the others have their defaults."""
    partition: str | None = None
    """Machine or dataset that it is for."""
    assets: Sequence[dg.AssetKey] = ()
    """Assets to make; empty for all of the job."""

    @property
    def config(self) -> dict[str, Any]:
        """Configuration of the run."""
        return _WITH_PROGRESS | _of_steps(self.steps)


_FLEET_PAGE = _Stage("page of the fleet", jobs.report_fleet_job.name)


def _of_steps(steps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Configuration of a run from that of its steps."""
    return {"ops": {step: {"config": dict(config)} for step, config in steps.items()}} if steps else {}


@dataclass(frozen=True)
class MachineOutcome:
    """Outcome of ingesting one machine."""

    machine: str
    seconds: float
    failure: str | None = None
    """Reason of the failure, in one line."""
    is_bad_input: bool = False
    """Whether the input caused the failure, not the program."""


def ingest_machines(
    machines: Sequence[str], on_start: Callable[[str], None], *, reread: bool = False, describes: bool = True
) -> Iterator[MachineOutcome]:
    """Run the ingestion job for each machine in this process; a machine that fails does not stop the others.

    A training that follows describes all machines: then they need not be described before.
    """
    config = _QUIET | _of_steps({"raw_landing__bundles": {"reread": reread}})
    with open_instance() as instance:
        end_dead_runs(instance)
        lake = Lake.default()
        _add(instance, partitions.machines, machines)
        _add(instance, partitions.datasets, {name for machine in machines for name in landed_datasets(lake, machine)})
        job = build_definitions().resolve_job_def(jobs.ingest_machine_job.name)
        undescribed = sorted(job.asset_layer.selected_asset_keys - {dg.AssetKey(AMMS.name)})
        for machine in machines:
            on_start(machine)
            start = time.monotonic()
            result = _execute(job, instance, config, machine, () if describes else undescribed)
            yield MachineOutcome(machine, time.monotonic() - start, *_failure(result))


def _add(instance: dg.DagsterInstance, kind: dg.DynamicPartitionsDefinition, keys: Iterable[str]) -> None:
    instance.add_dynamic_partitions(kind.name or "", sorted(keys))


def remove_partition(machine: str) -> None:
    """Let Dagster know a machine no more; its events stay."""
    with open_instance() as instance:
        instance.delete_dynamic_partition(partitions.machines.name or "", machine)


def train_fleet(
    seed: int, on_stage: OnStage, settings: Mapping[str, list[str] | int], *, chooses_amm_options: bool = True
) -> None:
    """Train the encoder, which describes each machine, train and register the source models.

    `settings` are those of the step of the source models.
    """
    encoder = {"model_amm__encoder": {"seed": seed, "choose_options": chooses_amm_options}}
    sources = {"train_source_models": {"seed": seed, **settings}}
    job = jobs.train_fleet_job.name
    stages = [
        _Stage("AMM encoder", job, encoder, assets=jobs.keys_of(jobs.ENCODER_STEPS)),
        _Stage("source models", job, sources, assets=jobs.keys_of(jobs.SOURCE_STEPS)),
    ]
    _run_stages(stages, on_stage)


def adapt_machines(
    machines: Sequence[str], seed: int, seeds: int, on_stage: OnStage, settings: Mapping[str, int] | None = None
) -> None:
    """Adapt, score and register the target model of each machine, and write its page; one that cannot be adapted does
    not stop the others.
    """
    steps = {
        "model_target__adapted": {"seed": seed, "only_if_changed": False, **(settings or {})},
        "eval_transfer__scores": {"seeds": seeds},
    }
    job = jobs.adapt_machine_job.name
    _run_all([_Stage(f"target model of {machine}", job, steps, machine) for machine in machines], on_stage)


def adapt_datasets(datasets: Sequence[str], seed: int, seeds: int, on_stage: OnStage) -> None:
    """Adapt, judge and score the model of each dataset, and write its page; one that cannot be adapted does not stop
    the others. The tables of all datasets of the lake are put together first: each may be a source.
    """
    every = assemble_datasets(on_stage)
    unknown = [name for name in datasets if name not in every]
    if unknown:
        raise BadInputError(f"dataset {unknown[0]!r} is not known; there are {listed(every) or 'none yet'}")
    steps = {
        "model_transfer__adapted": {"seed": seed, "only_if_changed": False},
        "eval_dataset__scores": {"seeds": seeds},
    }
    job = jobs.adapt_dataset_job.name
    stages = [_Stage(f"model of {name}", job, steps, name) for name in datasets or every]
    _run_all(stages, on_stage, partitions.datasets)


def assemble_datasets(on_stage: OnStage) -> list[str]:
    """Put together the tables of all datasets that are ingested; their names."""
    every = sorted(dataset_digests(LakeResource().warehouse()))
    if not every:
        raise BadInputError("no table of samples is ingested: land one with --kind samples, then 'perf-assets ingest'")
    stages = [_Stage(f"rows of {name}", jobs.assemble_dataset_job.name, partition=name) for name in every]
    _run_all(stages, on_stage, partitions.datasets)
    return every


def make_modelx_table(shots: Sequence[str], seeds: int, targets: Sequence[str], on_stage: OnStage) -> None:
    """Make ModelX's table on the datasets of the lake, and its page."""
    assemble_datasets(on_stage)
    config = {"shots": list(shots), "seeds": seeds, "targets": list(targets)}
    _evaluate("ModelX's table", {"eval_modelx__table": config}, [MODELX_TABLE.name], on_stage)


def evaluate_xamm(seeds: int, on_stage: OnStage, methods: Sequence[str] = (), embeddings: Sequence[str] = ()) -> None:
    """Run the xAMM experiments with these methods and embeddings, or all, and write their page."""
    steps: dict[str, dict[str, Any]] = {
        "eval_xamm__scores": {"seeds": seeds, "methods": list(methods)},
        "eval_xamm__embeddings": {"embeddings": list(embeddings)},
    }
    _evaluate("xAMM experiments", steps, jobs.XAMM_STEPS, on_stage)


def score_pairs(seeds: int, shots: Sequence[int], on_stage: OnStage) -> None:
    """Score all ordered pairs of machines over numbers of shots."""
    steps = {"eval_transfer__matrix": {"seeds": seeds, "shots": list(shots)}}
    _evaluate("all pairs", steps, [TRANSFER_MATRIX.name], on_stage)


def _evaluate(
    title: str,
    steps: Mapping[str, Mapping[str, Any]],
    makes: Sequence[dg.AssetsDefinition | str],
    on_stage: OnStage,
) -> None:
    stage = _Stage(title, jobs.evaluate_methods_job.name, steps, assets=jobs.keys_of(makes))
    _run_stages([stage], on_stage)


def write_fleet_page(on_stage: OnStage) -> None:
    """Write the page of the fleet."""
    _run_stages([_FLEET_PAGE], on_stage)


def write_site(machines: Sequence[str], on_stage: OnStage, *, has_amms: bool) -> list[str]:
    """Write the pages of AMMs, of machines that have a model, and of the fleet; why some could not be written."""
    job, page, drawn = jobs.adapt_machine_job.name, jobs.keys_of([PAGE]), jobs.keys_of([MAP])
    stages = [
        *([_Stage("page of the AMMs", jobs.train_fleet_job.name, assets=drawn)] if has_amms else []),
        *(_Stage(f"page of {machine}", job, partition=machine, assets=page) for machine in machines),
        _FLEET_PAGE,
    ]
    return _run_stages(stages, on_stage, goes_on=True)


def make_vectors(relative_to: str, seed: int, seeds: int, settings: VectorSettings, on_stage: OnStage) -> None:
    """Train, register and judge the vector model; score all methods with `seeds` seeds, unless 0."""
    shared = {"relative_to": relative_to, **settings.model_dump()}
    training = {"model_vector__relative": {"seed": seed, "retrain": True, **shared}}
    made = jobs.keys_of(jobs.VECTOR_STEPS)
    _run_stages([_Stage("vector model", jobs.train_fleet_job.name, training, assets=made)], on_stage)
    if seeds:
        scoring = {"score_vectors": {"seeds": seeds, **shared}}
        _evaluate("scores of vectors", scoring, [VECTOR_SCORES.name, VECTOR_GROWTH.name], on_stage)


def add_to_vectors(machine: str, on_stage: OnStage) -> None:
    """Let a machine join the vector model in use, from its few runs."""
    steps = {"model_vector__relative": {"added_machine": machine}}
    made = jobs.keys_of(jobs.VECTOR_STEPS)
    _run_stages([_Stage(f"{machine} joins the vector model", jobs.train_fleet_job.name, steps, assets=made)], on_stage)


def _run_all(
    stages: Sequence[_Stage],
    on_stage: OnStage,
    kind: dg.DynamicPartitionsDefinition = partitions.machines,
) -> None:
    """Run jobs of partitions; bad input of one does not stop the others, and is raised when all are done."""
    failures = _run_stages(stages, on_stage, goes_on=True, kind=kind)
    if failures:
        raise BadInputError("; ".join(failures))


def _run_stages(
    stages: Sequence[_Stage],
    on_stage: OnStage,
    *,
    goes_on: bool = False,
    kind: dg.DynamicPartitionsDefinition = partitions.machines,
) -> list[str]:
    """Run jobs one after the other in this process, showing what their steps say.

    The first failure ends it, or those of bad input are returned when all are done.
    """
    definitions = build_definitions()
    # Before any run: after one, Dagster may look for state in an instance that is gone.
    resolved = {stage.job: definitions.resolve_job_def(stage.job) for stage in stages}
    failures = []
    with open_instance() as instance:
        end_dead_runs(instance)
        _add(instance, kind, [stage.partition for stage in stages if stage.partition is not None])
        for stage in stages:
            on_stage(stage.title)
            job = resolved[stage.job]
            failure, is_bad_input = _failure(_execute(job, instance, stage.config, stage.partition, stage.assets))
            text = f"{stage.title}: {failure}"
            if failure is not None and is_bad_input and goes_on:
                failures.append(text)
            elif failure is not None:
                raise BadInputError(text) if is_bad_input else RuntimeError(text)
    return failures


def _execute(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    config: dict[str, Any],
    partition: str | None,
    assets: Sequence[dg.AssetKey] = (),
) -> dg.ExecuteInProcessResult:
    """Run a job in this process, or some of its assets, as a run of the code location: its page, the timeline and
    "Re-execute" know it.
    """
    origin: Any = dg.deserialize_value(json.dumps(_ORIGIN | {"pipeline_name": job.name}))
    # Dagster has no argument for this: runs that it executes in process belong to no code location.
    create_run = partial(type(instance).create_run_for_job, instance, remote_job_origin=origin)
    instance.create_run_for_job = create_run  # type: ignore[method-assign]
    return job.execute_in_process(
        run_config=config,
        instance=instance,
        partition_key=partition,
        raise_on_error=False,
        asset_selection=assets or None,
        tags={PROCESS_TAG: own_process(), "dagster/max_retries": "0"},
    )


def open_instance() -> dg.DagsterInstance:
    """The persistent instance of this project."""
    home = check_dagster_home()
    os.environ["DAGSTER_HOME"] = str(home)
    with _opened_by_one(home):
        return dg.DagsterInstance.get()


@contextmanager
def _opened_by_one(home: Path) -> Iterator[None]:
    """Let no other process open a home meanwhile: whoever is first makes its tables, which Dagster lets several try."""
    database = database_of(home)
    if database is None:
        with exclusive(home / "open.lock", f"opening {home}", _OPENING_SECONDS):
            yield
    else:
        # Also says at once where the server is away: Dagster would try for a minute, and end with pages of text.
        with Address(database).locked("dagster tables"):
            yield


def migrate_instance(home: Path) -> None:
    """Bring the tables of the database that a home names to what this version of Dagster needs, if it names any.

    Several may do so at once.
    """
    if database_of(home) is not None:
        with _opened_by_one(home), dg.DagsterInstance.from_config(str(home)) as instance:
            instance.upgrade()


def daemon_is_alive(instance: dg.DagsterInstance) -> bool:
    """Whether every daemon that this instance needs has reported lately."""
    statuses = instance.get_daemon_statuses()
    return all(status.healthy for status in statuses.values() if status.required)


def _failure(result: dg.ExecuteInProcessResult) -> tuple[str | None, bool]:
    """Reason why a run failed in one line, and whether the input caused it; None where it succeeded."""
    if result.success:
        reason = _why_not_made(result)
        return reason, reason is not None
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.error is not None:
            error = event.step_failure_data.error
            while error.cause is not None:
                error = error.cause
            if error.cls_name == dg.DagsterExecutionInterruptedError.__name__:
                raise KeyboardInterrupt
            message = _CLASS_NAME.sub("", " ".join(error.message.split()))
            return f"{message} (run {result.run_id[:8]} in the Dagster UI)", error.cls_name in _BAD_INPUT_ERRORS
    return f"see run {result.run_id} in the Dagster UI ('perf-assets up')", False


def _why_not_made(result: dg.ExecuteInProcessResult) -> str | None:
    """Reason why a successful run left out its purpose."""
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION:
            metadata = event.asset_observation_data.asset_observation.metadata
            if NOT_MADE in metadata:
                return str(metadata[NOT_MADE].value)
    return None
