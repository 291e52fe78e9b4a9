"""The landing sensor asks for each new content once, and says why when it asks for nothing."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.defs.ingest import sensor as landing
from perf_assets.defs.ingest.sensor import TickLimits, landing_sensor, look
from perf_assets.defs.jobs import nightly_ingestion, refresh_machine_job
from perf_assets.defs.operate.dead_runs import PROCESS_TAG
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import LANDING_SECONDS, landing_seconds
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.dagster_events import note_process
from tests.defs.conftest import land_perf_stat, spoil

pytestmark = pytest.mark.slow


@pytest.fixture
def instance(kept_instance: dg.DagsterInstance) -> dg.DagsterInstance:
    """One that schedules and the end of dead runs find in other processes."""
    return kept_instance


@pytest.fixture
def tick(instance: dg.DagsterInstance, lake_resource: LakeResource):
    """Evaluate the sensor with the cursor of the tick before; partitions it asks for are added."""
    cursor: list[str | None] = [None]

    def evaluate(limits: TickLimits | None = None) -> dg.SensorResult:
        context = dg.build_sensor_context(instance, cursor=cursor[0], resources={"lake": lake_resource})
        result = landing_sensor(context) if limits is None else look(context, lake_resource, limits)
        assert isinstance(result, dg.SensorResult)
        cursor[0] = result.cursor
        for request in result.dynamic_partitions_requests or []:
            instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return result

    return evaluate


def requested(result: dg.SensorResult) -> list[str]:
    return [str(request.partition_key) for request in result.run_requests or []]


def added(result: dg.SensorResult) -> list[str]:
    return [key for request in result.dynamic_partitions_requests or [] for key in request.partition_keys]


def test_an_empty_landing_zone_is_skipped_with_a_reason(tick) -> None:
    result = tick()
    assert "nothing new for 0 machines" in str(result.skip_reason)


def test_the_first_bundle_adds_its_machine_and_asks_for_a_run(tick, lake: Lake) -> None:
    land_perf_stat(lake, "quartz", "b1", 1)
    result = tick()
    assert (requested(result), added(result)) == (["quartz"], ["quartz"])
    assert (result.run_requests or [])[0].run_key.startswith("quartz:")
    assert set(json.loads(result.cursor or "")["digests"]) == {"quartz"}
    assert requested(tick()) == []


def test_only_what_changed_is_asked_for(tick, lake: Lake) -> None:
    land_perf_stat(lake, "quartz", "b1", 1)
    land_perf_stat(lake, "ruby", "b1", 1)
    first = tick()
    assert requested(first) == ["quartz", "ruby"]
    land_perf_stat(lake, "ruby", "b2", 2)
    second = tick()
    assert (requested(second), added(second)) == (["ruby"], [])
    land_perf_stat(lake, "ruby", "b2", 2)
    assert requested(tick()) == []
    land_perf_stat(lake, "ruby", "b2", 3)
    third = tick()
    assert requested(third) == ["ruby"]
    keys = {request.run_key for result in (first, second, third) for request in result.run_requests or []}
    assert len(keys) == 4


def test_a_machine_whose_run_has_not_begun_is_not_asked_for_again(
    tick, instance: dg.DagsterInstance, lake: Lake
) -> None:
    """Else a machine that lands all the time would fill the queue faster than runs end."""
    land_perf_stat(lake, "quartz", "b1", 1)
    assert requested(tick()) == ["quartz"]
    queued = instance.add_run(
        dg.DagsterRun(
            refresh_machine_job.name, status=dg.DagsterRunStatus.NOT_STARTED, tags={"dagster/partition": "quartz"}
        )
    )
    land_perf_stat(lake, "quartz", "b2", 2)
    land_perf_stat(lake, "ruby", "b1", 1)
    assert requested(tick()) == ["ruby"]
    instance.report_run_canceled(queued)
    assert requested(tick()) == ["quartz"]


def test_content_that_comes_back_is_asked_for_again(tick, lake: Lake) -> None:
    keys = []
    for value in (1, 2, 1):
        land_perf_stat(lake, "quartz", "b1", value)
        (request,) = tick().run_requests or []
        keys.append(request.run_key)
        ingest_machine(lake, "quartz", read_bundle)
    assert len(set(keys)) == 3


def test_what_is_ingested_already_is_not_asked_for(tick, lake: Lake) -> None:
    land_perf_stat(lake, "quartz", "b1", 1)
    ingest_machine(lake, "quartz", read_bundle)
    result = tick()
    assert requested(result) == []
    assert "nothing new for 1 machines" in str(result.skip_reason)


def test_a_half_landed_bundle_waits_for_its_manifest(tick, lake: Lake) -> None:
    bundle = land_perf_stat(lake, "quartz", "b1", 1).bundle
    manifest = bundle.directory / "manifest.json"
    hidden = manifest.rename(bundle.directory / ".manifest.json.part")
    assert requested(tick()) == []
    hidden.rename(manifest)
    assert requested(tick()) == ["quartz"]


def test_a_thousand_new_bundles_with_a_corrupt_one_are_one_run(tick, lake: Lake) -> None:
    for number in range(1000):
        landed = land_perf_stat(lake, "quartz", f"b{number}", number)
    spoil(landed)
    result = tick()
    assert (requested(result), added(result)) == (["quartz"], ["quartz"])
    assert len(result.cursor or "") < 300, "the cursor does not grow with bundles"
    ingest_machine(lake, "quartz", read_bundle)
    assert requested(tick()) == [], "the corrupt one is not asked for again"


def test_a_tick_does_a_bounded_part_and_the_next_goes_on(tick, lake: Lake) -> None:
    few = TickLimits(bundles=2, runs=2)
    for machine in ("a", "b", "c", "d", "e"):
        land_perf_stat(lake, machine, "b1", 1)
    assert [requested(tick(few)) for _ in range(4)] == [["a", "b"], ["c", "d"], ["e"], []]
    land_perf_stat(lake, "b", "b2", 1)
    assert sorted(machine for _ in range(3) for machine in requested(tick(few))) == ["b"]


def finished(instance: dg.DagsterInstance, machine: str, *, succeeded: bool) -> str:
    """A run of a machine that ended now."""
    tags = {"dagster/partition": machine}
    run = instance.add_run(dg.DagsterRun(refresh_machine_job.name, tags=tags, status=dg.DagsterRunStatus.STARTED))
    if succeeded:
        instance.report_dagster_event(
            dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, run.job_name), run_id=run.run_id
        )
    else:
        instance.report_run_failed(run)
    return run.run_id


def test_a_failed_run_is_asked_for_again_later_and_not_for_ever(
    tick, lake: Lake, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(landing, "time", SimpleNamespace(time=lambda: now))
    land_perf_stat(lake, "quartz", "b1", 1)
    assert requested(tick()) == ["quartz"]
    keys = set()
    for retry in range(landing._MOST_RETRIES):
        run_id = finished(instance, "quartz", succeeded=False)
        assert requested(tick()) == [], "not at once"
        now += landing._RETRY_SECONDS * 2**retry + 1
        (request,) = tick().run_requests or []
        assert request.run_key == f"quartz:after:{run_id}"
        keys.add(request.run_key)
    assert len(keys) == landing._MOST_RETRIES
    finished(instance, "quartz", succeeded=False)
    now += 1e6
    assert [requested(tick()) for _ in range(2)] == [[], []], "given up"
    land_perf_stat(lake, "quartz", "b2", 2)
    assert requested(tick()) == ["quartz"], "new content starts anew"


def test_a_run_that_succeeds_or_still_runs_is_not_asked_for_again(
    tick, lake: Lake, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "time", SimpleNamespace(time=lambda: 1e12))
    land_perf_stat(lake, "quartz", "b1", 1)
    tick()
    tags = {"dagster/partition": "quartz"}
    instance.add_run(dg.DagsterRun(refresh_machine_job.name, tags=tags, status=dg.DagsterRunStatus.STARTED))
    result = tick()
    assert "waiting for quartz" in str(result.skip_reason)
    finished(instance, "quartz", succeeded=True)
    assert "waiting" not in str(tick().skip_reason)


def test_a_run_whose_process_is_gone_is_ended_and_asked_for_again(
    tick, lake: Lake, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    land_perf_stat(lake, "quartz", "b1", 1)
    tick()
    run = instance.add_run(
        dg.DagsterRun(
            refresh_machine_job.name, tags={"dagster/partition": "quartz"}, status=dg.DagsterRunStatus.STARTED
        )
    )
    with subprocess.Popen(["true"]) as worker:
        pass
    note_process(instance, run, worker.pid)
    tick()
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status == dg.DagsterRunStatus.FAILURE
    later = time.time() + 1000
    monkeypatch.setattr(landing, "time", SimpleNamespace(time=lambda: later))
    assert requested(tick()) == ["quartz"]


def test_a_run_that_is_executed_again_is_not_taken_for_the_dead_one_before_it(
    tick, lake: Lake, instance: dg.DagsterInstance
) -> None:
    """Dagster copies the tags of a run, also the one that names its process."""
    with subprocess.Popen(["true"]) as gone:
        pass
    before = instance.add_run(dg.DagsterRun("adapt_machine"))
    run = instance.add_run(
        dg.DagsterRun(
            "adapt_machine",
            tags={PROCESS_TAG: f"{socket.gethostname()}:{gone.pid}:1.00"},
            parent_run_id=before.run_id,
            root_run_id=before.run_id,
            status=dg.DagsterRunStatus.STARTED,
        )
    )
    note_process(instance, run, os.getpid())
    tick()
    alive = instance.get_run_by_id(run.run_id)
    assert alive is not None
    assert alive.status == dg.DagsterRunStatus.STARTED


def test_strays_are_written_down_and_do_not_stop_the_others(tick, lake: Lake) -> None:
    land_perf_stat(lake, "quartz", "b1", 1)
    (lake.landing / "NOT a machine").mkdir()
    Path(os.fsdecode(os.fsencode(lake.landing) + b"/\xff")).mkdir()
    assert requested(tick()) == ["quartz"]
    notes = sorted(path.parent.name for path in lake.quarantine.glob("_strays/*/reason.json"))
    assert notes == ["landing+%FF", "landing+NOT%20a%20machine"]


def nightly(instance: dg.DagsterInstance, lake_resource: LakeResource):
    context = dg.build_schedule_context(instance, resources={"lake": lake_resource})
    return nightly_ingestion(context)


def test_the_nightly_schedule_asks_for_what_the_sensor_missed(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    for machine in ("quartz", "ruby", "dane"):
        land_perf_stat(lake, machine, "b1", 1)
    refused = land_perf_stat(lake, "dane", "b2", 2)
    content = (refused.bundle.directory / "perf_stat.csv").read_bytes()
    spoil(refused)
    for machine in ("quartz", "dane"):
        ingest_machine(lake, machine, read_bundle)
        lake_resource.warehouse().load_machine(machine)
        lake_resource.warehouse().derive_machine(machine)
    requests = nightly(instance, lake_resource)
    assert [request.partition_key for request in requests] == ["ruby"]
    assert set(machines.get_partition_keys(dynamic_partitions_store=instance)) == {"ruby"}
    (refused.bundle.directory / "perf_stat.csv").write_bytes(content)
    assert [request.partition_key for request in nightly(instance, lake_resource)] == ["dane", "ruby"]


def test_the_nightly_schedule_loads_a_record_that_was_never_loaded(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    land_perf_stat(lake, "quartz", "b1", 1)
    ingest_machine(lake, "quartz", read_bundle)
    assert [request.partition_key for request in nightly(instance, lake_resource)] == ["quartz"]
    lake_resource.warehouse().load_machine("quartz")
    lake_resource.warehouse().derive_machine("quartz")
    assert isinstance(nightly(instance, lake_resource), dg.SkipReason)


def test_how_often_it_looks_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LANDING_SECONDS)
    assert landing_seconds() == 30
    monkeypatch.setenv(LANDING_SECONDS, "7")
    assert landing_seconds() == 7
    for wrong in ("0", "-1", "1.5", "soon", "\u0663"):
        monkeypatch.setenv(LANDING_SECONDS, wrong)
        with pytest.raises(BadInputError, match=f"{LANDING_SECONDS} is .*give a whole number of seconds"):
            landing_seconds()
