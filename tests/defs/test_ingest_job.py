"""The ingestion job: rows in the warehouse, metadata for the UI, checks that can fail and then block."""

import dagster as dg
import duckdb
import pytest

from perf_assets.core.tables.landing import COUNTERS, RECORD_TABLES, RUNS, TABLES
from perf_assets.core.tables.runs import COUNTERS_WIDE, FEATURES
from perf_assets.defs.build import build_definitions
from perf_assets.defs.ingest import features, raw
from perf_assets.defs.resources import LakeResource
from perf_assets.features.counters.quality import DOUBTS
from perf_assets.storage.lake import Lake
from perf_assets.storage.loading import Violation
from perf_assets.storage.warehouse import Warehouse
from tests.defs.conftest import land_perf_stat, spoil


def run(instance: dg.DagsterInstance, lake_resource: LakeResource, machine: str) -> dg.ExecuteInProcessResult:
    instance.add_dynamic_partitions("machines", [machine])
    job = build_definitions(lake_resource).resolve_job_def("ingest_machine")
    return job.execute_in_process(instance=instance, partition_key=machine, raise_on_error=False)


def passed(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], bool]:
    return {
        (evaluation.asset_key.to_user_string(), evaluation.check_name): evaluation.passed
        for evaluation in result.get_asset_check_evaluations()
    }


@pytest.mark.slow
def test_a_run_fills_the_tables_and_tells_the_ui(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    land_perf_stat(lake, "quartz", "b1", 7)
    result = run(instance, lake_resource, "quartz")
    assert result.success
    rows = Warehouse(lake).frame(f"SELECT counter, value_sum FROM {COUNTERS.name} WHERE counter = 'instructions'")
    assert rows.to_dict("records") == [{"counter": "instructions", "value_sum": 7.0}]
    event = instance.get_latest_materialization_event(dg.AssetKey(RUNS.name))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert metadata["dagster/partition_row_count"].value == 1
    assert "| Kripke |" in str(metadata["preview"].value)
    checks = passed(result)
    assert not checks.pop(("model_amm__machines", "is_described")), "it has no RAJAPerf"
    assert checks.pop(("eval_machines__health", "performs_as_before"))
    assert len(checks) == 2 * len(TABLES) + 1 + len(DOUBTS)
    assert all(checks.values())


@pytest.mark.slow
def test_data_versions_change_with_the_content_of_a_table_only(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    def versions() -> list[str]:
        run(instance, lake_resource, "quartz")
        warehouse = Warehouse(lake)
        return [warehouse.content_digest(table, "quartz") for table in RECORD_TABLES]

    land_perf_stat(lake, "quartz", "b1", 7)
    before = versions()
    assert versions() == before
    land_perf_stat(lake, "quartz", "b2", 8)
    changed = [old != new for old, new in zip(before, versions(), strict=True)]
    assert changed == [table in (RUNS, COUNTERS) for table in RECORD_TABLES]


@pytest.mark.slow
def test_a_refused_bundle_is_a_warning_with_its_reason(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    land_perf_stat(lake, "quartz", "good", 7)
    spoil(land_perf_stat(lake, "quartz", "bad", 8))
    result = run(instance, lake_resource, "quartz")
    assert result.success
    warning = next(e for e in result.get_asset_check_evaluations() if e.check_name == "none_quarantined")
    assert (warning.passed, warning.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "the copy is incomplete" in str(warning.metadata["bad"].value)


@pytest.mark.slow
def test_unmapped_counters_are_listed_in_the_ui(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    land_perf_stat(lake, "quartz", "b1", 7)
    run(instance, lake_resource, "quartz")
    event = instance.get_latest_materialization_event(dg.AssetKey(FEATURES.name))
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["unmapped_counters"].value == "task-clock"


@pytest.mark.slow
def test_a_violated_rule_fails_its_blocking_check(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource, monkeypatch
) -> None:
    land_perf_stat(lake, "quartz", "b1", 7)
    load = Warehouse.load_machine

    def load_and_corrupt(self: Warehouse, machine: str) -> dict[str, int]:
        counts = load(self, machine)
        with duckdb.connect(str(lake.warehouse)) as connection:
            connection.execute(f"INSERT INTO {COUNTERS.name} SELECT * FROM {COUNTERS.name}")
            connection.execute(f"UPDATE {RUNS.name} SET wall_seconds = -1")
        return counts

    monkeypatch.setattr(Warehouse, "load_machine", load_and_corrupt)
    result = run(instance, lake_resource, "quartz")
    assert not result.success
    checks = passed(result)
    assert checks[COUNTERS.name, "key"] is False
    assert checks[RUNS.name, "schema"] is False
    assert checks[COUNTERS.name, "schema"] is True


def test_assets_carry_what_the_ui_shows() -> None:
    for definition in (raw.raw_landing__bundles, raw.load_warehouse, features.derive_features):
        for spec in definition.specs:
            assert spec.description
            assert spec.kinds
            assert spec.group_name in {"landing", "raw", "core"}
            assert "dagster/column_schema" in spec.metadata or spec.key.to_user_string() == COUNTERS_WIDE
    assert raw.load_warehouse.op.pool == features.derive_features.op.pool == "warehouse"


@pytest.mark.slow
def test_a_failed_blocking_check_keeps_features_from_being_made(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource, monkeypatch
) -> None:
    land_perf_stat(lake, "quartz", "b1", 7)
    monkeypatch.setattr(
        Warehouse, "violations", lambda self, table, machine: [Violation("key (x) is unique", 1, "row")]
    )
    result = run(instance, lake_resource, "quartz")
    assert not result.success
    assert instance.get_latest_materialization_event(dg.AssetKey(RUNS.name)) is not None
    assert instance.get_latest_materialization_event(dg.AssetKey(FEATURES.name)) is None
