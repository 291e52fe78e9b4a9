"""Checks of models of datasets: what gates a promotion, and what contradicts a champion."""

from collections.abc import Iterator

import dagster as dg

from perf_assets.core.tables.datasets import DATASET_VERDICTS
from perf_assets.defs.ingest.checks import partitioned_spec
from perf_assets.defs.partitions import datasets
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.transfers.assets import ADAPTED
from perf_assets.defs.verdicts import verdict_checks
from perf_assets.storage.results import rows_of


@dg.multi_asset_check(
    specs=[
        partitioned_spec(
            ADAPTED,
            "not_worse",
            "The newest model is not worse than the champion and the best model of the rows alone on held-out rows; "
            "otherwise it stays @challenger",
            blocking=False,
            additional_deps=[DATASET_VERDICTS.name],
            partitions=datasets,
        ),
        partitioned_spec(
            ADAPTED,
            "champion_holds",
            "Rows that the champion had not seen lie in its 90% intervals as often as promised; otherwise the dataset "
            "has drifted, and is adapted to anew",
            blocking=False,
            additional_deps=[DATASET_VERDICTS.name],
            partitions=datasets,
        ),
    ],
    name="check_dataset",
)
def check_dataset(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The last verdict, with its numbers and thresholds."""
    name = context.partition_key
    rows = rows_of(lake.lake(), DATASET_VERDICTS, name)
    if rows is None:
        raise dg.Failure(f"the dataset {name} has no judged model: run 'perf-assets adapt --dataset {name}'")
    yield from verdict_checks(ADAPTED, rows)
