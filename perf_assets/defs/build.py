"""Everything Dagster knows of, put together."""

import dagster as dg

from perf_assets.core.errors import BadInputError
from perf_assets.core.site import Site, load_site
from perf_assets.defs import jobs
from perf_assets.defs import logging as progress
from perf_assets.defs.code_versions import with_code_version
from perf_assets.defs.ingest import checks, features, health, raw
from perf_assets.defs.ingest import sensor as landing
from perf_assets.defs.machines import assets as machine_models
from perf_assets.defs.operate import alerts
from perf_assets.defs.reports import fleet
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.scheduling import assets as schedule
from perf_assets.defs.sources import assets as sources
from perf_assets.defs.sources import evaluation
from perf_assets.defs.targets import assets as targets
from perf_assets.defs.targets import pair_matrix
from perf_assets.defs.transfers import assets as transfers
from perf_assets.defs.transfers import automation as transfer_automation
from perf_assets.defs.vectors import assets as vectors
from perf_assets.infra.profile import InProcessProfile, MultiprocessProfile, current_profile
from perf_assets.infra.threads import process_count
from perf_assets.storage.landing import landing_seconds

_ASSETS = (
    raw,
    features,
    health,
    machine_models,
    sources,
    evaluation,
    targets,
    pair_matrix,
    transfers,
    vectors,
    schedule,
    fleet,
)
"""Modules that make assets, and checks of them."""


def build_definitions(lake: LakeResource | None = None, *, is_part: bool = False) -> dg.Definitions:
    """Definitions over the given lake, or the default one.

    Those that are part of another project leave executor and loggers to it.
    """
    resource = lake or LakeResource()
    owners = _owners(resource)
    assets = [
        with_code_version(asset, module.__name__).map_asset_specs(lambda spec: spec.replace_attributes(owners=owners))
        for module in _ASSETS
        for asset in dg.load_assets_from_modules([module])
        if isinstance(asset, dg.AssetsDefinition)
    ]
    return dg.Definitions(
        assets=assets,
        asset_checks=dg.load_asset_checks_from_modules([checks, *_ASSETS]),
        jobs=jobs.ALL,
        sensors=[
            landing.landing_sensor,
            transfer_automation.dataset_sensor,
            alerts.alert_sensor,
            dg.AutomationConditionSensorDefinition(
                "automation_sensor",
                target=dg.AssetSelection.assets(*(key for asset in assets for key in asset.keys)),
                default_status=dg.DefaultSensorStatus.RUNNING,
                minimum_interval_seconds=landing_seconds(),
                description="Makes assets again whose inputs changed outside of a landing's own run",
            ),
        ],
        schedules=[
            jobs.nightly_ingestion,
            jobs.nightly_fleet_page,
            jobs.weekly_training,
            jobs.weekly_evaluation,
            transfer_automation.weekly_datasets,
        ],
        executor=None if is_part else profile_executor(),
        loggers=None if is_part else {"console": dg.colored_console_logger, progress.NAME: progress.progress_logger},
        resources={"lake": resource},
    )


def _owners(lake: LakeResource) -> list[str]:
    """Owners that site.yaml names; those of a site that names none where the file is wrong, which others say."""
    try:
        return list(load_site(lake.lake().root).owners)
    except BadInputError:
        return list(Site().owners)


def profile_executor() -> dg.ExecutorDefinition:
    """The executor of all jobs that Dagster launches; commands run steps in their own process."""
    profile = current_profile()
    if isinstance(profile, InProcessProfile):
        return dg.in_process_executor
    if isinstance(profile, MultiprocessProfile):
        settings = {"max_concurrent": process_count(profile.processes)}
        return dg.multiprocess_executor.configured(settings, name="multiprocess")
    try:
        from dagster_dask import dask_executor

        from perf_assets.infra.clusters import dask_arguments
    except ImportError as error:
        raise BadInputError(f"the profile needs Dask ({error}): pip install 'perf_assets[cluster]'") from None
    kind, arguments = dask_arguments(profile)
    executor: dg.ExecutorDefinition = dask_executor.configured({"cluster": {kind: arguments}}, name="dask")
    return executor
