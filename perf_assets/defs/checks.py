"""Blocking checks of keys, columns and values, made from the vocabulary; and a warning for what was refused."""

from collections.abc import Iterator, Sequence

import dagster as dg

from perf_assets.core.schema import Table
from perf_assets.core.tables import BUNDLES, RECORD_TABLES
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.record import MachineRecord
from perf_assets.storage.warehouse import Violation

_SHOWN = 10


def _specs(table: Table) -> list[dg.AssetCheckSpec]:
    key = ", ".join(table.key)
    return [
        dg.AssetCheckSpec("schema", asset=table.name, blocking=True, description="Columns, types and values allowed"),
        dg.AssetCheckSpec("key", asset=table.name, blocking=True, description=f"One row per {key}"),
    ]


def _results(table: Table, violations: Sequence[Violation]) -> Iterator[dg.AssetCheckResult]:
    about_key = [violation for violation in violations if violation.rule.startswith("key ")]
    about_schema = [violation for violation in violations if violation not in about_key]
    for name, found in (("schema", about_schema), ("key", about_key)):
        yield dg.AssetCheckResult(
            asset_key=table.name,
            check_name=name,
            passed=not found,
            metadata={"violated_rules_count": len(found), "threshold": 0}
            | {
                violation.rule: f"{violation.row_count} rows, first {violation.example}" for violation in found[:_SHOWN]
            },
        )


def _machines_of(context: dg.AssetCheckExecutionContext) -> Sequence[str]:
    """The machine of the run, or all where the check was started by itself."""
    if context.has_partition_key:
        return [context.partition_key]
    return machines.get_partition_keys(dynamic_partitions_store=context.instance)


@dg.multi_asset_check(specs=_specs(BUNDLES), name="check_bundles")
def check_bundles(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The ledger of what landed keeps its vocabulary."""
    warehouse = lake.warehouse()
    found = [violation for machine in _machines_of(context) for violation in warehouse.ledger_violations(machine)]
    yield from _results(BUNDLES, found)


@dg.multi_asset_check(specs=[spec for table in RECORD_TABLES for spec in _specs(table)], name="check_tables")
def check_tables(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The warehouse tables keep their vocabulary."""
    warehouse = lake.warehouse()
    for table in RECORD_TABLES:
        found = [violation for machine in _machines_of(context) for violation in warehouse.violations(table, machine)]
        yield from _results(table, found)


@dg.asset_check(asset=BUNDLES.name, description="No bundle was refused")
def none_quarantined(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Warn of refused bundles, each with its reason."""
    reasons = {
        f"{machine}/{name}": row["reason"]
        for machine in _machines_of(context)
        for name, row in MachineRecord(lake.lake().record, machine).ledger().items()
        if row["reason"] and row["status"] != "duplicate"
    }
    shown = dict(sorted(reasons.items())[:_SHOWN])
    return dg.AssetCheckResult(
        passed=not reasons,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"quarantined_count": len(reasons), "threshold": 0, **shown},
    )
