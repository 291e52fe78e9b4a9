"""What happens by the clock: nightly what the sensor missed, weekly training and evaluation."""

import dagster as dg

from perf_assets.defs.jobs import refresh_machine_job, train_and_evaluate_job, write_fleet_page_job
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.workflows.landing.ingest import needs_work


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
