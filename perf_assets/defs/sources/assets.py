"""Assets of machine models and source models: the AMM encoder, AMMs, and what is registered in MLflow."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, RegistryError, UnreadableFileError
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.models import AMMS, BEHAVES_LIKE, FEATURE_MASKS
from perf_assets.core.tables.runs import FEATURES
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import FOLLOWS, FOLLOWS_LANDING
from perf_assets.defs.failures import explained
from perf_assets.defs.links import run_tags, version_metadata
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, PREVIEW_ROWS, asset_spec, model_spec
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store, stored

if TYPE_CHECKING:
    from perf_assets.models.source.settings import SourceSettings

ENCODER = "model_amm__encoder"
MAP = "out_amm__machines"
WITH_AMM, WITHOUT_AMM = "model_source__with_amm", "model_source__without_amm"
INPUTS = "model_source__inputs"


class TrainingConfig(dg.Config):
    """What is random."""

    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")


class SourceConfig(TrainingConfig):
    """What a training of source models tries."""

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
        """As workflows take them."""
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
            ENCODER,
            "Encoder of RAJAPerf results, trained on the machines that are known and frozen. The options of "
            "Algorithm 1 are chosen on machines that are held out. Registered in MLflow as perf-amm; all machines are "
            "described by it in the same step.",
            {"mlflow", "pytorch"},
            FLEET,
        )
    ],
    name="train_amm_encoder",
)
@explained
def train_amm_encoder(
    context: dg.AssetExecutionContext, config: TrainingConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Choose the options, train, register; then describe every machine, so that what follows finds them described."""
    from perf_assets.workflows.describe import train_and_register_encoder

    tags = lake.provenance() | {"seed": str(config.seed), **run_tags(context)}
    made = train_and_register_encoder(lake.fleet_tables(), config.seed, tags, context.log.info)
    for machine in lake.lake().machines():
        for result in _described(context, lake, machine):
            assert result.data_version is not None
            version = {"dagster/data_version": result.data_version.value}
            context.log_event(
                dg.AssetMaterialization(AMMS.name, partition=machine, metadata=result.metadata, tags=version)
            )
    encoder = made.trained.encoder
    return dg.MaterializeResult(
        metadata={
            "version": encoder.version,
            "options": encoder.options.name,
            "tried": dg.MetadataValue.md(markdown_rows(made.trained.tried)),
            "machines": ", ".join(made.machines),
            "left_out": "; ".join(made.left_out) or "none",
            **version_metadata(made.version),
        },
        data_version=dg.DataVersion(encoder.version),
    )


@dg.multi_asset(
    specs=[
        asset_spec(AMMS, {"pytorch", "parquet"}, [TIMINGS.name, SPECS.name, ENCODER]).replace_attributes(
            skippable=True, automation_condition=FOLLOWS_LANDING
        )
    ],
    partitions_def=machines,
    name="describe_machine",
    pool="warehouse",
)
@explained
def describe_machine(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[None]]:
    """Say what a machine is like, by the frozen encoders in use, whether or not they were trained on it."""
    yield from _described(context, lake, context.partition_key)


def _described(
    context: dg.AssetExecutionContext, lake: LakeResource, machine: str
) -> Iterator[dg.MaterializeResult[None]]:
    """Store a machine's description; one that cannot be described says why and goes on without."""
    from perf_assets.workflows.describe import describe, digest_of_rows

    try:
        rows = describe(lake.lake(), machine, *lake.benchmark(machine), is_simulated=lake.is_simulated(machine))
    except (RegistryError, UnreadableFileError):
        raise
    except BadInputError as error:
        # What landed is good all the same: the machine is ingested, it only cannot be described.
        context.log.warning(str(error))
        return
    lake.warehouse().load_results(AMMS)
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


