"""Assets of machine models and source models: the AMM encoder, AMMs, and the models registered in MLflow."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, RegistryError, UnreadableFileError
from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.models import AMMS, BEHAVES_LIKE, FEATURE_MASKS
from perf_assets.core.tables.runs import ENVIRONMENTS, FEATURES
from perf_assets.core.tables.schema import Table
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import WHEN_DATA_LANDS, WHEN_INPUT_CHANGES
from perf_assets.defs.failures import explained
from perf_assets.defs.ingest.checks import made_or_not, partitioned_spec
from perf_assets.defs.links import (
    measured_metadata,
    note_checklist,
    page_metadata,
    picture_metadata,
    run_tags,
    version_metadata,
)
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, POOL, PREVIEW_ROWS, Metadata, as_event, asset_spec, model_spec, one_asset
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored_at

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.source.settings import SourceSettings
    from perf_assets.workflows.models.train import RegisteredSource

ENCODER = "model_amm__encoder"
MAP = "out_amm__machines"
WITH_AMM, WITHOUT_AMM = "model_source__with_amm", "model_source__without_amm"
INPUTS = "model_source__inputs"


class TrainingConfig(dg.Config):
    """Options of a training."""

    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")


class EncoderConfig(TrainingConfig):
    """Settings for training the encoder."""

    choose_options: bool = Field(
        default=True,
        description="Choose the options of Algorithm 1 on machines that are held out; otherwise they are the paper's",
    )


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


@one_asset(
    model_spec(
        ENCODER,
        "Encoder of RAJAPerf results, trained on the machines that are known and frozen. The options of "
        "Algorithm 1 are chosen on machines that are held out. Registered in MLflow as perf-amm; all machines are "
        "described by it in the same step.",
        {"mlflow", "pytorch"},
        FLEET,
    )
)
def model_amm__encoder(
    context: dg.AssetExecutionContext, config: EncoderConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Choose the options, train, register; then describe every machine, so that later steps find them described."""
    from perf_assets.workflows.machines.describe import train_and_register_encoder

    fleet = lake.fleet()
    tags = fleet.provenance() | {"seed": str(config.seed), **run_tags(context)}
    chooses = config.choose_options
    made = train_and_register_encoder(fleet.tables(), config.seed, tags, context.log.info, chooses_options=chooses)
    for machine in fleet.lake.machines():
        for result in _described(context, lake, machine):
            context.log_event(as_event(result, AMMS.name, machine))
    encoder = made.trained.encoder
    metadata: Metadata = {
        "version": encoder.version,
        "options": encoder.options.name,
        "tried": dg.MetadataValue.md(markdown_rows(made.trained.tried)),
        "machines": ", ".join(made.machines),
        "left_out": "; ".join(made.left_out) or "none",
    }
    data_version = dg.DataVersion(encoder.version)
    return dg.MaterializeResult(metadata=metadata | version_metadata(made.version), data_version=data_version)


@one_asset(
    asset_spec(
        AMMS,
        {"pytorch", "parquet"},
        [TIMINGS.name, ENVIRONMENTS.name, SPECS.name, ENCODER],
        skippable=True,
        automation_condition=WHEN_DATA_LANDS,
    ),
    partitioned_spec(
        AMMS.name,
        "is_described",
        "The machine has enough RAJAPerf runs to be described; otherwise which are missing",
        blocking=False,
    ),
    partitions_def=machines,
    pool=POOL,
)
def model_amm__machines(
    context: dg.AssetExecutionContext, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Say what a machine is like, by the frozen encoders in use, whether or not they were trained on it.

    One that cannot be described has no rows, and its check says why; later steps may do without.
    """
    from perf_assets.workflows.machines.describe import has_encoder
    from perf_assets.workflows.machines.readiness import Readiness

    machine, missing = context.partition_key, "cannot be described"
    for result in _described(context, lake, machine):
        missing = ""
        yield result
    if missing:
        ready = Readiness.of(lake.fleet(), machine)
        missing = next((item.sentence for item in (ready.kernels, ready.sources) if not item.is_done), missing)
        note_checklist(context, lake, machine)
        if has_encoder():
            counted: Metadata = {"dagster/partition_row_count": 0, "missing": missing}
            yield dg.MaterializeResult(metadata=counted, data_version=dg.DataVersion("not described"))
    yield made_or_not(AMMS.name, "is_described", missing)


def _described(
    context: dg.AssetExecutionContext, lake: LakeResource, machine: str
) -> Iterator[dg.MaterializeResult[None]]:
    """Store a machine's description; one that cannot be described says why and goes on without."""
    from perf_assets.workflows.machines.describe import describe_machine, digest_of_rows

    try:
        rows = describe_machine(lake.fleet(), machine)
    except (RegistryError, UnreadableFileError):
        raise
    except BadInputError as error:
        # What landed is good all the same: the machine is ingested, it only cannot be described.
        context.log.warning(str(error))
        return
    amms = rows[rows["is_chosen"]]
    yield dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "encoder_versions": ", ".join(rows["encoder_version"].unique()),
            "was_in_training": bool(amms["was_in_training"].all()),
            "vector": dg.MetadataValue.md(markdown_rows(amms[["encoder_version", "seen_as", "item", "value"]])),
        },
        data_version=dg.DataVersion(digest_of_rows(rows)),
    )


@one_asset(
    model_spec(
        MAP,
        "AMMs of all machines in one file (Parquet and JSON), and on a page: a heat map, a map of machines.",
        {"parquet", "matplotlib"},
        [AMMS.name],
        automation_condition=WHEN_INPUT_CHANGES,
    )
)
def out_amm__machines(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the files and draw the pictures."""
    from perf_assets.workflows.machines.describe import draw_machines

    drawn = draw_machines(lake.lake())
    return dg.MaterializeResult(
        metadata={
            "machines_count": drawn.machines_count,
            "described_by_another_encoder": ", ".join(drawn.stale) or "none",
            **page_metadata(drawn.page),
            "map": picture_metadata(lake.lake(), "amm-map", "Machines", drawn.on_a_map.png),
            "heat_map": picture_metadata(lake.lake(), "amm-vectors", "AMMs", drawn.heat_map.png),
            "json": dg.MetadataValue.path(drawn.page.with_suffix(".json")),
            "parquet": dg.MetadataValue.path(drawn.page.with_suffix(".parquet")),
        }
    )


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
