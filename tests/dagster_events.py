"""Events that Dagster writes for runs that it executes, for runs in tests that nothing executes.

There are no public names for what these events hold.
"""

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from dagster._core.events import AssetMaterializationPlannedData, EngineEventData


def note_process(instance: dg.DagsterInstance, run: dg.DagsterRun, pid: int) -> None:
    """Write the event by which the process of a run is known."""
    instance.report_engine_event("started", run, EngineEventData.in_process(pid))


def plan_asset(instance: dg.DagsterInstance, run: dg.DagsterRun, asset: str, partition: str) -> None:
    """Write the event that a run begins with for each asset that it is to make."""
    planned = AssetMaterializationPlannedData(dg.AssetKey(asset), partition=partition)
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value
    instance.report_dagster_event(dg.DagsterEvent(kind, "", event_specific_data=planned), run.run_id)


def evaluate_checks(
    instance: dg.DagsterInstance, asset: str, partition: str, checks: list[str], *, passed: bool
) -> None:
    """Write the results of checks of what was materialised last, in a run of their own."""
    key = dg.AssetKey(asset)
    filters = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition])
    (made,) = instance.fetch_materializations(filters, limit=1).records
    run = instance.add_run(dg.DagsterRun("checks"))
    about = AssetCheckEvaluationTargetMaterializationData(
        storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp
    )
    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value
    for check in checks:
        found = dg.AssetCheckEvaluation(key, check, passed, {}, about, partition=partition)
        instance.report_dagster_event(dg.DagsterEvent(kind, "checks", event_specific_data=found), run.run_id)
