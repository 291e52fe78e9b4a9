"""Everything Dagster knows of, put together."""

import dagster as dg

from perf_assets.defs import automation, checks, features, raw
from perf_assets.defs.resources import LakeResource


def build_definitions(lake: LakeResource | None = None) -> dg.Definitions:
    """Definitions over the given lake, or the default one."""
    return dg.Definitions(
        assets=[raw.read_bundles, raw.load_warehouse, features.derive_features],
        asset_checks=[checks.check_bundles, checks.check_tables, checks.check_features],
        jobs=[automation.ingest_machine_job],
        sensors=[automation.landing_sensor],
        schedules=[automation.nightly_ingestion],
        resources={"lake": lake or LakeResource()},
    )
