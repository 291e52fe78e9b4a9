"""Assets of datasets: their tables, models adapted from other datasets, verdicts, learning curves, pages."""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, BusyError, RegistryError, UnreadableFileError
from perf_assets.core.tables.datasets import DATASET_SCORES, DATASET_VERDICTS, MODELX_TABLE
from perf_assets.core.tables.landing import BUNDLES, COUNTERS, RUNS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import WHEN_DATASET_HAS_MODEL
from perf_assets.defs.ingest.checks import made_or_not, partitioned_spec
from perf_assets.defs.links import measured_metadata, page_metadata, registered_metadata, run_tags
from perf_assets.defs.partitions import datasets
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import POOL, PREVIEW_ROWS, Metadata, asset_spec, model_spec, one_asset
from perf_assets.defs.targets.assets import NOT_MADE, AdaptationConfig
from perf_assets.defs.verdicts import curve_result, verdict_check, verdict_result
from perf_assets.storage.datasets import ROWS, assembled, store_dataset
from perf_assets.storage.results import stored_at

ADAPTED = "model_transfer__adapted"
PAGE = "out_report__dataset"
CAN_BE_ADAPTED, HAS_DATASETS = "can_be_adapted", "has_datasets"
_ALL = dg.AllPartitionMapping()


class CurveConfig(dg.Config):
    """Extent of the evaluation."""

    seeds: int = Field(default=3, ge=1, description="Random draws of shots")


class ModelxConfig(CurveConfig):
    """Extent of the evaluation, and its datasets."""

    shots: list[str] = Field(default=["1%", "5%"], description="Rows of a target to learn from: N or P%")
    targets: list[str] = Field(default=[], description="Only these datasets are targets")


