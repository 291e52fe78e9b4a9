"""Relative-performance vectors: the registered model, its verdicts, checks and scores, and a growing fleet."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg
import pandas as pd
from pydantic import Field

from perf_assets.core.freshness import load_freshness
from perf_assets.core.tables.runs import VECTOR_FEATURES_TABLE
from perf_assets.core.tables.vectors import VECTOR_GROWTH, VECTOR_SCORES, VECTOR_VERDICTS
from perf_assets.core.tables.verdicts import PROMOTED
from perf_assets.core.text import markdown_rows
from perf_assets.core.vector_settings import VaeDnnSettings, VectorSettings
from perf_assets.defs.conditions import WHEN_CHECKED_INPUT_CHANGES, WHEN_INPUT_CHANGES
from perf_assets.defs.failures import explained
from perf_assets.defs.links import page_metadata, version_metadata
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, POOL, Metadata, asset_spec, model_spec, one_asset
from perf_assets.defs.verdicts import verdict_result
from perf_assets.storage.results import has_rows, stored, stored_at
from perf_assets.workflows.models import vectors

if TYPE_CHECKING:
    from perf_assets.models.vectors.model import VectorModel

VECTOR = "model_vector__relative"
_INPUTS = [VECTOR_FEATURES_TABLE.name, *FLEET]
_VERDICT_COLUMNS = ("version", "decision", "log_rmse", "champion_log_rmse", "mean_vector_log_rmse", "reason")
_NUMBERS = ("log_rmse", "champion_log_rmse", "mean_vector_log_rmse", "threshold_ratio")
_RELATIVE_TO = Field(default="max", description="min (fastest machine), max (slowest), or a machine")


class NetConfig(VaeDnnSettings, dg.Config):
    """Widths of the nets, and how long each stage takes."""


class BlendConfig(VectorSettings, dg.Config):
    """Components of a vector model."""

    net: NetConfig = Field(default=NetConfig(), description="Settings of the method vae_dnn")

    def settings(self) -> VectorSettings:
        """Settings without what belongs to the step."""
        return VectorSettings.model_validate(self.model_dump(include=set(VectorSettings.model_fields)))


class VectorConfig(BlendConfig):
    """Machine that vectors are relative to, seed, and whether to train."""

    relative_to: str = _RELATIVE_TO
    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")
    retrain: bool = Field(
        default=False,
        description="Train anew. Otherwise machines that landed since the training join the champion by heads made of "
        "their few runs, in seconds; where none did, nothing is made",
    )
    added_machine: str = Field(default="", description="Train nothing: let this machine join the champion")

    def request(self) -> vectors.VectorRequest:
        """Request as workflows take it."""
        return vectors.VectorRequest(
            relative_to=self.relative_to,
            seed=self.seed,
            settings=self.settings(),
            retrain=self.retrain,
            added_machine=self.added_machine,
        )


class VectorScoresConfig(BlendConfig):
    """Extent of the evaluation."""

    relative_to: str = _RELATIVE_TO
    seeds: int = Field(default=1, ge=1, description="Repetitions, each with another split")
    protocols: list[str] = Field(
        default=["sample", "app"], description="What is held out: sample (configurations), app (applications)"
    )


@one_asset(
    model_spec(
        VECTOR,
        "From the counters of one run on any machine, its times on all machines: sigma-VAE + DNN, trees and models "
        "of pairs, blended on held-out rows; with intervals and a ranking. Machines that land join the champion by "
        "themselves; the weekly schedule trains anew. Registered in MLflow as perf-relative-vector, first as "
        "@challenger.",
        {"mlflow", "pytorch", "xgboost"},
        _INPUTS,
        skippable=True,
        automation_condition=WHEN_CHECKED_INPUT_CHANGES,
    )
)
def model_vector__relative(
    context: dg.AssetExecutionContext, config: VectorConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Train and register, or let machines join; nothing where there is nothing new."""
    made = vectors.make(lake.fleet(), config.request(), context.log.info)
    context.log.info(made.reason)
    if made.version is not None:
        yield dg.MaterializeResult(metadata=_shown(made) | lake.fleet().provenance())


