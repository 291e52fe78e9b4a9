"""Jobs: what a landing starts, what the schedules start, and what commands run."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from perf_assets.core.tables.datasets import MODELX_TABLE
from perf_assets.core.tables.health import HEALTH
from perf_assets.core.tables.models import AMMS
from perf_assets.defs.partitions import machines
from perf_assets.defs.reports import fleet
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.scheduling import assets as schedule
from perf_assets.defs.sources import assets as models
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


ALL: list[UnresolvedAssetJobDefinition] = []
"""All jobs that are made below."""


def _job(
    name: str,
    what: dg.AssetSelection | Sequence[dg.AssetsDefinition | str],
    description: str,
    config: dict[str, Any] | None = None,
) -> UnresolvedAssetJobDefinition:
    selection = what if isinstance(what, dg.AssetSelection) else dg.AssetSelection.assets(*what)
    ALL.append(dg.define_asset_job(name, config=config, selection=selection, description=description))
    return ALL[-1]


_DATASET = (
    transfers.model_transfer__adapted,
    transfers.eval_dataset__verdicts,
    transfers.eval_dataset__scores,
    transfers.out_report__dataset,
)

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
train_encoder_job = _job(
    "train_encoder", [models.ENCODER], "Train the encoder of RAJAPerf results and describe all machines by it"
)
train_source_job = _job(
    "train_sources",
    [models.train_source_models, models.model_source__inputs, models.out_amm__machines],
    "Train and register the source models, make the inputs of downstream models, and draw the machines",
)
adapt_machine_job = _job(
    "adapt_machine", _ADAPTATION, "Adapt, register, judge and score the target model of a machine, write its page"
)
score_all_pairs_job = _job(
    "evaluate_pairs", [pair_matrix.eval_transfer__matrix], "Score target models for all ordered pairs of machines"
)
train_vector_job = _job(
    "train_vectors",
    [vectors.model_vector__relative, vectors.eval_vector__verdicts],
    "Train the model of relative-performance vectors (retrain: true), or let machines join it; register and judge it",
)
score_vectors_job = _job(
    "evaluate_vectors",
    [vectors.score_vectors],
    "Score relative-performance vectors beside their baselines, and a fleet that grows",
)
evaluate_xamm_job = _job(
    "evaluate_xamm",
    [evaluation.eval_xamm__scores, evaluation.eval_xamm__embeddings, evaluation.eval_xamm__report],
    "Run the xAMM experiments and write their page",
)
train_and_evaluate_job = _job(
    "train_and_evaluate",
    [
        models.ENCODER,
        models.train_source_models,
        models.model_source__inputs,
        pair_matrix.eval_transfer__matrix,
        evaluation.eval_xamm__scores,
        evaluation.eval_xamm__embeddings,
        evaluation.eval_xamm__report,
        transfers.eval_modelx__table,
        vectors.model_vector__relative,
        vectors.eval_vector__verdicts,
    ],
    "Train the encoder, describe all machines, train source and vector models, and evaluate all methods",
    {"ops": {"model_vector__relative": {"config": {"retrain": True}}}},
)
assemble_dataset_job = _job(
    "assemble_dataset", [transfers.core_datasets__rows], "Put the rows of a dataset together as one plain table"
)
adapt_dataset_job = _job(
    "adapt_dataset",
    _DATASET,
    "Adapt the model of a dataset from the tables of other datasets, register, judge and score it, write its page",
)
make_modelx_table_job = _job(
    "evaluate_modelx", [MODELX_TABLE.name], "Make ModelX's table on the datasets of the lake, and its page"
)
simulate_schedules_job = _job(
    "simulate_schedules",
    [schedule.eval_scaling__widths, schedule.out_schedule__turnaround],
    "Score times at widths that nobody ran, and schedule a job trace with and without predictions",
)
draw_machines_job = _job("report_amms", [models.out_amm__machines], "Write the page of the AMMs of all machines")
write_machine_page_job = _job("report_machine", [targets.out_report__machine], "Write the page of a machine")
write_fleet_page_job = _job("report_fleet", [fleet.out_report__fleet], "Write the page of the fleet")


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
    job=write_fleet_page_job,
    cron_schedule="0 5 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every night at 5: the page of the fleet, on which machines grow stale by time alone",
)
weekly_training = dg.ScheduleDefinition(
    name="weekly_training",
    job=train_and_evaluate_job,
    run_config={"ops": {"model_vector__relative": {"config": {"retrain": True}}}},
    cron_schedule="0 3 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every Sunday at 3: train encoder, source models and vector model anew, evaluate all methods",
)
