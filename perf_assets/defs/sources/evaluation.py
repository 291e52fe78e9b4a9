"""Assets of the xAMM experiments: scores, pictures of embeddings, and the page that shows both."""

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.models import XAMM_EMBEDDINGS, XAMM_SCORES
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, PREVIEW_ROWS, asset_spec, model_spec
from perf_assets.storage.checkpoints import Unfinished
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store, stored

_SCORES = asset_spec(XAMM_SCORES, {"xgboost", "pytorch", "parquet"}, FLEET)
_EMBEDDINGS = asset_spec(XAMM_EMBEDDINGS, {"pytorch", "scikitlearn", "parquet"}, FLEET)
_REPORT = model_spec(
    "eval_xamm__report",
    "The xAMM experiments as one HTML page: tables, figures, and the paper's figures beside ours.",
    {"html"},
    [XAMM_SCORES.name, XAMM_EMBEDDINGS.name],
)


class ExperimentsConfig(dg.Config):
    """How much to compute."""

    seeds: int = Field(default=3, ge=1, description="Repetitions; `best` is fitted with the first seed only")
    methods: list[str] = Field(default=[], description="Methods that are scored; all where none is named")


class PicturesConfig(dg.Config):
    """What to draw."""

    embeddings: list[str] = Field(
        default=[], description="Kinds of embeddings (raw, tabnet, nn, ae, vae); all where none is named"
    )


@dg.multi_asset(specs=[_SCORES], name="run_xamm_experiments")
@explained
def run_xamm_experiments(
    context: dg.AssetExecutionContext, config: ExperimentsConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Score all methods on held-out applications and machines."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.source.experiments import only, run_experiments
    from perf_assets.reports.scores import markdown

    samples = fleet_samples(lake.fleet_tables())
    kept = Unfinished(lake.lake(), XAMM_SCORES.name, samples.digest)
    scores = run_experiments(samples, config.seeds, context.log.info, kept, only(config.methods))
    scores["is_simulated"] = lake.is_simulated()
    path = store(lake.lake(), lake.warehouse(), XAMM_SCORES, scores)
    kept.finish()
    shown = scores[["experiment", "protocol"]].drop_duplicates().itertuples(index=False)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(scores),
            "seeds": config.seeds,
            **lake.provenance(),
            **{f"mape {name} {kind}": dg.MetadataValue.md(markdown(scores, name, kind)) for name, kind in shown},
            "record": dg.MetadataValue.path(path),
        }
    )


@dg.multi_asset(specs=[_EMBEDDINGS], name="draw_xamm_embeddings")
@explained
def draw_xamm_embeddings(
    context: dg.AssetExecutionContext, config: PicturesConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Place all runs in two dimensions, by each kind of embedding."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.source.experiments import PICTURED, embedding_pictures

    samples = fleet_samples(lake.fleet_tables())
    rows = embedding_pictures(samples, 0, context.log.info, config.embeddings or PICTURED)
    rows["is_simulated"] = lake.is_simulated()
    path = store(lake.lake(), lake.warehouse(), XAMM_EMBEDDINGS, rows)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "is_simulated": bool(rows["is_simulated"].any()),
            "preview": dg.MetadataValue.md(markdown_rows(rows.head(PREVIEW_ROWS))),
            "record": dg.MetadataValue.path(path),
        }
    )


@dg.multi_asset(specs=[_REPORT], name="write_xamm_report")
@explained
def write_xamm_report(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page."""
    from perf_assets.reports.scores import origin
    from perf_assets.reports.xamm.page import said, summary_picture, xamm_page

    scores, embeddings = (
        stored(lake.lake(), t, f"dg launch --assets {t.name}") for t in (XAMM_SCORES, XAMM_EMBEDDINGS)
    )
    path = store_page(lake.lake(), "xamm.html", xamm_page(scores, embeddings))
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.path(path),
            "open": dg.MetadataValue.url(path.as_uri()),
            "data": origin(scores),
            "what_it_says": dg.MetadataValue.md(said(scores)),
            "unseen_machine": dg.MetadataValue.md(f"![MAPE by scenario, unseen machine]({summary_picture(scores)})"),
        }
    )
