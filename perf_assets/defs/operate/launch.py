"""Running the jobs from a command, with the persistent Dagster instance, so that the UI shows them."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.execution.execute_in_process import merge_run_tags
from dagster._core.execution.plan import instance_concurrency_context as pools
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.paths import check_dagster_home, database_of
from perf_assets.core.tables.models import AMMS
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.defs import logging as progress
from perf_assets.defs.build import build_definitions
from perf_assets.defs.jobs import (
    adapt_dataset_job,
    adapt_machine_job,
    assemble_dataset_job,
    draw_machines_job,
    evaluate_xamm_job,
    ingest_machine_job,
    make_modelx_table_job,
    score_all_pairs_job,
    score_vectors_job,
    train_encoder_job,
    train_source_job,
    train_vector_job,
    write_fleet_page_job,
    write_machine_page_job,
)
from perf_assets.defs.operate.dead_runs import PROCESS_TAG, end_dead_runs, own_process
from perf_assets.defs.partitions import datasets as datasets_partitions
from perf_assets.defs.partitions import machines as machines_partitions
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.targets.assets import NOT_MADE
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
_REPOSITORY = RemoteRepositoryOrigin(
    ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(module_name=DEFINITIONS), DEFINITIONS), "__repository__"
)
"""What the runs of commands belong to; Dagster looks it up by the names of location and repository."""
pools.INITIAL_INTERVAL_VALUE = 0.1  # type: ignore[assignment]
"""Seconds between two looks at a pool that is taken: Dagster waits for one at least, and steps that load the warehouse
take less."""
_OPENING_SECONDS = 120.0
"""Wait for other processes that open the same home: the first of them makes all tables."""
_QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_WITH_PROGRESS: dict[str, Any] = {"loggers": {progress.NAME: {}}}
_Stage = tuple[str, str, dict[str, Any], str | None]
"""Title, name of the job, its configuration, and the machine or dataset it is for."""


@dataclass(frozen=True)
class MachineOutcome:
    """How ingesting one machine went."""

    machine: str
    seconds: float
    failure: str | None = None
    """Why it failed, in one line."""
    is_bad_input: bool = False
    """Whether the failure is of what was given, not of the program."""


def ingest_machines(
    machines: Sequence[str], on_start: Callable[[str], None], *, reread: bool = False, describes: bool = True
) -> Iterator[MachineOutcome]:
    """Run the ingestion job for each machine in this process; a machine that fails does not stop the others.

    A training that follows describes all machines: then they need not be described before.
    """
    config = _QUIET | {"ops": {"raw_landing__bundles": {"config": {"reread": reread}}}}
    with open_instance() as instance:
        end_dead_runs(instance)
        instance.add_dynamic_partitions(machines_partitions.name or "", list(machines))
        lake = Lake.default()
        named = sorted({name for machine in machines for name in landed_datasets(lake, machine)})
        instance.add_dynamic_partitions(datasets_partitions.name or "", named)
        job = build_definitions().resolve_job_def(ingest_machine_job.name)
        for machine in machines:
            on_start(machine)
            start = time.monotonic()
            result = _execute(job, instance, config, machine, leaves_out=() if describes else (AMMS.name,))
            yield MachineOutcome(machine, time.monotonic() - start, *_failure(result))


def remove_partition(machine: str) -> None:
    """Let Dagster know a machine no more; its events stay."""
    with open_instance() as instance:
        instance.delete_dynamic_partition(machines_partitions.name or "", machine)


def train_fleet(
    seed: int,
    on_stage: Callable[[str], None],
    settings: Mapping[str, list[str] | int],
    *,
    chooses_amm_options: bool = True,
) -> None:
    """Train the encoder, which describes each machine, train and register the source models.

    `settings` are those of the step of the source models.
    """
    encoder = {"ops": {"model_amm__encoder": {"config": {"seed": seed, "choose_options": chooses_amm_options}}}}
    sources = {"ops": {"train_source_models": {"config": {"seed": seed, **settings}}}}
    stages: list[_Stage] = [
        ("AMM encoder", train_encoder_job.name, encoder, None),
        ("source models", train_source_job.name, sources, None),
    ]
    _run_stages(stages, on_stage)


def adapt_machines(
    machines: Sequence[str],
    seed: int,
    seeds: int,
    on_stage: Callable[[str], None],
    settings: Mapping[str, int] | None = None,
) -> None:
    """Adapt, score and register the target model of each machine, and write its page; one that cannot be adapted does
    not stop the others.
    """
    config = {
        "model_target__adapted": {"config": {"seed": seed, "only_if_changed": False, **(settings or {})}},
        "eval_transfer__scores": {"config": {"seeds": seeds}},
    }
    stages: list[_Stage] = [(f"target model of {m}", adapt_machine_job.name, {"ops": config}, m) for m in machines]
    failures = _run_stages(stages, on_stage, goes_on=True)
    if failures:
        raise BadInputError(f"{'; '.join(failures)}")


def adapt_datasets(datasets: Sequence[str], seed: int, seeds: int, on_stage: Callable[[str], None]) -> None:
    """Adapt, judge and score the model of each dataset, and write its page; one that cannot be adapted does not stop
    the others. The tables of all datasets of the lake are put together first: each may be a source.
    """
    every = assemble_datasets(on_stage)
    unknown = [name for name in datasets if name not in every]
    if unknown:
        raise BadInputError(f"dataset {unknown[0]!r} is not known; there are {listed(every) or 'none yet'}")
    config = {
        "model_transfer__adapted": {"config": {"seed": seed, "only_if_changed": False}},
        "eval_dataset__scores": {"config": {"seeds": seeds}},
    }
    stages: list[_Stage] = [(f"model of {d}", adapt_dataset_job.name, {"ops": config}, d) for d in datasets or every]
    failures = _run_stages(stages, on_stage, goes_on=True, partitions=datasets_partitions)
    if failures:
        raise BadInputError(f"{'; '.join(failures)}")


def assemble_datasets(on_stage: Callable[[str], None]) -> list[str]:
    """Put together the tables of all datasets that are ingested; their names."""
    every = sorted(dataset_digests(LakeResource().warehouse()))
    if not every:
        raise BadInputError("no table of samples is ingested: land one with --kind samples, then 'perf-assets ingest'")
    stages: list[_Stage] = [(f"rows of {name}", assemble_dataset_job.name, {}, name) for name in every]
    failures = _run_stages(stages, on_stage, goes_on=True, partitions=datasets_partitions)
    if failures:
        raise BadInputError(f"{'; '.join(failures)}")
    return every


def make_modelx_table(
    shots: Sequence[str], seeds: int, targets: Sequence[str], on_stage: Callable[[str], None]
) -> None:
    """Make ModelX's table on the datasets of the lake, and its page."""
    assemble_datasets(on_stage)
    settings = {"shots": list(shots), "seeds": seeds, "targets": list(targets)}
    config = {"ops": {"eval_modelx__table": {"config": settings}}}
    _run_stages([("ModelX's table", make_modelx_table_job.name, config, None)], on_stage)


