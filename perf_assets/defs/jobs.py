"""Jobs that make models of the whole fleet; ingestion of a machine is in `automation`."""

import dagster as dg

from perf_assets.core.model_tables import AMMS
from perf_assets.defs import evaluation, models, schedule, targets

train_encoder_job = dg.define_asset_job(
    "train_amm_encoder_job",
    selection=dg.AssetSelection.assets(models.ENCODER),
    executor_def=dg.in_process_executor,
    description="Train the encoder of RAJAPerf results that AMMs are made with",
)
describe_machine_job = dg.define_asset_job(
    "describe_machine_job",
    selection=dg.AssetSelection.assets(AMMS.name),
    executor_def=dg.in_process_executor,
    description="Make the AMM of a machine with the frozen encoder",
)
train_source_job = dg.define_asset_job(
    "train_source_job",
    selection=dg.AssetSelection.assets(models.train_source_models, models.draw_machines),
    executor_def=dg.in_process_executor,
    description="Train and register the source models, and draw the machines",
)
adapt_machine_job = dg.define_asset_job(
    "adapt_machine_job",
    selection=dg.AssetSelection.assets(targets.adapt_machine, targets.score_machine, targets.write_machine_page),
    executor_def=dg.in_process_executor,
    description="Adapt, score and register the target model of a machine, and write its page",
)
score_all_pairs_job = dg.define_asset_job(
    "score_all_pairs_job",
    selection=dg.AssetSelection.assets(targets.score_all_pairs),
    executor_def=dg.in_process_executor,
    description="Score target models for all ordered pairs of machines",
)
evaluate_xamm_job = dg.define_asset_job(
    "evaluate_xamm_job",
    selection=dg.AssetSelection.assets(
        evaluation.run_xamm_experiments, evaluation.draw_xamm_embeddings, evaluation.write_xamm_report
    ),
    executor_def=dg.in_process_executor,
    description="Run the xAMM experiments and write their page",
)
simulate_schedules_job = dg.define_asset_job(
    "simulate_schedules_job",
    selection=dg.AssetSelection.assets(schedule.simulate_schedules),
    executor_def=dg.in_process_executor,
    description="Schedule a job trace with and without predictions",
)
"""Steps of one process: each would import PyTorch again otherwise."""
