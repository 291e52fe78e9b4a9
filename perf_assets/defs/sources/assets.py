"""Assets of source models: models of all machines with and without AMMs, registered in MLflow, and their inputs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.models import AMMS, BEHAVES_LIKE, FEATURE_MASKS
from perf_assets.core.tables.runs import FEATURES
from perf_assets.core.tables.schema import Table
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.defs.links import (
    measured_metadata,
    picture_metadata,
    run_tags,
    version_metadata,
)
from perf_assets.defs.machines.assets import ENCODER
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import PREVIEW_ROWS, Metadata, TrainingConfig, asset_spec, model_spec, one_asset
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored_at

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.source.settings import SourceSettings
    from perf_assets.workflows.models.train import RegisteredSource

WITH_AMM, WITHOUT_AMM = "model_source__with_amm", "model_source__without_amm"
INPUTS = "model_source__inputs"


class SourceConfig(TrainingConfig):
    """Settings for training source models."""

    without_amm: list[str] = Field(
        default=[], description="Methods without AMMs to choose from; all where none is named"
    )
    with_amm: list[str] = Field(default=[], description="Methods with AMMs to choose from; all where none is named")
    machine_models: list[str] = Field(
        default=[], description="Machine models that blends are made of, as attention; all if none is named"
    )
    attention_steps: int = Field(default=250, ge=1, description="Training steps of each net of the attention")
    attention_members: int = Field(default=4, ge=1, description="Nets of the attention, whose mean answers")

    def settings(self) -> "SourceSettings":
        """Settings as workflows take them."""
        from perf_assets.models.source.settings import SourceSettings

        named = {
            "without_amm": tuple(self.without_amm),
            "with_amm": tuple(self.with_amm),
            "machine_models": tuple(self.machine_models),
        }
        chosen = {name: methods for name, methods in named.items() if methods}
        numbers = {name: getattr(self, name) for name in ("seed", "attention_steps", "attention_members")}
        return SourceSettings.model_validate(numbers | chosen)


@dg.multi_asset(
    specs=[
        model_spec(
            WITHOUT_AMM,
            "Source model without AMMs: relative time from the counters of a run, pooled over all ordered pairs of "
            "machines. Registered in MLflow as perf-source@without-amm.",
            {"mlflow", "xgboost"},
            [FEATURES.name, AMMS.name],
        ),
        model_spec(
            WITH_AMM,
            "Source model that takes the machines' descriptions as inputs: a blend of attention over RAJAPerf kernels, "
            "trees with AMMs, closed forms and plain answers, weighted by cross-validation. Registered in MLflow as "
            "perf-source@with-amm, with members that target models start from.",
            {"mlflow", "pytorch", "xgboost"},
            [FEATURES.name, AMMS.name, ENCODER],
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(days=15), warn_window=timedelta(days=8)
            ),
        ),
        asset_spec(BEHAVES_LIKE, {"pytorch", "parquet"}, [WITH_AMM]),
        asset_spec(FEATURE_MASKS, {"pytorch", "parquet"}, [FEATURES.name, AMMS.name]),
    ],
    check_specs=[
        dg.AssetCheckSpec(
            "not_worse",
            asset=WITH_AMM,
            description="On held-out applications and machines the blend is as good as the time unchanged, the mean "
            "benchmark ratio and the pair's median ratio; otherwise no alias moves",
            blocking=True,
        )
    ],
    name="train_source_models",
)
@explained
def train_source_models(
    context: dg.AssetExecutionContext, config: SourceConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Choose on held-out applications and machines, fit, register, and show what the models look at."""
    from perf_assets.workflows.models.train import store_explanations, train_and_register

    fleet = lake.fleet()
    tags = fleet.provenance() | run_tags(context)
    made = train_and_register(fleet.lake, fleet.runs(), config.settings(), tags, context.log.info)
    version = dg.DataVersion(made.data_version)
    metadata = _shown(fleet.lake, made) | {"is_simulated": tags["is_simulated"] == "true"}
    for name, with_amm in ((WITHOUT_AMM, False), (WITH_AMM, True)):
        registered_version = made.versions[with_amm]
        registered = measured_metadata(registered_version.name, registered_version.version) | version_metadata(
            registered_version
        )
        yield dg.MaterializeResult(asset_key=name, data_version=version, metadata=registered | metadata)
    yield _not_worse(made)
    for table, rows in store_explanations(fleet, made).items():
        yield dg.MaterializeResult(asset_key=table.name, metadata=_attention(fleet.lake, table, rows))


def _shown(lake: Lake, made: "RegisteredSource") -> Metadata:
    """Metadata of both source models: scores beside baselines, and how long it took."""
    from perf_assets.reports.site import picture
    from perf_assets.reports.xamm.source_card import source_scores

    scores = picture(lambda target: source_scores(made.trained.scores, target))
    name = f"source-{made.versions[True].version}"
    return {
        "made_with": f"perf-amm version {made.encoder_number}, {made.encoder_version}",
        "mape_on_held_out": picture_metadata(lake, name, "scores", scores),
        "scores_on_held_out": dg.MetadataValue.md(markdown_rows(made.trained.scores, ".3f")),
        "selection_seconds": round(made.trained.selection_seconds, 1),
        "fit_seconds": round(made.trained.fit_seconds, 1),
    }


def _not_worse(made: "RegisteredSource") -> dg.AssetCheckResult:
    errors = {f"log_rmse of unseen {unseen}": blend for unseen, (blend, _) in made.log_errors.items()}
    plain = {f"threshold of unseen {unseen}": threshold for unseen, (_, threshold) in made.log_errors.items()}
    return dg.AssetCheckResult(
        asset_key=WITH_AMM, check_name="not_worse", passed=made.is_not_worse, metadata={**errors, **plain}
    )


def _attention(lake: Lake, table: Table, rows: "pd.DataFrame") -> Metadata:
    """Metadata of a table of what models look at."""
    top = rows.sort_values("attention_ratio", ascending=False).groupby("app").head(PREVIEW_ROWS)
    return {
        "dagster/row_count": len(rows),
        "most_attention": dg.MetadataValue.md(markdown_rows(top.sort_values("app"), ".3f")),
        "record": dg.MetadataValue.path(stored_at(lake, table)),
    }


@one_asset(
    model_spec(
        INPUTS,
        "Inputs of downstream models (xAMM): per run and ordered pair of machines the embedding of the run, the "
        "AMM of both machines and the relative time. 'perf-assets export inputs' writes it into a file.",
        {"parquet"},
        [FEATURES.name, AMMS.name, WITH_AMM],
    )
)
def model_source__inputs(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Put embeddings, AMMs and relative times side by side."""
    from perf_assets.workflows.exports.downstream_inputs import inputs_file, make_inputs

    rows = make_inputs(lake.lake(), lake.fleet().runs())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "preview": dg.MetadataValue.md(markdown_rows(rows.head(PREVIEW_ROWS), ".3f")),
            "file": dg.MetadataValue.path(inputs_file(lake.lake())),
        }
    )
