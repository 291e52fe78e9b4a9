"""The sensor that tells people what went wrong: runs, blocking checks, drift, stale machines, disks."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from perf_assets.core.addresses import noted_addresses
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import dagster_home
from perf_assets.core.site import load_site
from perf_assets.defs.resources import LakeResource
from perf_assets.workflows.operate.alerts import Alert, AlertLog, channels_of, full_disks

_TOLD_CHECKS = {
    "champion_holds": "has drifted",
    "machines_are_fresh": "machines were not measured for long",
    "performs_as_before": "performs otherwise than before",
}
"""Checks that block nothing, but cause alerts."""
_RUNS_PER_TICK = 200
_OVERLAP_SECONDS = 120.0
"""Runs that ended so long before the last tick are looked at again: one may have been noted late."""
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]


@dataclass
class _Memory:
    """State of the sensor between its ticks."""

    begun: float
    """Time from which on somebody receives alerts: runs that ended earlier cause none."""
    until: float
    seen: list[str] = field(default_factory=list)
    """Runs that ended lately and were looked at."""
    log: AlertLog = field(default_factory=AlertLog)

    @classmethod
    def read(cls, text: str | None, now: float) -> "_Memory":
        """Stored state; a new sensor begins with the events from now on."""
        if not text:
            return cls(now, now)
        known = json.loads(text)
        return cls(known["begun"], known["until"], known["seen"], AlertLog.of(known["log"]))

    def text(self) -> str:
        return json.dumps({"begun": self.begun, "until": self.until, "seen": self.seen, "log": self.log.document()})


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells people, as site.yaml says, of failed runs and blocking checks, drift, stale machines and disks",
)
def alert_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Look at the runs that ended since the last tick, and at the disks; send one alert per problem."""
    memory = _Memory.read(context.cursor, time.time())
    try:
        settings = load_site(lake.lake().root).alerts
    except BadInputError as error:
        context.log.error(str(error))
        return dg.SensorResult(skip_reason=str(error), cursor=memory.text())
    if not channels_of(settings):
        return dg.SensorResult(skip_reason="site.yaml names nobody to tell", cursor="")
    wrong, right = full_disks((lake.lake().root, dagster_home()), settings)
    for record in _ended_since(context.instance, memory):
        for alert, is_wrong in _of_run(context.instance, record.dagster_run):
            if is_wrong:
                wrong.append(alert)
            else:
                right.append(alert.key)
                wrong = [before for before in wrong if before.key != alert.key]
    memory.log.settle(right)
    new = memory.log.note(wrong, settings, time.time())
    problems = memory.log.deliver(settings)
    for problem in problems:
        context.log.error(problem)
    reason = "; ".join(problems) or (f"told of {len(new)}: {new[0].line}" if new else "nothing new to tell")
    return dg.SensorResult(skip_reason=reason, cursor=memory.text())


def _ended_since(instance: dg.DagsterInstance, memory: _Memory) -> Iterator[dg.RunRecord]:
    """Runs that ended since the last tick, oldest first; the memory is brought up to them."""
    since = datetime.fromtimestamp(max(memory.begun, memory.until - _OVERLAP_SECONDS), UTC)
    begun, seen = time.time(), []
    records = instance.get_run_records(
        dg.RunsFilter(statuses=_ENDED, updated_after=since),
        limit=_RUNS_PER_TICK,
        order_by="update_timestamp",
        ascending=True,
    )
    for record in records:
        seen.append(record.dagster_run.run_id)
        if record.dagster_run.run_id not in memory.seen:
            yield record
    is_all = len(records) < _RUNS_PER_TICK
    memory.until = begun if is_all else records[-1].update_timestamp.timestamp() + _OVERLAP_SECONDS
    memory.seen = seen


def _of_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[tuple[Alert, bool]]:
    """Alerts that follow from a run, each with whether something is wrong now."""
    partition = run.tags.get("dagster/partition", "")
    of, link = f" of {partition}" if partition else "", noted_addresses().run(run.run_id)
    has_failed = run.status == dg.DagsterRunStatus.FAILURE
    yield (
        Alert(f"run:{run.job_name}:{partition}", f"the run {run.job_name}{of} failed", _why(instance, run), link),
        has_failed,
    )
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
        evaluation = entry.dagster_event and entry.dagster_event.asset_check_evaluation_data
        if evaluation is None or not (evaluation.blocking or evaluation.check_name in _TOLD_CHECKS):
            continue
        asset = evaluation.asset_key.to_user_string()
        where = evaluation.partition or partition
        what = _TOLD_CHECKS.get(evaluation.check_name)
        title = f"{where} {what}".strip() if what else f"the check {evaluation.check_name} of {asset} failed"
        key = f"check:{evaluation.check_name}:{asset}:{where}"
        why = f"{asset} {where}".strip() if what is None else evaluation.description or ""
        yield Alert(key, title, why, link), not evaluation.passed


def _why(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Message of a failed run in one line."""
    if run.status != dg.DagsterRunStatus.FAILURE:
        return ""
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        error = entry.dagster_event.step_failure_data.error if entry.dagster_event else None
        while error is not None and error.cause is not None:
            error = error.cause
        if error is not None:
            return " ".join(error.message.split())
    return ""
