"""Assets of relative-performance vectors: the registered model, its verdicts and scores, and a growing fleet."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg
import pandas as pd
from pydantic import Field

from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.runs import VECTOR_FEATURES_TABLE
from perf_assets.core.tables.vectors import VECTOR_GROWTH, VECTOR_SCORES, VECTOR_VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.core.vector_settings import VaeDnnSettings, VectorSettings
from perf_assets.defs.conditions import FOLLOWS, FOLLOWS_CHECKED
from perf_assets.defs.failures import explained
from perf_assets.defs.links import version_link
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import Metadata, asset_spec, model_spec
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store
from perf_assets.workflows import vectors

if TYPE_CHECKING:
    from perf_assets.models.vectors.model import VectorModel

VECTOR = "model_vector__relative"
_PAGE = "vectors.html"
_INPUTS = [VECTOR_FEATURES_TABLE.name, TIMINGS.name, SPECS.name]
_SHOWN = ("version", "decision", "log_rmse", "champion_log_rmse", "mean_vector_log_rmse", "reason")
_RELATIVE_TO = Field(default="max", description="min (fastest machine), max (slowest), or a machine")


class NetConfig(VaeDnnSettings, dg.Config):
    """Widths of the nets, and how long each stage takes."""


class BlendConfig(VectorSettings, dg.Config):
    """What a vector model is made of."""

    net: NetConfig = Field(default=NetConfig(), description="Of vae_dnn")

    def settings(self) -> VectorSettings:
        """Settings without what belongs to the step."""
        return VectorSettings.model_validate(self.model_dump(include=set(VectorSettings.model_fields)))


class VectorConfig(BlendConfig):
    """What vectors are relative to, what is random, and whether to train."""

    relative_to: str = _RELATIVE_TO
    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")
    retrain: bool = Field(
        default=False,
        description="Train anew. Otherwise machines that landed since the training join the champion by heads made of "
        "their few runs, in seconds; where none did, nothing is made",
    )
    added_machine: str = Field(default="", description="Train nothing: let this machine join the champion")


class VectorScoresConfig(BlendConfig):
    """How much to compute."""

    relative_to: str = _RELATIVE_TO
    seeds: int = Field(default=1, ge=1, description="Repetitions, each with another split")
    protocols: list[str] = Field(
        default=["sample", "app"], description="What is held out: sample (configurations), app (applications)"
    )


@dg.multi_asset(
    specs=[
        model_spec(
            VECTOR,
            "From the counters of one run on any machine, its times on all machines: sigma-VAE + DNN, trees and models "
            "of pairs, blended on held-out rows; with intervals and a ranking. Machines that land join the champion by "
            "themselves; the weekly schedule trains anew. Registered in MLflow as perf-relative-vector, first as "
            "@challenger.",
            {"mlflow", "pytorch", "xgboost"},
            _INPUTS,
        ).replace_attributes(skippable=True, automation_condition=FOLLOWS_CHECKED)
    ],
    name="train_vector_model",
)
@explained
def train_vector_model(
    context: dg.AssetExecutionContext, config: VectorConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Train and register, or let machines join; nothing where there is nothing new."""
    with vectors.alone(lake.lake()):
        if config.added_machine:
            made = vectors.add_machine(lake.vector_samples(), config.added_machine, lake.provenance())
        elif config.retrain:
            made = vectors.train(
                lake.vector_samples(),
                config.relative_to,
                config.seed,
                config.settings(),
                lake.provenance(),
                context.log.info,
            )
        else:
            made = vectors.follow(lake.vector_samples, lake.provenance())
    context.log.info(made.reason)
    if made.version is not None:
        yield dg.MaterializeResult(metadata=_shown(made) | lake.provenance())