def evaluate_xamm(
    seeds: int, on_stage: Callable[[str], None], methods: Sequence[str] = (), embeddings: Sequence[str] = ()
) -> None:
    """Run the xAMM experiments with these methods and embeddings, or all, and write their page."""
    steps = {
        "eval_xamm__scores": {"config": {"seeds": seeds, "methods": list(methods)}},
        "eval_xamm__embeddings": {"config": {"embeddings": list(embeddings)}},
    }
    _run_stages([("xAMM experiments", evaluate_xamm_job.name, {"ops": steps}, None)], on_stage)


def score_pairs(seeds: int, shots: Sequence[int], on_stage: Callable[[str], None]) -> None:
    """Score all ordered pairs of machines over numbers of shots."""
    config = {"ops": {"eval_transfer__matrix": {"config": {"seeds": seeds, "shots": list(shots)}}}}
    _run_stages([("all pairs", score_all_pairs_job.name, config, None)], on_stage)


def write_fleet_page(on_stage: Callable[[str], None]) -> None:
    """Write the page of the fleet."""
    _run_stages([("page of the fleet", write_fleet_page_job.name, {}, None)], on_stage)


def write_site(machines: Sequence[str], on_stage: Callable[[str], None], *, has_amms: bool) -> list[str]:
    """Write the pages of AMMs, of machines that have a model, and of the fleet; why some could not be written."""
    stages: list[_Stage] = [
        *([("page of the AMMs", draw_machines_job.name, {}, None)] if has_amms else []),
        *((f"page of {machine}", write_machine_page_job.name, {}, machine) for machine in machines),
        ("page of the fleet", write_fleet_page_job.name, {}, None),
    ]
    return _run_stages(stages, on_stage, goes_on=True)


