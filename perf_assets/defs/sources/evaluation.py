"""Assets of the xAMM experiments: scores, pictures of embeddings, and the page that shows both."""

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.models import XAMM_EMBEDDINGS, XAMM_SCORES
from perf_assets.core.text import markdown_rows
from perf_assets.defs.links import page_metadata, picture_metadata
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, PREVIEW_ROWS, asset_spec, model_spec, one_asset
from perf_assets.storage.results import stored_at

_SCORES = asset_spec(XAMM_SCORES, {"xgboost", "pytorch", "parquet"}, FLEET)
_EMBEDDINGS = asset_spec(XAMM_EMBEDDINGS, {"pytorch", "scikitlearn", "parquet"}, FLEET)
REPORT = "eval_xamm__report"
_REPORT = model_spec(
    REPORT,
    "The xAMM experiments as one HTML page: tables, figures, and the paper's figures beside ours.",
    {"html"},
    [XAMM_SCORES.name, XAMM_EMBEDDINGS.name],
)


class ExperimentsConfig(dg.Config):
    """Extent of the experiments."""

    seeds: int = Field(default=3, ge=1, description="Repetitions; `best` is fitted with the first seed only")
    methods: list[str] = Field(default=[], description="Methods that are scored; all where none is named")


class PicturesConfig(dg.Config):
    """Choice of pictures."""

    embeddings: list[str] = Field(
        default=[], description="Kinds of embeddings (raw, tabnet, nn, ae, vae); all where none is named"
    )


@one_asset(_SCORES)
def eval_xamm__scores(
    context: dg.AssetExecutionContext, config: ExperimentsConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Score all methods on held-out applications and machines."""
    from perf_assets.reports.scores import markdown
    from perf_assets.workflows.models.experiments import run_xamm_experiments

    fleet = lake.fleet()
    scores = run_xamm_experiments(fleet, config.seeds, context.log.info, config.methods)
    shown = scores[["experiment", "protocol"]].drop_duplicates().itertuples(index=False)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(scores),
            "seeds": config.seeds,
            **fleet.provenance(),
            **{f"mape {name} {kind}": dg.MetadataValue.md(markdown(scores, name, kind)) for name, kind in shown},
            "record": dg.MetadataValue.path(stored_at(fleet.lake, XAMM_SCORES)),
        }
    )


@one_asset(_EMBEDDINGS)
def eval_xamm__embeddings(
    context: dg.AssetExecutionContext, config: PicturesConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Place all runs in two dimensions, by each kind of embedding."""
    from perf_assets.workflows.models.experiments import draw_embeddings

    rows = draw_embeddings(lake.fleet(), context.log.info, config.embeddings)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "is_simulated": bool(rows["is_simulated"].any()),
            "preview": dg.MetadataValue.md(markdown_rows(rows.head(PREVIEW_ROWS))),
            "record": dg.MetadataValue.path(stored_at(lake.lake(), XAMM_EMBEDDINGS)),
        }
    )


@one_asset(_REPORT)
def eval_xamm__report(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page."""
    from perf_assets.reports.scores import origin
    from perf_assets.reports.xamm.page import summary_picture, what_it_says
    from perf_assets.workflows.models.experiments import write_xamm_report

    path, scores = write_xamm_report(lake.lake())
    return dg.MaterializeResult(
        metadata={
            **page_metadata(path),
            "data": origin(scores),
            "what_it_says": dg.MetadataValue.md(what_it_says(scores)),
            "unseen_machine": picture_metadata(
                lake.lake(), "xamm-unseen-machine", "MAPE by scenario, unseen machine", summary_picture(scores)
            ),
        }
    )