@one_asset(
    asset_spec(VECTOR_VERDICTS, {"mlflow", "parquet"}, [VECTOR], automation_condition=WHEN_INPUT_CHANGES), pool=POOL
)
def eval_vector__verdicts(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare the newest model with the champion and the mean vector; promote it, or leave it a challenger."""
    from perf_assets.registry.vector import NAME

    rows = vectors.judge(lake.fleet())
    return verdict_result(context, NAME, rows, stored_at(lake.lake(), VECTOR_VERDICTS), _VERDICT_COLUMNS)


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
    settings, say = config.settings(), context.log.info
    made = vectors.score(lake.fleet(), config.relative_to, settings, config.seeds, config.protocols, say)
    for table, scored in zip((VECTOR_SCORES, VECTOR_GROWTH), made, strict=True):
        yield dg.MaterializeResult(
            asset_key=table.name,
            metadata={
                "dagster/row_count": len(scored.rows),
                "scores": dg.MetadataValue.md(markdown_rows(scored.means, ".3f")),
                **page_metadata(scored.page),
                "record": dg.MetadataValue.path(stored_at(lake.lake(), table)),
                **lake.fleet().provenance(),
            },
        )


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(
            "not_worse",
            asset=VECTOR,
            description="The newest model is not worse than the champion and the mean vector on held-out samples; "
            "otherwise it stays @challenger",
            additional_deps=[VECTOR_VERDICTS.name],
        ),
        dg.AssetCheckSpec(
            "is_current",
            asset=VECTOR,
            description="The champion was trained lately and covers every machine with enough runs",
            additional_deps=[VECTOR_VERDICTS.name],
        ),
    ],
    name="check_vector_model",
)
def check_vector_model(lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The last verdict with its numbers, and what makes the champion stale."""
    if not has_rows(lake.lake(), VECTOR_VERDICTS):
        raise dg.Failure("no vector model was judged yet: run 'perf-assets vectors'")
    last = stored(lake.lake(), VECTOR_VERDICTS, "perf-assets vectors").iloc[-1]
    yield dg.AssetCheckResult(
        asset_key=VECTOR,
        check_name="not_worse",
        passed=last["decision"] == PROMOTED,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "reason": str(last["reason"]),
            "version": int(last["version"]),
            **{name: float(last[name]) for name in _NUMBERS if last[name] == last[name]},
        },
    )
    now = vectors.state(lake.warehouse(), load_freshness(lake.lake().root).vector_days)
    problems = now.problems(datetime.now(UTC))
    yield dg.AssetCheckResult(
        asset_key=VECTOR,
        check_name="is_current",
        passed=now.version is not None and not problems,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "problems": "; ".join(problems) or "none",
            "limit_days": now.limit_days,
            "absent_machines": ", ".join(now.absent_machines) or "none",
            "what_to_do": "the weekly training fixes it, or 'perf-assets vectors'" if problems else "nothing",
        },
    )


def _shown(made: vectors.Made) -> Metadata:
    assert made.version is not None
    assert made.model is not None
    version, model = made.version, made.model
    metadata: Metadata = version_metadata(version) | {
        "relative_to": model.reference,
        "what_was_done": made.reason,
    }
    if made.trained is not None:
        metadata["scores_on_held_out"] = dg.MetadataValue.md(markdown_rows(made.trained.scores, ".3f"))
        for name, blend in model.blends.items():
            metadata |= {
                f"times of a new {name}": str(dict(blend.weights)),
                f"order of a new {name}": str(dict(blend.order_weights)),
            }
    if made.joined:
        metadata["joined"] = ", ".join(made.joined)
        metadata["shots_count"] = sum(model.heads[machine]["configuration"].shots_count for machine in made.joined)
        metadata["weights_of_known_machines"] = dg.MetadataValue.md(markdown_rows(_alike(model, made.joined), ".2f"))
    return metadata


def _alike(model: "VectorModel", joined: tuple[str, ...]) -> pd.DataFrame:
    """Known machines that resemble each machine that joined."""
    return pd.DataFrame(
        [
            {"machine": machine, "new": name, "known": known, "weight": weight}
            for machine in joined
            for name, head in model.heads[machine].items()
            for known, weight in zip(model.trained_machines, head.weights, strict=True)
        ]
    )
