"""Everything Dagster knows of, put together."""

import dagster as dg

from perf_assets.defs import automation, checks, evaluation, features, jobs, models, progress, raw, schedule, targets
from perf_assets.defs.resources import LakeResource


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
            targets.adapt_machine,
            targets.score_machine,
            targets.write_machine_page,
            targets.score_all_pairs,
            evaluation.run_xamm_experiments,
            evaluation.draw_xamm_embeddings,
            evaluation.write_xamm_report,
            schedule.simulate_schedules,
        ],
        asset_checks=[checks.check_bundles, checks.check_tables, checks.check_features],
        jobs=[
            automation.ingest_machine_job,
            jobs.train_encoder_job,
            jobs.describe_machine_job,
            jobs.train_source_job,
            jobs.adapt_machine_job,
            jobs.evaluate_xamm_job,
            jobs.score_all_pairs_job,
            jobs.simulate_schedules_job,
        ],
        sensors=[automation.landing_sensor],
        schedules=[automation.nightly_ingestion],
        loggers={"console": dg.colored_console_logger, progress.NAME: progress.progress_logger},
        resources={"lake": lake or LakeResource()},
    )
