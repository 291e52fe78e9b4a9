"""The landing sensor: asks for one run per machine whose landing zone has new content, and again where one failed."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import dagster as dg

from perf_assets.core.manifest import digest_of
from perf_assets.defs.jobs import refresh_machine_job
from perf_assets.defs.operate.dead_runs import end_dead_runs
from perf_assets.defs.partitions import datasets, machines
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.lake import Lake, landed_digests
from perf_assets.storage.landing import landed_datasets, landing_seconds
from perf_assets.storage.quarantine import quarantine_strays
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.landing.ingest import pending

PARTITION_NAME_TAG = "dagster/partition"
"""Tag in which Dagster keeps a run's partition."""
_NOT_BEGUN = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
_MOST_RETRIES = 3
_RETRY_SECONDS = 60.0
"""After a failed run until the next; doubled every time."""


@dataclass(frozen=True)
class TickLimits:
    """Limits of one tick; the next tick goes on with the machines that are left."""

    bundles: int = 20_000
    """Manifests that are looked at."""
    runs: int = 20
    """Runs that are asked for."""


@dataclass
class _LandingCursor:
    """Memory of the sensor between its ticks: one digest per machine, little else."""

    digests: dict[str, str] = field(default_factory=dict)
    """Content of each machine's landing zone when it was last dealt with."""
    asked: dict[str, int] = field(default_factory=dict)
    """Machines whose run is not known to have succeeded, with the number of retries."""
    after: str = ""
    """Machine that the last tick ended with."""

    @classmethod
    def read(cls, text: str | None) -> "_LandingCursor":
        known = json.loads(text) if text else {}
        return cls(known.get("digests", {}), known.get("asked", {}), known.get("after", ""))

    def text(self) -> str:
        return json.dumps({"version": 2, "digests": self.digests, "asked": self.asked, "after": self.after})


@dg.sensor(
    job=refresh_machine_job,
    minimum_interval_seconds=landing_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a run for each machine whose landing zone has new content, and again after a failure",
)
def landing_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Compare the content of the landing zone, machine by machine, with what was dealt with."""
    return look(context, lake, TickLimits())


def look(context: dg.SensorEvaluationContext, lake: LakeResource, limits: TickLimits) -> dg.SensorResult:
    """Request runs of machines with new content, up to the limits of one tick; the next tick goes on from there."""
    for run_id in end_dead_runs(context.instance):
        context.log.warning(f"run {run_id[:8]} had lost its process and was ended")
    for line in quarantine_strays(lake.lake()):
        context.log.warning(line)
    cursor = _LandingCursor.read(context.cursor)
    requests = dict(again(context, cursor.asked, refresh_machine_job.name))
    looked_at = 0
    to_begin = not_begun(context.instance, refresh_machine_job.name)
    for machine, digest in _machines_of_this_tick(lake.lake(), cursor, limits.bundles):
        looked_at += 1
        if digest != cursor.digests.get(machine) and machine not in to_begin:
            if pending(lake.lake(), machine).new_count:
                if len(requests) >= limits.runs:
                    break
                requests[machine] = _run_key(lake.lake(), machine, digest)
                cursor.asked[machine] = 0
            cursor.digests[machine] = digest
        cursor.after = machine
    if not requests:
        waiting = f", waiting for {', '.join(sorted(cursor.asked))}" if cursor.asked else ""
        reason = f"nothing new for {looked_at} machines in the landing zone{waiting}"
        return dg.SensorResult(skip_reason=reason, cursor=cursor.text())
    named = {name for machine in requests for name in landed_datasets(lake.lake(), machine)}
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=key, partition_key=machine) for machine, key in sorted(requests.items())],
        dynamic_partitions_requests=[
            *add_requests(context.instance, machines, set(requests)),
            *add_requests(context.instance, datasets, named),
        ],
        cursor=cursor.text(),
    )


def add_requests(
    instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, wanted: set[str]
) -> list[dg.AddDynamicPartitionsRequest]:
    """Request that adds the partitions that are not there yet; none where all are."""
    new = sorted(wanted - set(partitions.get_partition_keys(dynamic_partitions_store=instance)))
    return [partitions.build_add_request(new)] if new else []


def not_begun(instance: dg.DagsterInstance, job_name: str) -> set[str]:
    """Partitions with a run that has not begun: it will find what landed meanwhile, and more would only queue."""
    filters = dg.RunsFilter(job_name=job_name, statuses=_NOT_BEGUN)
    return {run.tags.get(PARTITION_NAME_TAG, "") for run in instance.get_runs(filters)}


def _machines_of_this_tick(lake: Lake, cursor: _LandingCursor, most_bundles: int) -> Iterator[tuple[str, str]]:
    """Machines with the digest of their landing zone, from where the last tick ended, up to the limits of one tick."""
    every = lake.machines()
    cursor.digests = {machine: digest for machine, digest in cursor.digests.items() if machine in every}
    ordered = [machine for machine in every if machine > cursor.after]
    ordered += [machine for machine in every if machine <= cursor.after]
    bundles = 0
    for machine in ordered:
        if bundles >= most_bundles:
            return
        landed = list(landed_digests(lake, machine))
        bundles += len(landed)
        yield machine, digest_of(repr(landed).encode())


def again(context: dg.SensorEvaluationContext, asked: dict[str, int], job_name: str) -> Iterator[tuple[str, str]]:
    """Partitions whose last run failed a while ago, with the key of the next; those that are done are forgotten.

    `asked` holds those whose run is not known to have succeeded, with the number of retries.
    """
    for machine, retries in sorted(asked.items()):
        filters = dg.RunsFilter(job_name=job_name, tags={PARTITION_NAME_TAG: machine})
        record = next(iter(context.instance.get_run_records(filters, limit=1)), None)
        if record is not None and not record.dagster_run.is_finished:
            continue
        if record is None or record.dagster_run.status != dg.DagsterRunStatus.FAILURE:
            del asked[machine]
        elif retries >= _MOST_RETRIES:
            context.log.error(
                f"{machine} failed {retries + 1} times: fix what run {record.dagster_run.run_id[:8]} says, then "
                "re-execute it"
            )
            del asked[machine]
        elif time.time() - (record.end_time or 0.0) >= _RETRY_SECONDS * 2**retries:
            asked[machine] = retries + 1
            yield machine, f"{machine}:after:{record.dagster_run.run_id}"


def _run_key(lake: Lake, machine: str, landed_digest: str) -> str:
    """Key of the landed content and the content before it: content that comes back after another is requested again."""
    return f"{machine}:{landed_digest[:16]}:{MachineRecord(lake.record, machine).digest()[:16]}"