def make_vectors(
    relative_to: str, seed: int, seeds: int, settings: VectorSettings, on_stage: Callable[[str], None]
) -> None:
    """Train, register and judge the vector model; score all methods with `seeds` seeds, unless 0."""
    made_of = settings.model_dump()
    config = {"relative_to": relative_to, "seed": seed, "retrain": True, **made_of}
    training = {"ops": {"model_vector__relative": {"config": config}}}
    stages: list[_Stage] = [("vector model", train_vector_job.name, training, None)]
    if seeds:
        scoring = {"ops": {"score_vectors": {"config": {"relative_to": relative_to, "seeds": seeds, **made_of}}}}
        stages.append(("scores of vectors", score_vectors_job.name, scoring, None))
    _run_stages(stages, on_stage)


def add_to_vectors(machine: str, on_stage: Callable[[str], None]) -> None:
    """Let a machine join the vector model in use, from its few runs."""
    config = {"ops": {"model_vector__relative": {"config": {"added_machine": machine}}}}
    _run_stages([(f"{machine} joins the vector model", train_vector_job.name, config, None)], on_stage)


def _run_stages(
    stages: Sequence[_Stage],
    on_stage: Callable[[str], None],
    *,
    goes_on: bool = False,
    partitions: dg.DynamicPartitionsDefinition = machines_partitions,
) -> list[str]:
    """Run jobs one after the other in this process, showing what their steps say.

    The first failure ends it, or bad input is told when all are done.
    """
    definitions = build_definitions()
    # Before any run: after one, Dagster may look for state in an instance that is gone.
    jobs = {job: definitions.resolve_job_def(job) for _, job, *_ in stages}
    failures = []
    with open_instance() as instance:
        end_dead_runs(instance)
        keys = [key for *_, key in stages if key is not None]
        instance.add_dynamic_partitions(partitions.name or "", keys)
        for title, job, config, machine in stages:
            on_stage(title)
            failure, is_bad_input = _failure(_execute(jobs[job], instance, _WITH_PROGRESS | config, machine))
            if failure is not None and is_bad_input and goes_on:
                failures.append(f"{title}: {failure}")
            elif failure is not None:
                raise BadInputError(f"{title}: {failure}") if is_bad_input else RuntimeError(f"{title}: {failure}")
    return failures


def _execute(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    config: dict[str, Any],
    machine: str | None,
    *,
    leaves_out: Sequence[str] = (),
) -> dg.JobExecutionResult:
    """Run a job in this process, as a run of the code location: its page, the timeline and "Re-execute" know it.

    `execute_in_process` makes runs that belong to none. `leaves_out` are assets of the job that are not made.
    """
    chosen = job.asset_layer.selected_asset_keys - {dg.AssetKey(name) for name in leaves_out}
    mine = job.as_ephemeral_job({}, {}, asset_selection=sorted(chosen) if leaves_out else None)
    own = {PROCESS_TAG: own_process(), REPOSITORY_LABEL_TAG: _REPOSITORY.get_label(), "dagster/max_retries": "0"}
    run = instance.create_run_for_job(
        mine,
        run_config=config,
        tags=merge_run_tags(job, machine, own, None, instance, config),
        remote_job_origin=_REPOSITORY.get_job_origin(job.name),
    )
    return execute_run(InMemoryJob(mine), run, instance)


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


def _failure(result: dg.JobExecutionResult) -> tuple[str | None, bool]:
    """Why a run failed in one line, and whether that is of what was given; None where it succeeded."""
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


def _why_not_made(result: dg.JobExecutionResult) -> str | None:
    """Why a run that went well left out what it was for."""
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION:
            metadata = event.asset_observation_data.asset_observation.metadata
            if NOT_MADE in metadata:
                return str(metadata[NOT_MADE].value)
    return None
