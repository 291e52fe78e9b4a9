"""Jobs: what a landing, a schedule or a person starts. A command that needs a part of one runs that part of it."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from perf_assets.core.tables.health import HEALTH
from perf_assets.core.tables.models import AMMS
from perf_assets.defs.machines import assets as machine_models
from perf_assets.defs.partitions import machines
from perf_assets.defs.reports import fleet
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.scheduling import assets as schedule
from perf_assets.defs.sources import assets as sources
from perf_assets.defs.sources import evaluation
from perf_assets.defs.targets import assets as targets
from perf_assets.defs.targets import pair_matrix
from perf_assets.defs.transfers import assets as transfers
from perf_assets.defs.vectors import assets as vectors
from perf_assets.workflows.landing.ingest import needs_work

_ADAPTATION = (
    targets.model_target__adapted,
    targets.eval_target__verdicts,
    targets.eval_transfer__scores,
    targets.out_report__machine,
)
_INGESTION = dg.AssetSelection.groups("landing", "raw", "core") | dg.AssetSelection.assets(AMMS.name, HEALTH.name)


ALL: list[Any] = []
"""All jobs that are made below; the class that Dagster makes of them is not public."""


def _job(name: str, what: dg.AssetSelection | Sequence[dg.AssetsDefinition | str], description: str) -> Any:
    selection = what if isinstance(what, dg.AssetSelection) else dg.AssetSelection.assets(*what)
    ALL.append(dg.define_asset_job(name, selection=selection, description=description))
    return ALL[-1]


ingest_machine_job = _job(
    "ingest_machine",
    _INGESTION,
    "Read what landed for a machine, check it, load it into the warehouse, derive its features and its AMM, "
    "compare its RAJAPerf runs with those before",
)
refresh_machine_job = _job(
    "refresh_machine",
    _INGESTION | dg.AssetSelection.assets(*_ADAPTATION),
    "All that follows from what landed for a machine: tables, features, AMM, health, target model, scores, page",
)
adapt_machine_job = _job(
    "adapt_machine", _ADAPTATION, "Adapt, register, judge and score the target model of a machine, write its page"
)
ENCODER_STEPS = (machine_models.ENCODER,)
SOURCE_STEPS = (sources.train_source_models, sources.model_source__inputs, machine_models.out_amm__machines)
VECTOR_STEPS = (vectors.model_vector__relative, vectors.eval_vector__verdicts)
train_fleet_job = _job(
    "train_fleet",
    [*ENCODER_STEPS, *SOURCE_STEPS, *VECTOR_STEPS],
    "Train the encoder of RAJAPerf results, describe all machines by it, train and register source models and vector "
    "model, and draw the machines",
)
XAMM_STEPS = (evaluation.eval_xamm__scores, evaluation.eval_xamm__embeddings, evaluation.eval_xamm__report)
_EVALUATED_WEEKLY = (pair_matrix.eval_transfer__matrix, *XAMM_STEPS, transfers.eval_modelx__table)
evaluate_methods_job = _job(
    "evaluate_methods",
    [*_EVALUATED_WEEKLY, vectors.score_vectors],
    "Score all methods beside their baselines, with their pages: pairs of machines, xAMM's experiments, ModelX's "
    "table, relative-performance vectors",
)
assemble_dataset_job = _job(
    "assemble_dataset", [transfers.core_datasets__rows], "Put the rows of a dataset together as one plain table"
)
adapt_dataset_job = _job(
    "adapt_dataset",
    (
        transfers.model_transfer__adapted,
        transfers.eval_dataset__verdicts,
        transfers.eval_dataset__scores,
        transfers.out_report__dataset,
    ),
    "Adapt the model of a dataset from the tables of other datasets, register, judge and score it, write its page",
)
simulate_schedules_job = _job(
    "simulate_schedules",
    [schedule.eval_scaling__widths, schedule.out_schedule__turnaround],
    "Score times at widths that nobody ran, and schedule a job trace with and without predictions",
)
report_fleet_job = _job("report_fleet", [fleet.out_report__fleet], "Write the page of the fleet")


def keys_of(steps: Sequence[dg.AssetsDefinition | str]) -> list[dg.AssetKey]:
    """Assets that some steps make."""
    keys = (({dg.AssetKey(step)} if isinstance(step, str) else step.keys) for step in steps)
    return sorted(key for one in keys for key in one)


@dg.schedule(
    job=refresh_machine_job,
    cron_schedule="0 2 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every night at 2: machines that the sensor missed, and refused bundles whose files were fixed",
)
def nightly_ingestion(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for a run of each machine with bundles that are not in its record, or a record that is not loaded."""
    warehouse = lake.warehouse()
    behind = [machine for machine in lake.lake().machines() if needs_work(lake.lake(), warehouse, machine)]
    if not behind:
        return dg.SkipReason("every landed bundle is in the record and in the warehouse")
    context.instance.add_dynamic_partitions(machines.name or "", behind)
    return [dg.RunRequest(partition_key=machine) for machine in behind]


nightly_fleet_page = dg.ScheduleDefinition(
    name="nightly_fleet_page",
    job=report_fleet_job,
    cron_schedule="0 5 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every night at 5: the page of the fleet, on which machines grow stale by time alone",
)
weekly_training = dg.ScheduleDefinition(
    name="weekly_training",
    job=train_fleet_job,
    run_config={"ops": {"model_vector__relative": {"config": {"retrain": True}}}},
    cron_schedule="0 3 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every Sunday at 3: train encoder, source models and vector model anew",
)


@dg.schedule(
    job=evaluate_methods_job,
    cron_schedule="0 6 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every Sunday at 6: score all methods anew but vectors, which take longest",
)
def weekly_evaluation() -> dg.RunRequest:
    """Ask for the scores of pairs of machines, of xAMM's experiments, and of datasets."""
    return dg.RunRequest(asset_selection=keys_of(_EVALUATED_WEEKLY))
