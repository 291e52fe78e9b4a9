"""Everything Dagster knows of, put together."""

import dagster as dg

from perf_assets.defs import jobs, schedules
from perf_assets.defs import logging as progress
from perf_assets.defs.executor import profile_executor
from perf_assets.defs.ingest import checks, features, raw
from perf_assets.defs.ingest import sensor as landing
from perf_assets.defs.reports import fleet
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.scheduling import assets as schedule
from perf_assets.defs.sources import assets as models
from perf_assets.defs.sources import evaluation
from perf_assets.defs.targets import assets as targets
from perf_assets.defs.targets import checks as model_checks
from perf_assets.defs.targets import pairs as matrix
from perf_assets.defs.vectors import assets as vectors


def build_definitions(lake: LakeResource | None = None) -> dg.Definitions:
    """Definitions over the given lake, or the default one."""
    return dg.Definitions(
        assets=[
            raw.read_bundles,
            raw.load_warehouse,
            features.derive_features,
            models.train_amm_encoder,
            models.describe_machine,
            models.draw_machines,
            models.train_source_models,
            models.make_model_inputs,
            targets.adapt_machine,
            targets.judge_machine,
            targets.score_machine,
            targets.write_machine_page,
            matrix.score_all_pairs,
            evaluation.run_xamm_experiments,
            evaluation.draw_xamm_embeddings,
            evaluation.write_xamm_report,
            fleet.write_fleet_page,
            vectors.train_vector_model,
            vectors.score_vectors,
            schedule.simulate_schedules,
        ],
        asset_checks=[
            checks.check_bundles,
            checks.check_tables,
            checks.check_features,
            model_checks.check_target,
            model_checks.check_fleet,
        ],
        jobs=jobs.ALL,
        sensors=[
            landing.landing_sensor,
            dg.AutomationConditionSensorDefinition(
                "automation_sensor",
                target=dg.AssetSelection.all(),
                default_status=dg.DefaultSensorStatus.RUNNING,
                minimum_interval_seconds=30,
                description="Makes again what follows from something that changed outside of a landing's own run",
            ),
        ],
        schedules=[schedules.nightly_ingestion, schedules.nightly_fleet_page, schedules.weekly_training],
        executor=profile_executor(),
        loggers={"console": dg.colored_console_logger, progress.NAME: progress.progress_logger},
        resources={"lake": lake or LakeResource()},
    )
