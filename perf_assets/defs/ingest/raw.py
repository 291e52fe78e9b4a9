"""Assets of what landed: the record of each machine, and the warehouse tables loaded from it."""

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.landing import BUNDLES, RECORD_TABLES
from perf_assets.defs.failures import explained
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import POOL, asset_spec, materialization, one_asset
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.landing.ingest import ingest_machine, read_ahead

_LOG_EVERY = 500


class ReadBundlesConfig(dg.Config):
    """Choice of bundles to read."""

    reread: bool = Field(default=False, description="Read all landed bundles again, also those in the record")


@one_asset(
    asset_spec(
        BUNDLES,
        {"parquet"},
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(days=30), warn_window=timedelta(days=14)),
    ),
    partitions_def=machines,
)
def raw_landing__bundles(
    context: dg.AssetExecutionContext, config: ReadBundlesConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Read a machine's new bundles into the record."""
    machine = context.partition_key

    def on_bundle(done: int, total: int) -> None:
        if done % _LOG_EVERY == 0 or done == total:
            context.log.info(f"{machine}: {done} of {total} bundles read")

    outcome = ingest_machine(lake.lake(), machine, read_bundle, on_bundle, read_ahead=read_ahead, reread=config.reread)
    record = MachineRecord(lake.lake().record, machine)
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(record.ledger()),
            "landed_count": outcome.landed_count,
            "newly_ingested_count": outcome.ingested_count,
            "newly_duplicate_count": outcome.duplicate_count,
            "quarantined_count": outcome.quarantined_count,
            "record": dg.MetadataValue.path(record.ledger_file()),
        },
        data_version=dg.DataVersion(record.digest()),
    )


@dg.multi_asset(
    specs=[asset_spec(table, {"duckdb"}, deps=[BUNDLES.name]) for table in RECORD_TABLES],
    partitions_def=machines,
    name="load_warehouse",
    pool=POOL,
)
@explained
def load_warehouse(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[None]]:
    """Load a machine's tables from its record, in one transaction."""
    warehouse = lake.warehouse()
    counts = warehouse.load_machine(context.partition_key)
    with warehouse.kept_open():
        results = [materialization(warehouse, t, context.partition_key, counts[t.name]) for t in RECORD_TABLES]
    yield from results
