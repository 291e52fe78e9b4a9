"""The asset of how machines perform against their own past, and its check."""

from collections.abc import Iterator

import dagster as dg

from perf_assets.core.tables.health import HEALTH
from perf_assets.core.tables.landing import BUNDLES, TIMINGS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.ingest.checks import partitioned_spec
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import POOL, Metadata, asset_spec, one_asset
from perf_assets.storage.results import stored_at
from perf_assets.workflows.machines.health import LEAST, MachineHealth, follow_health

AS_BEFORE = "performs_as_before"
_PERIOD_COLUMNS = ["setting", "place", "kind", "began_at", "newest_at", "runs_count", "time_ratio", "log10_evidence"]


@one_asset(
    asset_spec(HEALTH, {"duckdb", "parquet"}, [TIMINGS.name, BUNDLES.name], skippable=True),
    partitioned_spec(
        HEALTH.name,
        AS_BEFORE,
        f"No group of RAJAPerf kernels takes another time than before, by {LEAST:.0%} or more; what site.yaml "
        "accepts (health.accepted) counts as before",
        blocking=False,
    ),
    partitions_def=machines,
    pool=POOL,
)
def eval_machines__health(
    context: dg.AssetExecutionContext, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Compare a machine's RAJAPerf runs with those before; nothing where it has fewer than two of one setting."""
    machine, fleet = context.partition_key, lake.fleet()
    rows = follow_health(fleet, machine)
    health = MachineHealth.of(fleet, machine)
    if rows is not None:
        shown: Metadata = {
            "dagster/partition_row_count": len(rows),
            "changed": health.text or "nothing",
            "periods": dg.MetadataValue.md(markdown_rows(rows[_PERIOD_COLUMNS], ".3f")),
            "record": dg.MetadataValue.path(stored_at(fleet.lake, HEALTH, machine)),
        }
        yield dg.MaterializeResult(metadata=shown)
    yield _as_before(health)


def _as_before(health: MachineHealth) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=HEALTH.name,
        check_name=AS_BEFORE,
        passed=not health.changes,
        severity=dg.AssetCheckSeverity.WARN,
        description=health.text or None,
        metadata={"changed_groups_count": len(health.changes), "threshold": LEAST},
    )
