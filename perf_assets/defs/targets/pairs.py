"""The asset of all ordered pairs of machines: the counterpart of ModelX's 800 experiments."""

from typing import TYPE_CHECKING

import dagster as dg

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import TRANSFER_MATRIX
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, Metadata, asset_spec
from perf_assets.defs.targets.assets import SeedsConfig
from perf_assets.storage.lake import Lake
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import drop_parts, has_rows, store_part, stored

if TYPE_CHECKING:
    import pandas as pd


@dg.multi_asset(specs=[asset_spec(TRANSFER_MATRIX, {"parquet"}, FLEET)], name="score_all_pairs")
@explained
def score_all_pairs(
    context: dg.AssetExecutionContext, config: SeedsConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Score every ordered pair; pairs that are already scored on the same samples are not scored again."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.target.matrix import matrix, pairs

    samples, is_simulated = fleet_samples(lake.fleet_tables()), lake.is_simulated()
    every = pairs(samples, config.seeds, config.shots)
    if not every:
        raise BadInputError("no two machines share enough configurations to score: land more runs")
    data_digest = f"{samples.digest}:{config.seeds}:{config.shots}"
    done = _scored(lake.lake(), data_digest)
    todo = [pair for pair in every if (pair.source, pair.target) not in done]
    for count, (pair, rows) in enumerate(matrix(samples, todo), 1):
        rows = rows.assign(data_digest=data_digest, is_simulated=is_simulated)
        store_part(lake.lake(), TRANSFER_MATRIX, rows, f"source={pair.source}/target={pair.target}")
        context.log.info(f"{pair.source} -> {pair.target}: {count} of {len(todo)} pairs")
    lake.warehouse().load_results(TRANSFER_MATRIX)
    scores = stored(lake.lake(), TRANSFER_MATRIX, "perf-assets evaluate pairs")
    return dg.MaterializeResult(
        metadata={"pairs_count": len(every), "pairs_kept_from_before_count": len(every) - len(todo)}
        | _shown(lake.lake(), scores)
    )


def _scored(lake: Lake, data_digest: str) -> set[tuple[str, str]]:
    """Source and target of pairs that are scored on this data; scores of other data are dropped."""
    if not has_rows(lake, TRANSFER_MATRIX):
        return set()
    found = stored(lake, TRANSFER_MATRIX, "perf-assets evaluate pairs")
    if (found["data_digest"] != data_digest).any():
        drop_parts(lake, TRANSFER_MATRIX)
        return set()
    return set(found[["source", "target"]].itertuples(index=False, name=None))


def _shown(lake: Lake, scores: "pd.DataFrame") -> Metadata:
    from perf_assets.reports.fleet.pairs import gain_chart, pairs_page

    table = scores.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median").reset_index()
    chart = gain_chart(scores)
    path = store_page(lake, "pairs.html", pairs_page(scores, chart, table))
    return {
        "dagster/row_count": len(scores),
        "median_mape_by_shots": dg.MetadataValue.md(markdown_rows(table, ".3f")),
        "severity_against_gain": dg.MetadataValue.md(f"![severity against gain]({chart.picture_address})"),
        "page": dg.MetadataValue.path(path),
        "open": dg.MetadataValue.url(path.as_uri()),
    }
