"""Automatic models of datasets: a sensor for datasets whose rows changed, a schedule for all."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import dagster as dg

from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.defs.ingest.sensor import add_requests, again
from perf_assets.defs.jobs import adapt_dataset_job, assemble_dataset_job
from perf_assets.defs.partitions import datasets
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.datasets import dataset_digests, stored_names
from perf_assets.storage.landing import landing_seconds

_RUNS_PER_TICK = 20
_WAIT_SECONDS = 5.0
"""Seconds to wait for a warehouse that is being written: the next tick comes soon."""
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


@dataclass
class _DatasetCursor:
    """State of the sensor: mainly one digest per dataset."""

    assembled: dict[str, str] = field(default_factory=dict)
    """Rows of each dataset when its table was last asked for."""
    adapted: dict[str, str] = field(default_factory=dict)
    """Rows of each dataset when its model was last asked for, and whether there was another to adapt it from."""
    assembling: dict[str, int] = field(default_factory=dict)
    """Datasets whose table is not known to be there, with the number of retries."""
    adapting: dict[str, int] = field(default_factory=dict)
    """Datasets whose model is not known to be there, with the number of retries."""
    count: int = 0
    """Number of changes: content that comes back is requested again."""

    @classmethod
    def read(cls, text: str | None) -> "_DatasetCursor":
        return cls(**json.loads(text)) if text else cls()

    def text(self) -> str:
        return json.dumps(asdict(self))

    def changed(
        self, state: dict[str, str], before: dict[str, str], asked: dict[str, int]
    ) -> Iterator[tuple[str, str]]:
        """Datasets whose state has changed, with the key of a run; they count as requested."""
        for name in [name for name in before if name not in state]:
            del before[name]
        for name in [name for name in sorted(state) if state[name] != before.get(name)][:_RUNS_PER_TICK]:
            self.count += 1
            before[name], asked[name] = state[name], 0
            yield name, f"{name}:{state[name][:16]}:{self.count}"


@dg.sensor(
    jobs=[assemble_dataset_job, adapt_dataset_job],
    minimum_interval_seconds=landing_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Puts together the table of each dataset whose rows changed in the warehouse, then adapts its model",
)
def dataset_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Compare the rows of each dataset in the warehouse with the rows of the last requested runs.

    Tables come first, so that datasets that land together are sources of each other. As sources, datasets come in with
    the next run of a model, at the latest with the weekly one: what lands for one does not make the models of all
    others again. But a dataset that was alone waits for a second one.
    """
    cursor = _DatasetCursor.read(context.cursor)
    try:
        present = dataset_digests(lake.warehouse(_WAIT_SECONDS))
    except BusyError as error:
        return dg.SensorResult(skip_reason=str(error), cursor=cursor.text())
    except BadInputError:
        return dg.SensorResult(skip_reason="nothing is ingested yet", cursor=cursor.text())
    job = assemble_dataset_job.name
    requests = dict(again(context, cursor.assembling, job))
    requests |= dict(cursor.changed(present, cursor.assembled, cursor.assembling))
    if not requests:
        if context.instance.get_runs_count(dg.RunsFilter(job_name=job, statuses=_UNFINISHED)):
            return dg.SensorResult(skip_reason="tables are being put together", cursor=cursor.text())
        job = adapt_dataset_job.name
        stored = stored_names(lake.lake())
        state = {
            name: f"{present[name]} {'alone' if len(stored) == 1 else 'of several'}"
            for name in stored
            if name in present
        }
        requests = dict(again(context, cursor.adapting, job))
        requests |= dict(cursor.changed(state, cursor.adapted, cursor.adapting))
    if not requests:
        return dg.SensorResult(skip_reason=f"nothing new in {len(present)} datasets", cursor=cursor.text())
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{job}:{key}", job_name=job, partition_key=name)
            for name, key in sorted(requests.items())
        ],
        dynamic_partitions_requests=add_requests(context.instance, datasets, set(requests)),
        cursor=cursor.text(),
    )


@dg.schedule(
    job=adapt_dataset_job,
    cron_schedule="0 4 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every Sunday at 4: all datasets are adapted from what the others are by then",
)
def weekly_datasets(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for the model of each dataset that has a table."""
    names = stored_names(lake.lake())
    if not names:
        return dg.SkipReason("no table of samples is in the lake")
    context.instance.add_dynamic_partitions(datasets.name or "", names)
    return [dg.RunRequest(partition_key=name) for name in names]
