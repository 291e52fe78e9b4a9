"""Assets of relative-performance vectors: the model that is registered, its scores, and how the fleet grows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg
import pandas as pd
from pydantic import Field

from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.runs import VECTOR_FEATURES_TABLE
from perf_assets.core.tables.vectors import ALL_APPS, VECTOR_GROWTH, VECTOR_SCORES
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import asset_spec, model_spec
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store

if TYPE_CHECKING:
    from perf_assets.features.vectors import VectorSamples

VECTOR = "model_vector__relative"
_PAGE = "vectors.html"
_INPUTS = [VECTOR_FEATURES_TABLE.name, TIMINGS.name, SPECS.name]
_RATIOS = ("mae", "mape", "same_order", "top1", "regret", "auc", "coverage", "stated_order")
_SHOWN = ["r2", "r2_per_machine", *(f"{name}_ratio" for name in _RATIOS)]


class VectorConfig(dg.Config):
    """What vectors are relative to, and what is random."""

    relative_to: str = Field(default="max", description="min (fastest machine), max (slowest), or a machine")
    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")
    added_machine: str = Field(
        default="", description="Nothing is trained: this machine joins the champion, by a head that its few runs give"
    )


class VectorScoresConfig(dg.Config):
    """How much to compute."""

    relative_to: str = Field(default="max", description="min (fastest machine), max (slowest), or a machine")
    seeds: int = Field(default=1, ge=1, description="Repetitions, each with another split")


@dg.multi_asset(
    specs=[
        model_spec(
            VECTOR,
            "From the counters of one run on any machine, its times on all machines: sigma-VAE + DNN, trees and models "
            "of pairs, blended on held-out rows; with intervals and a ranking. Registered in MLflow as "
            "perf-relative-vector@champion.",
            {"mlflow", "pytorch", "xgboost"},
            _INPUTS,
        )
    ],
    name="train_vector_model",
)
@explained
def train_vector_model(
    context: dg.AssetExecutionContext, config: VectorConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Choose on held-out rows, fit, register; or let a machine join."""
    from perf_assets.models.vectors.model import train_vector
    from perf_assets.registry.store import open_store
    from perf_assets.registry.vector import register_vector

    open_store()
    samples = lake.vector_samples()
    if config.added_machine:
        return _joined(samples, config.added_machine, lake.provenance())
    trained = train_vector(samples, config.relative_to, config.seed, context.log.info)
    provenance = lake.provenance() | {"seed": str(config.seed)}
    version = register_vector(trained, samples, provenance)
    return dg.MaterializeResult(
        metadata={
            "mlflow_version": f"{version.name} version {version.version}",
            "mlflow_uri": version.uri,
            "relative_to": config.relative_to,
            "scores_on_held_out": dg.MetadataValue.md(markdown_rows(trained.scores, ".3f")),
            **{f"times of a new {name}": str(blend.weights) for name, blend in trained.model.blends.items()},
            **{f"order of a new {name}": str(blend.order_weights) for name, blend in trained.model.blends.items()},
            **provenance,
        }
    )


def _joined(samples: "VectorSamples", machine: str, provenance: dict[str, str]) -> dg.MaterializeResult[None]:
    from perf_assets.models.vectors.join import join
    from perf_assets.registry.vector import champion_vector, register_joined

    model = join(champion_vector(), samples, machine)
    version = register_joined(model, machine, samples, provenance)
    heads = model.heads[machine]
    alike = [
        {"new": name, "machine": known, "weight": weight}
        for name, head in heads.items()
        for known, weight in zip(model.trained_machines, head.weights, strict=True)
    ]
    return dg.MaterializeResult(
        metadata={
            "mlflow_version": f"{version.name} version {version.version}",
            "mlflow_uri": version.uri,
            "relative_to": model.reference,
            "added_machine": machine,
            "shots_count": next(iter(heads.values())).shots_count,
            "weights_of_known_machines": dg.MetadataValue.md(markdown_rows(pd.DataFrame(alike), ".2f")),
            **provenance,
        }
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
    from perf_assets.models.vectors.evaluation import evaluate_vectors
    from perf_assets.models.vectors.growth import grow
    from perf_assets.reports.vectors.page import growth_part, score_parts, vector_page

    samples, is_simulated = lake.vector_samples(), lake.is_simulated()
    found = evaluate_vectors(samples, config.relative_to, config.seeds, progress=context.log.info)
    table = found.table.assign(is_simulated=is_simulated)
    path = store(lake.lake(), lake.warehouse(), VECTOR_SCORES, table)
    shown = table[table["app"] == ALL_APPS].groupby(["protocol", "method"], sort=False)[_SHOWN].mean().reset_index()
    parts = score_parts(found.rows, found.entries, shown)
    page = store_page(lake.lake(), _PAGE, vector_page(table, parts))
    yield dg.MaterializeResult(
        asset_key=VECTOR_SCORES.name,
        metadata={
            "dagster/row_count": len(table),
            "scores": dg.MetadataValue.md(markdown_rows(shown, ".3f")),
            "orders": dg.MetadataValue.md(f"![machines in the right order]({parts[0].charts[0].picture_address})"),
            "page": dg.MetadataValue.path(page),
            "open": dg.MetadataValue.url(page.as_uri()),
            "record": dg.MetadataValue.path(path),
            **lake.provenance(),
        },
    )
    growth = grow(samples, config.seeds, context.log.info).assign(is_simulated=is_simulated)
    path = store(lake.lake(), lake.warehouse(), VECTOR_GROWTH, growth)
    page = store_page(lake.lake(), _PAGE, vector_page(table, [*parts, growth_part(growth)]))
    medians = growth.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median").reset_index()
    yield dg.MaterializeResult(
        asset_key=VECTOR_GROWTH.name,
        metadata={
            "dagster/row_count": len(growth),
            "median_mape_by_shots": dg.MetadataValue.md(markdown_rows(medians, ".3f")),
            "page": dg.MetadataValue.path(page),
            "record": dg.MetadataValue.path(path),
        },
    )