@dg.multi_asset(
    specs=[
        model_spec(
            MAP,
            "AMMs of all machines in one file (Parquet and JSON), and on a page: a heat map, a map of machines.",
            {"parquet", "matplotlib"},
            [AMMS.name],
        ).replace_attributes(automation_condition=FOLLOWS)
    ],
    name="draw_machines",
)
@explained
def draw_machines(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the files and draw the pictures."""
    from perf_assets.reports.xamm.amm_charts import amm_page, map_chart, vectors_chart
    from perf_assets.storage.amm_files import export_amms, of_one_encoder

    rows, stale = of_one_encoder(stored(lake.lake(), AMMS, "perf-assets train"))
    vectors = export_amms(rows, lake.lake().reports / "amm.json")
    export_amms(rows, lake.lake().reports / "amm.parquet")
    heat_map, on_a_map = vectors_chart("amm", vectors), map_chart("amm", vectors)
    path = store_page(lake.lake(), "amm.html", amm_page(rows, heat_map, on_a_map))
    return dg.MaterializeResult(
        metadata={
            "machines_count": len(vectors),
            "described_by_another_encoder": ", ".join(stale) or "none",
            "page": dg.MetadataValue.path(path),
            "open": dg.MetadataValue.url(path.as_uri()),
            "heat_map": dg.MetadataValue.md(f"![AMMs]({heat_map.picture_address})"),
            "map": dg.MetadataValue.md(f"![Machines]({on_a_map.picture_address})"),
            "json": dg.MetadataValue.path(lake.lake().reports / "amm.json"),
            "parquet": dg.MetadataValue.path(lake.lake().reports / "amm.parquet"),
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
        ).replace_attributes(
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(days=15), warn_window=timedelta(days=8)
            )
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
    from perf_assets.models.source.training import behaves_like, feature_masks
    from perf_assets.reports.site import data_uri
    from perf_assets.reports.xamm.source_scores import source_scores
    from perf_assets.workflows.train import train_and_register

    tags = lake.provenance() | run_tags(context)
    settings = config.settings()
    made = train_and_register(lake.lake(), lake.fleet_runs(), settings, tags, context.log.info)
    scores = data_uri(lambda target: source_scores(made.trained.scores, target))
    data_version = digest_of(f"{made.samples.digest} {made.encoder_version} {settings.model_dump_json()}".encode())
    for name, with_amm in ((WITHOUT_AMM, False), (WITH_AMM, True)):
        yield dg.MaterializeResult(
            asset_key=name,
            data_version=dg.DataVersion(data_version),
            metadata={
                **version_metadata(made.versions[with_amm]),
                "made_with": f"perf-amm version {made.encoder_number}, {made.encoder_version}",
                "mape_on_held_out": dg.MetadataValue.md(f"![scores]({scores})"),
                "scores_on_held_out": dg.MetadataValue.md(markdown_rows(made.trained.scores, ".3f")),
                "selection_seconds": made.trained.selection_seconds,
                "fit_seconds": made.trained.fit_seconds,
                **tags,
            },
        )
    errors = {f"log_rmse of unseen {unseen}": blend for unseen, (blend, _) in made.log_errors.items()}
    plain = {f"threshold of unseen {unseen}": threshold for unseen, (_, threshold) in made.log_errors.items()}
    yield dg.AssetCheckResult(
        asset_key=WITH_AMM, check_name="not_worse", passed=made.is_not_worse, metadata={**errors, **plain}
    )
    explained_by = (
        (BEHAVES_LIKE, behaves_like(made.samples, made.trained.model, settings)),
        (FEATURE_MASKS, feature_masks(made.samples, made.embedded)),
    )
    for table, rows in explained_by:
        path = store(lake.lake(), lake.warehouse(), table, rows.assign(is_simulated=lake.is_simulated()))
        top = rows.sort_values("attention_ratio", ascending=False).groupby("app").head(PREVIEW_ROWS)
        yield dg.MaterializeResult(
            asset_key=table.name,
            metadata={
                "dagster/row_count": len(rows),
                "most_attention": dg.MetadataValue.md(markdown_rows(top.sort_values("app"), ".3f")),
                "record": dg.MetadataValue.path(path),
            },
        )


@dg.multi_asset(
    specs=[
        model_spec(
            INPUTS,
            "Inputs of downstream models (xAMM): per run and ordered pair of machines the embedding of the run, the "
            "AMM of both machines and the relative time. 'perf-assets export inputs' writes it into a file.",
            {"parquet"},
            [FEATURES.name, AMMS.name, WITH_AMM],
        )
    ],
    name="make_model_inputs",
)
@explained
def make_model_inputs(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Put embeddings, AMMs and relative times side by side."""
    from perf_assets.workflows.inputs import inputs_file, make_inputs

    rows = make_inputs(lake.lake(), lake.fleet_runs())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "preview": dg.MetadataValue.md(markdown_rows(rows.head(PREVIEW_ROWS), ".3f")),
            "file": dg.MetadataValue.path(inputs_file(lake.lake())),
        }
    )