@one_asset(
    model_spec(
        ROWS,
        "A dataset as a plain table: all rows of the tables of samples that belong to it, words as words. Its "
        "features and its target are its own.",
        {"parquet"},
        deps=[dg.AssetDep(table.name, partition_mapping=_ALL) for table in (BUNDLES, RUNS, COUNTERS)],
    ),
    partitions_def=datasets,
)
def core_datasets__rows(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Put the rows of a dataset together and store them."""
    dataset = assembled(lake.warehouse(), context.partition_key)
    path = store_dataset(lake.lake(), dataset)
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(dataset.frame),
            "target_column": dataset.target_column,
            "columns_count": len(dataset.frame.columns),
            "bundles_count": len(dataset.bundles),
            "is_simulated": dataset.is_simulated,
            "notes": "; ".join(dataset.notes) or "none",
            "preview": dg.MetadataValue.md(markdown_rows(dataset.frame.iloc[:PREVIEW_ROWS, :12])),
            "record": dg.MetadataValue.path(path),
        },
        data_version=dg.DataVersion(dataset.digest),
    )


@one_asset(
    model_spec(
        ADAPTED,
        "Model of a dataset, adapted from other datasets: all, or those that datasets.yaml names. All rows of the "
        "dataset so far are shots. Registered in MLflow as perf-transfer-DATASET, first as @challenger.",
        {"mlflow", "python"},
        skippable=True,
        deps=[dg.AssetDep(ROWS, partition_mapping=_ALL)],
    ),
    partitioned_spec(
        ADAPTED,
        CAN_BE_ADAPTED,
        "There is another dataset to adapt from, and enough rows that can be learned",
        blocking=False,
        partitions=datasets,
    ),
    partitions_def=datasets,
)
def model_transfer__adapted(
    context: dg.AssetExecutionContext, config: AdaptationConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Adapt and register; a dataset that cannot be adapted yet says why in a check, and goes on without."""
    from perf_assets.workflows.models.datasets import make_transfer

    name = context.partition_key
    seed, is_lazy = config.seed, config.only_if_changed
    try:
        made = make_transfer(lake.lake(), name, run_tags(context), context.log.info, seed=seed, only_if_changed=is_lazy)
    except (RegistryError, BusyError, UnreadableFileError):
        raise
    except BadInputError as error:
        context.log.warning(f"no model of the dataset {name}: {error}")
        context.log_event(dg.AssetObservation(ADAPTED, partition=name, metadata={NOT_MADE: str(error)}))
        yield made_or_not(ADAPTED, CAN_BE_ADAPTED, str(error))
        return
    kept = {"kept": "this version was made of the same data"} if made.is_kept else {}
    shown = measured_metadata(made.name, made.version) | registered_metadata(made.name, made.version)
    shown |= {**kept, **made.facts}
    yield dg.MaterializeResult(asset_key=ADAPTED, metadata=shown, data_version=dg.DataVersion(made.digest))
    yield made_or_not(ADAPTED, CAN_BE_ADAPTED)


@one_asset(
    asset_spec(DATASET_VERDICTS, {"mlflow", "parquet"}, [ADAPTED, ROWS], automation_condition=WHEN_DATASET_HAS_MODEL),
    partitions_def=datasets,
    pool=POOL,
)
def eval_dataset__verdicts(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare the newest model with the champion and with baselines; promote it, or leave it a challenger."""
    from perf_assets.registry.transfer import registered_name
    from perf_assets.workflows.models.datasets import judge_dataset

    name = context.partition_key
    rows = judge_dataset(lake.fleet(), name)
    return verdict_result(context, registered_name(name), rows, stored_at(lake.lake(), DATASET_VERDICTS, name))


@one_asset(
    asset_spec(DATASET_SCORES, {"parquet"}, skippable=True, deps=[dg.AssetDep(ROWS, partition_mapping=_ALL)]),
    partitions_def=datasets,
)
def eval_dataset__scores(
    context: dg.AssetExecutionContext, config: CurveConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Error over the number of rows, beside baselines on the same test rows; none for a dataset with too few."""
    from perf_assets.workflows.pages.dataset_pages import score_dataset

    name = context.partition_key
    try:
        rows = score_dataset(lake.fleet(), name, config.seeds, context.log.info)
    except UnreadableFileError:
        raise
    except BadInputError as error:
        context.log.warning(f"no scores of the dataset {name}: {error}")
        return
    yield curve_result(rows, ["method"], stored_at(lake.lake(), DATASET_SCORES, name))


@one_asset(
    model_spec(
        PAGE,
        "Page of a dataset: its model, severity, candidates, learning curve, alignment of features, what to "
        "measure next, what became of its models.",
        {"html"},
        deps=[dg.AssetDep(ROWS, partition_mapping=_ALL), ADAPTED, DATASET_VERDICTS.name, DATASET_SCORES.name],
    ),
    partitions_def=datasets,
)
def out_report__dataset(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page of a dataset that has a model."""
    from perf_assets.workflows.pages.dataset_pages import write_dataset_page

    path = write_dataset_page(lake.lake(), context.partition_key)
    return dg.MaterializeResult(metadata=page_metadata(path))


@one_asset(
    asset_spec(MODELX_TABLE, {"parquet", "html"}, [ROWS], skippable=True),
    dg.AssetCheckSpec(
        HAS_DATASETS, asset=MODELX_TABLE.name, description="There are two datasets to transfer between, at least"
    ),
)
def eval_modelx__table(
    context: dg.AssetExecutionContext, config: ModelxConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Each dataset in turn is the target, all others are its sources; where there are too few, a check says so."""
    from perf_assets.workflows.pages.dataset_pages import make_modelx_table

    try:
        made = make_modelx_table(lake.fleet(), config.shots, config.seeds, context.log.info, config.targets)
    except BadInputError as error:
        context.log.warning(str(error))
        context.log_event(dg.AssetObservation(MODELX_TABLE.name, metadata={NOT_MADE: str(error)}))
        yield made_or_not(MODELX_TABLE.name, HAS_DATASETS, str(error))
        return
    metadata: Metadata = {
        "dagster/row_count": len(made.rows),
        "notes": "; ".join(made.notes) or "none",
        "table": dg.MetadataValue.md(markdown_rows(made.rows, ".3f")),
        **page_metadata(made.page),
        "record": dg.MetadataValue.path(stored_at(lake.lake(), MODELX_TABLE)),
    }
    yield dg.MaterializeResult(asset_key=MODELX_TABLE.name, metadata=metadata)
    yield made_or_not(MODELX_TABLE.name, HAS_DATASETS)


check_dataset = verdict_check("check_dataset", ADAPTED, DATASET_VERDICTS, datasets, "rows")
