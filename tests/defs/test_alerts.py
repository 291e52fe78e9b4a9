"""The alert sensor on real runs of Dagster: what is told, and once."""

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from perf_assets.defs.operate.alerts import alert_sensor
from perf_assets.defs.resources import LakeResource
from tests.receivers import Received, web_hook

WRONG: dict[str, bool] = {}
MACHINES = dg.StaticPartitionsDefinition(["dane", "ruby"])


@dg.asset(partitions_def=MACHINES, check_specs=[dg.AssetCheckSpec("champion_holds", asset="adapted")])
def adapted() -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    yield dg.MaterializeResult()
    yield dg.AssetCheckResult(check_name="champion_holds", passed=not WRONG.get("drift", False))


@dg.asset(partitions_def=MACHINES)
def landed() -> None:
    if WRONG.get("run"):
        raise ValueError("the disk is on fire")


@dg.asset_check(asset=landed, blocking=True)
def key() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=not WRONG.get("check", False))


@dg.asset_check(asset=landed)
def small_spread() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    WRONG.clear()
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as made:
        yield made


def materialize(instance: dg.DagsterInstance, *assets: object, machine: str = "dane") -> None:
    dg.materialize([*assets], instance=instance, partition_key=machine, raise_on_error=False)


def tick(instance: dg.DagsterInstance, lake: Path, cursor: str | None) -> tuple[str, str]:
    """What the sensor says, and its memory."""
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"lake": LakeResource(root=str(lake))}
    )
    result = alert_sensor(context)
    assert isinstance(result, dg.SensorResult)
    assert not result.run_requests
    return str(result.skip_reason.skip_message if result.skip_reason else ""), result.cursor or ""


def lines(hook: Received) -> list[str]:
    told = [alert["title"] for document in hook.documents for alert in document["alerts"]]
    hook.documents.clear()
    return told


def test_failed_runs_checks_and_drift_are_told_once(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    with web_hook() as hook:
        (tmp_path / "site.yaml").write_text(f"alerts: {{webhook: 'http://127.0.0.1:{hook.port}/', disk_free_gb: 0}}")
        WRONG["run"] = True
        materialize(instance, landed)
        said, cursor = tick(instance, tmp_path, None)
        assert lines(hook) == [], "what was wrong before anybody asked is not told"
        time.sleep(0.01)
        materialize(instance, landed)
        said, cursor = tick(instance, tmp_path, cursor)
        assert "the disk is on fire" in said
        assert lines(hook) == ["the run __ephemeral_asset_job__ of dane failed"]
        materialize(instance, landed)
        said, cursor = tick(instance, tmp_path, cursor)
        assert (said, lines(hook)) == ("nothing new to tell", [])
        WRONG["run"] = False
        materialize(instance, landed, key, small_spread)
        WRONG["check"], WRONG["drift"] = True, True
        said, cursor = tick(instance, tmp_path, cursor)
        assert lines(hook) == [], "what warns only is not told"
        materialize(instance, landed, key, machine="ruby")
        materialize(instance, adapted, machine="ruby")
        materialize(instance, adapted, machine="dane")
        hook.status = 500
        said, cursor = tick(instance, tmp_path, cursor)
        assert "does not take alerts" in said
        hook.status = 200
        said, cursor = tick(instance, tmp_path, cursor)
        assert sorted(lines(hook)) == [
            "dane has drifted",
            "ruby has drifted",
            "the check key of landed failed",
        ]
        WRONG["drift"] = False
        materialize(instance, adapted, machine="ruby")
        WRONG["drift"] = True
        said, cursor = tick(instance, tmp_path, cursor)
        materialize(instance, adapted, machine="ruby")
        said, cursor = tick(instance, tmp_path, cursor)
        assert lines(hook) == ["ruby has drifted"], "it was right in between"


def test_a_full_disk_is_told_and_a_wrong_site_file_is_no_failure(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    assert tick(instance, tmp_path, None)[0] == "site.yaml names nobody to tell"
    with web_hook() as hook:
        (tmp_path / "site.yaml").write_text(
            f"alerts: {{webhook: 'http://127.0.0.1:{hook.port}/', disk_free_gb: 1.0e9}}"
        )
        said, cursor = tick(instance, tmp_path, None)
        assert len(lines(hook)) == 1, "lake and home are one place here"
        assert tick(instance, tmp_path, cursor)[0] == "nothing new to tell"
    (tmp_path / "site.yaml").write_text("alerts: {webhok: x}")
    said, kept = tick(instance, tmp_path, cursor)
    assert "webhok" in said
    assert kept == cursor, "nothing is forgotten meanwhile"
