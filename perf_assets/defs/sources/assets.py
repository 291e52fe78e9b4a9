"""Assets of machine models and source models: the AMM encoder, AMMs, and what is registered in MLflow."""

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.landing import TIMINGS
from perf_assets.core.tables.models import AMMS, BEHAVES_LIKE, FEATURE_MASKS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import FOLLOWS, FOLLOWS_CHECKED
from perf_assets.defs.failures import explained
from perf_assets.defs.links import run_link, version_link
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, PREVIEW_ROWS, asset_spec, model_spec
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store, stored
from perf_assets.storage.source_pool import freeze

ENCODER = "model_amm__encoder"
MAP = "out_amm__machines"
WITH_AMM, WITHOUT_AMM = "model_source__with_amm", "model_source__without_amm"
_ENCODER_FILE = "amm_encoder.npz"


class TrainingConfig(dg.Config):
    """What is random."""

    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")


@dg.multi_asset(
    specs=[
        model_spec(
            ENCODER,
            "Encoder of RAJAPerf results, trained on the machines that are known and frozen. The options of "
            "Algorithm 1 are chosen on machines that are held out.",
            {"pytorch"},
            FLEET,
        )
    ],
    name="train_amm_encoder",
)
@explained
def train_amm_encoder(
    context: dg.AssetExecutionContext, config: TrainingConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Choose the options, train, store."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.amm.encoder import fit_encoder
    from perf_assets.models.source.amm_options import choose_options

    samples = fleet_samples(lake.fleet_tables())
    options, tried = choose_options(samples, config.seed, context.log.info)
    encoder = fit_encoder(samples, options, seed=config.seed)
    path = lake.lake().models / _ENCODER_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder.save(path)
    return dg.MaterializeResult(
        metadata={
            "version": encoder.version,
            "options": f"{options.weighting}, {options.normalize}",
            "tried": dg.MetadataValue.md(markdown_rows(tried)),
            "machines": ", ".join(samples.machines[machine] for machine in samples.encoder_machines),
            "left_out": "; ".join(samples.notes) or "none",
            "file": dg.MetadataValue.path(path),
        },
        data_version=dg.DataVersion(encoder.version),
    )


@dg.multi_asset(
    specs=[
        asset_spec(AMMS, {"pytorch", "parquet"}, [TIMINGS.name, ENCODER]).replace_attributes(
            skippable=True, automation_condition=FOLLOWS_CHECKED
        )
    ],
    partitions_def=machines,
    name="describe_machine",
    pool="warehouse",
)
@explained
def describe_machine(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[None]]:
    """Pass a machine's RAJAPerf results through the frozen encoder, whether or not it was trained on them."""
    machine, encoder_file = context.partition_key, lake.lake().models / _ENCODER_FILE
    if not encoder_file.is_file():
        context.log.info(f"no AMM of {machine}: there is no encoder yet, run 'perf-assets train'")
        return
    kernels = lake.fleet_tables(machine).kernels
    if kernels.empty:
        context.log.info(f"no AMM of {machine}: it has no RAJAPerf run")
        return
    from perf_assets.features.fleet.samples import benchmark_samples
    from perf_assets.models.amm.encoder import AmmEncoder
    from perf_assets.models.amm.rows import amm_rows

    try:
        rows = amm_rows(AmmEncoder.load(encoder_file), benchmark_samples(kernels))
    except BadInputError as error:
        # What landed is good all the same: the machine is ingested, it only cannot be described.
        context.log.warning(f"no AMM of {machine}: {error}")
        return
    rows = rows.assign(machine=machine, is_simulated=lake.is_simulated(machine))
    path = store(lake.lake(), lake.warehouse(), AMMS, rows, machine)
    version = str(rows["encoder_version"].iloc[0])
    yield dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "encoder_version": version,
            "was_in_training": bool(rows["was_in_training"].all()),
            "vector": dg.MetadataValue.md(markdown_rows(rows)),
            "record": dg.MetadataValue.path(path),
        },
        data_version=dg.DataVersion(digest_of(rows.to_csv(index=False).encode())),
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
            FLEET,
        ),
        model_spec(
            WITH_AMM,
            "Source model with machine models: a blend of attention over RAJAPerf kernels, trees with AMMs and closed "
            "forms, weighted by cross-validation. Registered in MLflow as perf-source@with-amm.",
            {"mlflow", "pytorch", "xgboost"},
            [*FLEET, ENCODER],
        ).replace_attributes(
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(days=15), warn_window=timedelta(days=8)
            )
        ),
        asset_spec(BEHAVES_LIKE, {"pytorch", "parquet"}, [WITH_AMM]),
        asset_spec(FEATURE_MASKS, {"pytorch", "parquet"}, FLEET),
    ],
    name="train_source_models",
)
@explained
def train_source_models(
    context: dg.AssetExecutionContext, config: TrainingConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Choose on held-out applications and machines, fit, register, and show what the models look at."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.amm.encoder import AmmEncoder
    from perf_assets.models.source.explanations import behaves_like, feature_masks
    from perf_assets.models.source.training import train_source
    from perf_assets.registry.source import register_source
    from perf_assets.registry.store import open_store
    from perf_assets.reports.site import data_uri
    from perf_assets.reports.xamm.source_scores import source_scores

    open_store()
    tables = lake.fleet_tables()
    samples = fleet_samples(tables)
    encoder = AmmEncoder.load(lake.lake().models / _ENCODER_FILE)
    trained = train_source(samples, encoder.options, config.seed, context.log.info)
    provenance = lake.provenance() | {"seed": str(config.seed), "encoder_version": encoder.version}
    provenance |= {"dagster_run_id": context.run.run_id, "dagster_run": run_link(context.run.run_id)}
    scores = data_uri(lambda target: source_scores(trained.scores, target))
    data_version = digest_of(f"{samples.digest} {encoder.version} {config.seed}".encode())
    for name, with_amm in ((WITHOUT_AMM, False), (WITH_AMM, True)):
        version = register_source(trained, samples, provenance, with_amm=with_amm)
        if with_amm:
            frames = {"runs": tables.runs, "kernels": tables.kernels, "specs": tables.specs}
            freeze(lake.lake(), frames, provenance | {"source_version": str(version.version)})
        yield dg.MaterializeResult(
            asset_key=name,
            data_version=dg.DataVersion(data_version),
            metadata={
                "mlflow_version": f"{version.name} version {version.version}",
                "mlflow_uri": version.uri,
                "mlflow": dg.MetadataValue.url(version_link(version.name, version.version)),
                "mape_on_held_out": dg.MetadataValue.md(f"![scores]({scores})"),
                "scores_on_held_out": dg.MetadataValue.md(markdown_rows(trained.scores, ".3f")),
                "selection_seconds": trained.selection_seconds,
                "fit_seconds": trained.fit_seconds,
                **provenance,
            },
        )
    for table, rows in ((BEHAVES_LIKE, behaves_like(samples, trained.model)), (FEATURE_MASKS, feature_masks(samples))):
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
