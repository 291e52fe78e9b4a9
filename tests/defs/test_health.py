"""From nightly RAJAPerf bundles to what people are told: table, check, alert, page of the fleet."""

import time

import dagster as dg
import pytest

from benchmarks.nightly import FAULTS, nightly_bundles
from perf_assets.core.tables.health import HEALTH
from perf_assets.defs.ingest.health import AS_BEFORE, eval_machines__health
from perf_assets.defs.operate.alerts import alert_sensor
from perf_assets.defs.resources import LakeResource
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.workflows.fleet import Fleet, open_warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from perf_assets.workflows.pages.fleet_page import write_fleet_page
from tests.receivers import web_hook

pytestmark = pytest.mark.slow
MACHINE, NIGHTS, SINCE = "ruby", 60, 40
SAID = "memory bandwidth fell by 11% since 2023-12-24"
"""One of eight channels: 12.5%. After 30 nights instead of 40 it is not reported yet."""


def landed(lake: Lake) -> None:
    """A DIMM that is slow from one night on."""
    for bundle in nightly_bundles(load_machines()[MACHINE], NIGHTS, 0, FAULTS["slow DIMM"], SINCE):
        land(lake, bundle.facts, bundle.name, bundle.write)
    ingest(lake)


def ingest(lake: Lake) -> None:
    ingest_machine(lake, MACHINE, read_bundle)
    open_warehouse(lake).load_machine(MACHINE)


def made(lake: Lake, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    resources = {"lake": LakeResource(root=str(lake.root))}
    instance.add_dynamic_partitions("machines", [MACHINE])
    done = dg.materialize([eval_machines__health], instance=instance, partition_key=MACHINE, resources=resources)
    (check,) = done.get_asset_check_evaluations()
    assert check.check_name == AS_BEFORE
    return check


def told(lake: Lake, instance: dg.DagsterInstance, cursor: str | None) -> str:
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"lake": LakeResource(root=str(lake.root))}
    )
    result = alert_sensor(context)
    assert isinstance(result, dg.SensorResult)
    return result.cursor or ""


def test_a_slow_dimm_is_in_the_table_the_check_the_alert_and_on_the_page(
    instance: dg.DagsterInstance, lake: Lake
) -> None:
    landed(lake)
    with web_hook() as hook:
        (lake.root / "site.yaml").write_text(f"alerts: {{webhook: 'http://127.0.0.1:{hook.port}/', disk_free_gb: 0}}")
        cursor = told(lake, instance, None)
        time.sleep(0.01)
        check = made(lake, instance)
        assert (check.passed, check.description) == (False, SAID)
        told(lake, instance, cursor)
        (alert,) = [alert for document in hook.documents for alert in document["alerts"]]
        assert (alert["title"], alert["text"]) == (f"{MACHINE} performs otherwise than before", SAID)
    rows = Fleet(lake).warehouse.frame(f"SELECT * FROM {HEALTH.name} ORDER BY began_at")
    changed = rows[rows.duplicated(["setting", "place", "kind"], keep=False)]
    assert changed[["place", "kind", "runs_count"]].to_numpy().tolist() == [
        ["node", "memory", 39],
        ["node", "memory", 20],
    ]
    page, facts = write_fleet_page(Fleet(lake))
    assert facts.machines[0].changed == SAID
    assert SAID in page.read_text()
    (lake.root / "site.yaml").write_text(f"health: {{accepted: {{{MACHINE}: 2023-12-26}}}}")
    check = made(lake, instance)
    assert (check.passed, check.description) == (True, None)
    assert "RAJAPerf does not run as before" not in write_fleet_page(Fleet(lake))[0].read_text()


def test_a_machine_with_too_little_has_no_health_and_passes(instance: dg.DagsterInstance, lake: Lake) -> None:
    (bundle,) = nightly_bundles(load_machines()[MACHINE], 1, 0)
    land(lake, bundle.facts, bundle.name, bundle.write)
    ingest(lake)
    assert made(lake, instance).passed
    assert Fleet(lake).warehouse.frame(f"SELECT * FROM {HEALTH.name}").empty