@dg.multi_asset(
    specs=[
        asset_spec(VECTOR_VERDICTS, {"mlflow", "parquet"}, [VECTOR]).replace_attributes(automation_condition=FOLLOWS)
    ],
    name="judge_vector_model",
)
@explained
def judge_vector_model(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare the newest model with the champion and the mean vector; promote it, or leave it a challenger."""
    with vectors.alone(lake.lake()):
        rows = vectors.judge(lake.lake(), lake.is_simulated())
        path = store(lake.lake(), lake.warehouse(), VECTOR_VERDICTS, rows)
    newest = rows.iloc[-1]
    context.log.info(f"version {newest['version']}: {newest['decision']}, {newest['reason']}")
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "decision": str(newest["decision"]),
            "reason": str(newest["reason"]),
            "history": dg.MetadataValue.md(markdown_rows(rows[::-1][list(_SHOWN)], ".3f")),
            "record": dg.MetadataValue.path(path),
        },
        data_version=dg.DataVersion(f"version {newest['version']} {newest['decision']}"),
    )


@dg.multi_asset(
    specs=[
        asset_spec(VECTOR_SCORES, {"pytorch", "xgboost", "parquet"}, _INPUTS),
        asset_spec(VECTOR_GROWTH, {"pytorch", "parquet"}, _INPUTS),
    ],
    name="score_vectors",
)
@explained
def score_vectors(
    context: dg.AssetExecutionContext, config: VectorScoresConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Score all methods on both protocols, and let every machine join the fleet in turn; with pictures."""
    from perf_assets.models.vectors.growth import grow
    from perf_assets.reports.vectors.page import growth_part, score_parts, vector_page

    samples, settings, simulated = lake.vector_samples(), config.settings(), {"is_simulated": lake.is_simulated()}
    say = context.log.info
    found = vectors.evaluate(samples, config.relative_to, config.seeds, settings, config.protocols, say)
    table = found.table.assign(**simulated)
    means = vectors.mean_scores(table)
    parts = score_parts(found.rows, found.entries, found.vectors, means)
    yield _scored(lake, table, means, vector_page(table, parts))
    growth = grow(samples, config.seeds, settings.net, say).assign(**simulated)
    yield _grown(lake, growth, vector_page(table, [*parts, growth_part(growth)]))


def _shown(made: vectors.Made) -> Metadata:
    assert made.version is not None
    assert made.model is not None
    version, model = made.version, made.model
    found: Metadata = {
        "mlflow_version": f"{version.name} version {version.version}",
        "mlflow_uri": version.uri,
        "mlflow": dg.MetadataValue.url(version_link(version.name, version.version)),
        "relative_to": model.reference,
        "what_was_done": made.reason,
    }
    if made.trained is not None:
        found["scores_on_held_out"] = dg.MetadataValue.md(markdown_rows(made.trained.scores, ".3f"))
        for name, blend in model.blends.items():
            found |= {
                f"times of a new {name}": str(dict(blend.weights)),
                f"order of a new {name}": str(dict(blend.order_weights)),
            }
    if made.joined:
        found["joined"] = ", ".join(made.joined)
        found["shots_count"] = sum(model.heads[machine]["configuration"].shots_count for machine in made.joined)
        found["weights_of_known_machines"] = dg.MetadataValue.md(markdown_rows(_alike(model, made.joined), ".2f"))
    return found


def _alike(model: "VectorModel", joined: tuple[str, ...]) -> pd.DataFrame:
    """Which known machines those that joined are like."""
    return pd.DataFrame(
        [
            {"machine": machine, "new": name, "known": known, "weight": weight}
            for machine in joined
            for name, head in model.heads[machine].items()
            for known, weight in zip(model.trained_machines, head.weights, strict=True)
        ]
    )


def _scored(lake: LakeResource, table: pd.DataFrame, means: pd.DataFrame, page: str) -> dg.MaterializeResult[None]:
    path = store(lake.lake(), lake.warehouse(), VECTOR_SCORES, table)
    file = store_page(lake.lake(), _PAGE, page)
    return dg.MaterializeResult(
        asset_key=VECTOR_SCORES.name,
        metadata={
            "dagster/row_count": len(table),
            "scores": dg.MetadataValue.md(markdown_rows(means, ".3f")),
            "page": dg.MetadataValue.path(file),
            "open": dg.MetadataValue.url(file.as_uri()),
            "record": dg.MetadataValue.path(path),
            **lake.provenance(),
        },
    )


def _grown(lake: LakeResource, growth: pd.DataFrame, page: str) -> dg.MaterializeResult[None]:
    path = store(lake.lake(), lake.warehouse(), VECTOR_GROWTH, growth)
    file = store_page(lake.lake(), _PAGE, page)
    medians = growth.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median").reset_index()
    return dg.MaterializeResult(
        asset_key=VECTOR_GROWTH.name,
        metadata={
            "dagster/row_count": len(growth),
            "median_mape_by_shots": dg.MetadataValue.md(markdown_rows(medians, ".3f")),
            "page": dg.MetadataValue.path(file),
            "record": dg.MetadataValue.path(path),
        },
    )
