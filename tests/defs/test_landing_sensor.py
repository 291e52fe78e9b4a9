"""The landing sensor asks for each new content once, and says why when it asks for nothing."""

import json
import os
from pathlib import Path

import dagster as dg
import pytest

from perf_assets.defs.automation import landing_sensor, nightly_ingestion
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.ingest import ingest_machine
from perf_assets.storage.lake import Lake
from tests.defs.conftest import land_perf_stat, spoil


@pytest.fixture
def tick(instance: dg.DagsterInstance, lake_resource: LakeResource):
    """Evaluate the sensor with the cursor of the tick before; partitions it asks for are added."""
    cursor: list[str | None] = [None]

    def evaluate() -> dg.SensorResult:
        context = dg.build_sensor_context(instance, cursor=cursor[0], resources={"lake": lake_resource})
        result = landing_sensor(context)
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
    assert "nothing new: 0 machines" in str(result.skip_reason)


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
    assert "1 changed and already ingested" in str(result.skip_reason)


def test_a_half_landed_bundle_waits_for_its_manifest(tick, lake: Lake) -> None:
    bundle = land_perf_stat(lake, "quartz", "b1", 1).bundle
    manifest = bundle.directory / "manifest.json"
    hidden = manifest.rename(bundle.directory / ".manifest.json.part")
    assert requested(tick()) == []
    hidden.rename(manifest)
    assert requested(tick()) == ["quartz"]


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
