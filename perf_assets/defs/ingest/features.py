"""Assets of application configurations: merged counters, canonical features, pairs of machines."""

from collections.abc import Iterator, Sequence

import dagster as dg

from perf_assets.core.tables.landing import BUNDLES, COUNTERS, RUNS, SPECS, TIMINGS
from perf_assets.core.tables.runs import (
    COUNTERS_WIDE,
    DERIVED_TABLES,
    ENVIRONMENTS,
    FEATURES,
    MERGED_COUNTERS,
    UNMATCHED,
    VECTOR_FEATURES_TABLE,
)
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import POOL, PREVIEW_ROWS, Metadata, asset_spec, group_of, materialization
from perf_assets.storage.warehouse import Warehouse

_INPUTS = [RUNS.name, SPECS.name, MERGED_COUNTERS.name, ENVIRONMENTS.name]
_SPECS = [
    asset_spec(ENVIRONMENTS, {"duckdb"}, deps=[BUNDLES.name, RUNS.name, TIMINGS.name]),
    asset_spec(MERGED_COUNTERS, {"duckdb"}, deps=[COUNTERS.name, RUNS.name, ENVIRONMENTS.name]),
    asset_spec(FEATURES, {"duckdb"}, deps=_INPUTS),
    asset_spec(VECTOR_FEATURES_TABLE, {"duckdb"}, deps=_INPUTS),
    dg.AssetSpec(
        COUNTERS_WIDE,
        deps=[FEATURES.name, MERGED_COUNTERS.name],
        description="Counters of a machine under its own names: a row per configuration, a column per counter. "
        f'A table for each machine, as in `SELECT * FROM {COUNTERS_WIDE}."epyc-vm"`.',
        group_name=group_of(COUNTERS_WIDE),
        kinds={"duckdb"},
    ),
    asset_spec(UNMATCHED, {"duckdb"}, deps=[FEATURES.name]),
]


@dg.multi_asset(specs=_SPECS, partitions_def=machines, name="derive_features", pool=POOL)
@explained
def derive_features(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[None]]:
    """Make the tables that are derived from a machine's raw tables, in one transaction."""
    fleet, machine = lake.fleet(), context.partition_key
    warehouse = fleet.warehouse
    counts, unknown = warehouse.derive_machine(machine), fleet.unmapped_counters(machine)
    with warehouse.kept_open():
        results = [*_derived(warehouse, machine, counts, unknown), _wide(warehouse, machine, counts[FEATURES.name])]
    yield from results


def _derived(
    warehouse: Warehouse, machine: str, counts: dict[str, int], unknown: Sequence[str]
) -> Iterator[dg.MaterializeResult[None]]:
    """Tables with the number of their rows, and what is odd about them."""
    reasons = warehouse.frame(_REASONS, [machine])
    notes: dict[str, Metadata] = {
        FEATURES.name: {"unmapped_counters_count": len(unknown), "unmapped_counters": ", ".join(unknown) or "none"},
        UNMATCHED.name: {"reasons": dg.MetadataValue.md(markdown_rows(reasons))},
    }
    for table in DERIVED_TABLES:
        result = materialization(warehouse, table, machine, counts[table.name])
        yield result._replace(metadata={**(result.metadata or {}), **notes.get(table.name, {})})


def _wide(warehouse: Warehouse, machine: str, row_count: int) -> dg.MaterializeResult[None]:
    """Counters under the machine's own names."""
    counters, _ = warehouse.counters_of(machine)
    return dg.MaterializeResult(
        asset_key=COUNTERS_WIDE,
        metadata={
            "dagster/partition_row_count": row_count,
            "counters_count": len(counters),
            "preview": dg.MetadataValue.md(_first_rows(warehouse, machine)),
        },
        data_version=dg.DataVersion(warehouse.content_digest(MERGED_COUNTERS, machine)),
    )


def _first_rows(warehouse: Warehouse, machine: str) -> str:
    rows = warehouse.frame(f'SELECT * EXCLUDE (labels) FROM {COUNTERS_WIDE}."{machine}" LIMIT {PREVIEW_ROWS}')
    return markdown_rows(rows)


_REASONS = f"""
    SELECT other_machine, reason, count(*) AS configurations
    FROM {UNMATCHED.name} WHERE machine = ? GROUP BY ALL ORDER BY ALL
"""
