"""Jobs: what a landing starts, what the schedules start, and what commands run."""

from collections.abc import Sequence

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from perf_assets.core.tables.models import AMMS
from perf_assets.defs.reports import fleet
from perf_assets.defs.scheduling import assets as schedule
from perf_assets.defs.sources import assets as models
from perf_assets.defs.sources import evaluation
from perf_assets.defs.targets import assets as targets
from perf_assets.defs.targets import pairs as matrix
from perf_assets.defs.vectors import assets as vectors

_ADAPTATION = (targets.adapt_machine, targets.judge_machine, targets.score_machine, targets.write_machine_page)
_INGESTION = dg.AssetSelection.groups("landing", "raw", "core") | dg.AssetSelection.assets(AMMS.name)


def _job(
    name: str,
    what: dg.AssetSelection | Sequence[dg.AssetsDefinition | str],
    description: str,
) -> UnresolvedAssetJobDefinition:
    return dg.define_asset_job(
        name,
        selection=what if isinstance(what, dg.AssetSelection) else dg.AssetSelection.assets(*what),
        description=description,
    )


ingest_machine_job = _job(
    "ingest_machine",
    _INGESTION,
    "Read what landed for a machine, check it, load it into the warehouse, derive its features and its AMM",
)
refresh_machine_job = _job(
    "refresh_machine",
    _INGESTION | dg.AssetSelection.assets(*_ADAPTATION),
    "All that follows from what landed for a machine: tables, features, AMM, target model, verdict, scores, page",
)
train_encoder_job = _job(
    "train_amm_encoder_job", [models.ENCODER], "Train the encoder of RAJAPerf results and describe all machines by it"
)
describe_machine_job = _job("describe_machine_job", [AMMS.name], "Describe a machine by the frozen encoders in use")
train_source_job = _job(
    "train_source_job",
    [models.train_source_models, models.make_model_inputs, models.draw_machines],
    "Train and register the source models, make the inputs of downstream models, and draw the machines",
)
adapt_machine_job = _job(
    "adapt_machine_job", _ADAPTATION, "Adapt, judge, score and register the target model of a machine, write its page"
)
score_all_pairs_job = _job(
    "score_all_pairs_job", [matrix.score_all_pairs], "Score target models for all ordered pairs of machines"
)
train_vector_job = _job(
    "train_vector_job",
    [vectors.train_vector_model],
    "Train and register the model of relative-performance vectors",
)
score_vectors_job = _job(
    "score_vectors_job",
    [vectors.score_vectors],
    "Score relative-performance vectors beside their baselines, and a fleet that grows",
)
evaluate_xamm_job = _job(
    "evaluate_xamm_job",
    [evaluation.run_xamm_experiments, evaluation.draw_xamm_embeddings, evaluation.write_xamm_report],
    "Run the xAMM experiments and write their page",
)
train_and_evaluate_job = _job(
    "train_and_evaluate",
    [
        models.ENCODER,
        models.train_source_models,
        models.make_model_inputs,
        matrix.score_all_pairs,
        evaluation.run_xamm_experiments,
        evaluation.draw_xamm_embeddings,
        evaluation.write_xamm_report,
    ],
    "Train the encoder, describe all machines, train the source models and evaluate all methods",
)
simulate_schedules_job = _job(
    "simulate_schedules_job", [schedule.simulate_schedules], "Schedule a job trace with and without predictions"
)
draw_machines_job = _job("draw_machines_job", [models.draw_machines], "Write the page of the AMMs of all machines")
write_machine_page_job = _job("write_machine_page_job", [targets.write_machine_page], "Write the page of a machine")
write_fleet_page_job = _job("write_fleet_page_job", [fleet.write_fleet_page], "Write the page of the fleet")
ALL = (
    ingest_machine_job,
    refresh_machine_job,
    train_encoder_job,
    describe_machine_job,
    train_source_job,
    adapt_machine_job,
    score_all_pairs_job,
    evaluate_xamm_job,
    train_vector_job,
    score_vectors_job,
    train_and_evaluate_job,
    simulate_schedules_job,
    draw_machines_job,
    write_machine_page_job,
    write_fleet_page_job,
)
