"""The asset of all ordered pairs of machines: the counterpart of ModelX's 800 experiments."""

from typing import TYPE_CHECKING

import dagster as dg

from perf_assets.core.tables.models import TRANSFER_MATRIX
from perf_assets.core.text import markdown_rows
from perf_assets.defs.links import page_metadata, picture_metadata
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, Metadata, asset_spec, one_asset
from perf_assets.defs.targets.assets import SeedsConfig
from perf_assets.storage.lake import Lake
from perf_assets.storage.pages import store_page

if TYPE_CHECKING:
    import pandas as pd


@one_asset(asset_spec(TRANSFER_MATRIX, {"parquet"}, FLEET))
def eval_transfer__matrix(
    context: dg.AssetExecutionContext, config: SeedsConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Score every ordered pair; pairs that are already scored on the same samples are not scored again."""
    from perf_assets.workflows.models.experiments import score_all_pairs

    scored = score_all_pairs(lake.fleet(), config.seeds, config.shots, context.log.info)
    counts = {"pairs_count": scored.pairs_count, "pairs_kept_from_before_count": scored.kept_count}
    return dg.MaterializeResult(metadata=counts | _shown(lake.lake(), scored.scores))


def _shown(lake: Lake, scores: "pd.DataFrame") -> Metadata:
    from perf_assets.reports.fleet.pair_gains import gain_chart, pairs_page

    table = scores.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median").reset_index()
    chart = gain_chart(scores)
    path = store_page(lake, "pairs.html", pairs_page(scores, chart, table))
    return {
        "dagster/row_count": len(scores),
        "median_mape_by_shots": dg.MetadataValue.md(markdown_rows(table, ".3f")),
        "severity_against_gain": picture_metadata(lake, "pairs-severity", "severity against gain", chart.png),
        **page_metadata(path),
    }
