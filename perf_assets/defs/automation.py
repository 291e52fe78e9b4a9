"""What starts ingestion: a sensor on the landing zone, and a nightly look for what it missed."""

import json

import dagster as dg

from perf_assets.core.manifest import digest_of
from perf_assets.core.model_tables import AMMS
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.ingest import needs_work, pending
from perf_assets.storage.lake import Lake, landed_digests
from perf_assets.storage.quarantine import quarantine_strays
from perf_assets.storage.record import MachineRecord

ingest_machine_job = dg.define_asset_job(
    "ingest_machine",
    selection=dg.AssetSelection.groups("raw", "core") | dg.AssetSelection.assets(AMMS.name),
    # Its steps take a second or two each; a process for every step would cost four.
    executor_def=dg.in_process_executor,
    description="Read what landed for a machine, check it, load it into the warehouse, derive its features and its AMM",
)


@dg.sensor(
    job=ingest_machine_job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts ingestion of each machine whose landing zone has new content",
)
def landing_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Compare the content of the landing zone, machine by machine, with the last tick's."""
    seen: dict[str, str] = json.loads(context.cursor)["digests"] if context.cursor else {}
    for line in quarantine_strays(lake.lake()):
        context.log.warning(line)
    now = {machine: _landed_digest(lake, machine) for machine in lake.lake().machines()}
    changed = [machine for machine in now if now[machine] != seen.get(machine)]
    wanted = [machine for machine in changed if pending(lake.lake(), machine).new_count]
    cursor = json.dumps({"version": 1, "digests": now})
    if not wanted:
        reason = f"nothing new: {len(now)} machines in the landing zone, {len(changed)} changed and already ingested"
        return dg.SensorResult(skip_reason=reason, cursor=cursor)
    new = sorted(set(wanted) - set(machines.get_partition_keys(dynamic_partitions_store=context.instance)))
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=_run_key(lake.lake(), machine, now[machine]), partition_key=machine)
            for machine in wanted
        ],
        dynamic_partitions_requests=[machines.build_add_request(new)] if new else [],
        cursor=cursor,
    )


@dg.schedule(
    job=ingest_machine_job,
    cron_schedule="0 2 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Ingests every night what the sensor missed, and refused bundles whose files were mended",
)
def nightly_ingestion(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for a run of each machine with bundles that are not in its record, or a record that is not loaded."""
    warehouse = lake.warehouse()
    behind = [machine for machine in lake.lake().machines() if needs_work(lake.lake(), warehouse, machine)]
    if not behind:
        return dg.SkipReason("every landed bundle is in the record and in the warehouse")
    context.instance.add_dynamic_partitions(machines.name or "", behind)
    return [dg.RunRequest(partition_key=machine) for machine in behind]


def _run_key(lake: Lake, machine: str, landed_digest: str) -> str:
    """What is to be ingested on top of what: content that comes back after another is asked for again."""
    return f"{machine}:{landed_digest[:16]}:{MachineRecord(lake.record, machine).digest()[:16]}"


def _landed_digest(lake: LakeResource, machine: str) -> str:
    return digest_of(repr(list(landed_digests(lake.lake(), machine))).encode())
