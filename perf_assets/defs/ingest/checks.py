"""Blocking checks of keys, columns and values, made from the vocabulary; and a warning for what was refused."""

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

import dagster as dg

from perf_assets.core.tables.landing import BUNDLES, RECORD_TABLES
from perf_assets.core.tables.runs import DERIVED_TABLES
from perf_assets.core.tables.schema import Table
from perf_assets.core.text import markdown_rows
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.features.counters.quality import DOUBTS
from perf_assets.storage.loading import Violation
from perf_assets.storage.record import MachineRecord

_MOST_ROWS = 10


def partitioned_spec(
    table: str,
    name: str,
    description: str,
    *,
    blocking: bool,
    additional_deps: Sequence[str] = (),
    partitions: dg.DynamicPartitionsDefinition = machines,
) -> dg.AssetCheckSpec:
    """A check whose result is of one machine, or of one of other partitions."""
    with warnings.catch_warnings():
        # Checks with partitions are in preview. Without them the UI shows one machine's result as everybody's.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            name,
            asset=table,
            description=description,
            blocking=blocking,
            additional_deps=additional_deps,
            partitions_def=partitions,
        )


def made_or_not(asset: str, name: str, missing: str = "") -> dg.AssetCheckResult:
    """Result of a step that may leave out what it is for: a warning where something is missing, which says what."""
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=not missing,
        severity=dg.AssetCheckSeverity.WARN,
        description=missing or None,
        metadata={"missing": missing or "nothing"},
    )


def _specs(table: Table) -> list[dg.AssetCheckSpec]:
    return [
        partitioned_spec(table.name, "schema", "Columns, types and values are those of the vocabulary", blocking=True),
        partitioned_spec(table.name, "key", f"One row per {', '.join(table.key)}", blocking=True),
    ]


def _results(table: Table, violations: Sequence[Violation]) -> Iterator[dg.AssetCheckResult]:
    about_key = [violation for violation in violations if violation.rule.startswith("key ")]
    about_schema = [violation for violation in violations if violation not in about_key]
    for name, violated in (("schema", about_schema), ("key", about_key)):
        yield dg.AssetCheckResult(
            asset_key=table.name,
            check_name=name,
            passed=not violated,
            metadata={"violated_rules_count": len(violated), "threshold": 0}
            | {
                violation.rule: f"{violation.row_count} rows, first {violation.example}"
                for violation in violated[:_MOST_ROWS]
            },
        )


@dg.multi_asset_check(
    specs=[
        *_specs(BUNDLES),
        partitioned_spec(BUNDLES.name, "none_quarantined", "No bundle was refused", blocking=False),
    ],
    name="check_bundles",
)
def check_bundles(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The ledger of what landed keeps its vocabulary; refused bundles are a warning, each with its reason."""
    yield from _results(BUNDLES, lake.warehouse().ledger_violations(context.partition_key))
    reasons = MachineRecord(lake.lake().record, context.partition_key).refusals()
    yield dg.AssetCheckResult(
        asset_key=BUNDLES.name,
        check_name="none_quarantined",
        passed=not reasons,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"quarantined_count": len(reasons), "threshold": 0, **dict(islice(reasons.items(), _MOST_ROWS))},
    )


@dg.multi_asset_check(specs=[spec for table in RECORD_TABLES for spec in _specs(table)], name="check_tables")
def check_tables(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The warehouse tables keep their vocabulary."""
    warehouse = lake.warehouse()
    with warehouse.kept_open():
        violations = {table: warehouse.violations(table, context.partition_key) for table in RECORD_TABLES}
    for table, violated in violations.items():
        yield from _results(table, violated)


@dg.multi_asset_check(
    specs=[
        *(spec for table in DERIVED_TABLES for spec in _specs(table)),
        *(partitioned_spec(doubt.table, doubt.name, doubt.description, blocking=False) for doubt in DOUBTS),
    ],
    name="check_features",
)
def check_features(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The tables of configurations keep their vocabulary; what looks odd is a warning, with the worst rows."""
    warehouse, machine = lake.warehouse(), context.partition_key
    with warehouse.kept_open():
        violations = {table: warehouse.violations(table, machine) for table in DERIVED_TABLES}
        asked = [(doubt.query, {"machine": machine, "threshold": doubt.threshold}) for doubt in DOUBTS]
        doubtful = [warehouse.frame(*one) for one in asked]
    for table, violated in violations.items():
        yield from _results(table, violated)
    for doubt, rows in zip(DOUBTS, doubtful, strict=True):
        yield dg.AssetCheckResult(
            asset_key=doubt.table,
            check_name=doubt.name,
            passed=rows.empty,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={
                "rows_beyond_threshold_count": len(rows),
                "threshold": doubt.threshold,
                "worst": dg.MetadataValue.md(markdown_rows(rows.head(_MOST_ROWS))),
            },
        )
