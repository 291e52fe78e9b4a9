"""When models of datasets are made by themselves: a sensor for datasets whose rows changed, a schedule for all."""

import json
from dataclasses import dataclass, field

import dagster as dg

from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.defs.jobs import refresh_dataset_job
from perf_assets.defs.landing import add_requests, again, not_begun
from perf_assets.defs.partitions import datasets
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.datasets import dataset_digests

_RUNS_PER_TICK = 20
_WAIT_SECONDS = 5.0
"""For a warehouse that is being written: the next tick comes soon."""


@dataclass
class _Cursor:
    """What the sensor remembers: one digest per dataset, little else."""

    digests: dict[str, str] = field(default_factory=dict)
    """Rows of each dataset when a run was last asked for, and whether there was another to adapt it from."""
    asked: dict[str, int] = field(default_factory=dict)
    """Datasets whose run is not known to have succeeded, with the number of retries."""
    count: int = 0
    """Changes so far: content that comes back is asked for again."""

    @classmethod
    def read(cls, text: str | None) -> "_Cursor":
        known = json.loads(text) if text else {}
        return cls(known.get("digests", {}), known.get("asked", {}), known.get("count", 0))

    def text(self) -> str:
        return json.dumps({"version": 1, "digests": self.digests, "asked": self.asked, "count": self.count})


@dg.sensor(
    job=refresh_dataset_job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adapts the model of each dataset whose rows changed in the warehouse, and again after a failure",
)
def dataset_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Compare the rows of each dataset in the warehouse with those that a run was asked for.

    Other datasets, as sources, come in with the next run of a dataset, at the latest with the weekly one: what lands
    for one does not make the models of all others again. But a dataset that was alone waits for a second one.
    """
    cursor = _Cursor.read(context.cursor)
    try:
        present = dataset_digests(lake.warehouse(_WAIT_SECONDS))
    except BusyError as error:
        return dg.SensorResult(skip_reason=f"{error}", cursor=cursor.text())
    except BadInputError:
        return dg.SensorResult(skip_reason="nothing is ingested yet", cursor=cursor.text())
    state = {name: f"{digest} {'alone' if len(present) == 1 else 'of several'}" for name, digest in present.items()}
    requests = dict(again(context, cursor.asked, refresh_dataset_job.name))
    waiting = not_begun(context.instance, refresh_dataset_job.name)
    cursor.digests = {name: digest for name, digest in cursor.digests.items() if name in state}
    for name, digest in sorted(state.items()):
        if digest != cursor.digests.get(name) and name not in waiting and len(requests) < _RUNS_PER_TICK:
            cursor.count += 1
            requests[name] = f"{name}:{digest[:16]}:{cursor.count}"
            cursor.digests[name], cursor.asked[name] = digest, 0
    if not requests:
        return dg.SensorResult(skip_reason=f"nothing new in {len(state)} datasets", cursor=cursor.text())
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=key, partition_key=name) for name, key in sorted(requests.items())],
        dynamic_partitions_requests=add_requests(context.instance, datasets, set(requests)),
        cursor=cursor.text(),
    )


@dg.schedule(
    job=refresh_dataset_job,
    cron_schedule="0 4 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every Sunday at 4: all datasets are adapted from what the others are by then",
)
def weekly_datasets(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for a run of each dataset."""
    try:
        names = sorted(dataset_digests(lake.warehouse()))
    except BadInputError as error:
        return dg.SkipReason(str(error))
    if not names:
        return dg.SkipReason("no table of samples is in the lake")
    context.instance.add_dynamic_partitions(datasets.name or "", names)
    return [dg.RunRequest(partition_key=name) for name in names]
