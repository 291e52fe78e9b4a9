"""Assets of datasets: their tables, models adapted from other datasets, verdicts, learning curves, pages."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, BusyError, RegistryError, UnreadableFileError
from perf_assets.core.tables.datasets import DATASET_SCORES, DATASET_VERDICTS, MODELX_TABLE
from perf_assets.core.tables.landing import BUNDLES, COUNTERS, RUNS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import FOLLOWS
from perf_assets.defs.failures import explained
from perf_assets.defs.ingest.checks import partitioned_spec
from perf_assets.defs.links import run_link, version_link
from perf_assets.defs.partitions import datasets
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.sources.assets import TrainingConfig
from perf_assets.defs.specs import PREVIEW_ROWS, Metadata, asset_spec, model_spec
from perf_assets.defs.targets.adaptation import NOT_MADE
from perf_assets.defs.targets.verdicts import shown
from perf_assets.infra.leases import leased
from perf_assets.storage.datasets import ROWS, assembled, store_dataset
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store

ADAPTED = "model_transfer__adapted"
PAGE = "out_report__dataset"
CAN_BE_ADAPTED, HAS_DATASETS = "can_be_adapted", "has_datasets"
_LOCK_WAIT_SECONDS = 3600.0
_ALL = dg.AllPartitionMapping()


class DatasetConfig(TrainingConfig):
    """When to fit."""

    only_if_changed: bool = Field(
        default=True, description="Keep the registered version where it was made of the same data"
    )


class CurveConfig(dg.Config):
    """How much to compute."""

    seeds: int = Field(default=3, ge=1, description="Random draws of shots")


class ModelxConfig(dg.Config):
    """How much to compute."""

    seeds: int = Field(default=3, ge=1, description="Random draws of shots")
    shots: list[str] = Field(default=["1%", "5%"], description="Rows of a target to learn from: N or P%")
    targets: list[str] = Field(default=[], description="Only these datasets are targets")


def _alone(lake: LakeResource, dataset: str) -> AbstractContextManager[object]:
    """Alone among all processes that make or judge models of a dataset."""
    lock = lake.lake().locks / f"transfer-{dataset}.lock"
    return leased(lock, f"adaptation of the dataset {dataset}", _LOCK_WAIT_SECONDS)


@dg.multi_asset(
    specs=[
        model_spec(
            ROWS,
            "A dataset as a plain table: all rows of the tables of samples that belong to it, words as words. Its "
            "features and its target are its own.",
            {"parquet"},
            [],
        ).replace_attributes(
            deps=[dg.AssetDep(table.name, partition_mapping=_ALL) for table in (BUNDLES, RUNS, COUNTERS)]
        )
    ],
    partitions_def=datasets,
    name="assemble_dataset",
)
@explained
def assemble_dataset(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
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


@dg.multi_asset(
    specs=[
        model_spec(
            ADAPTED,
            "Model of a dataset, adapted from other datasets: all, or those that datasets.yaml names. All rows of the "
            "dataset so far are shots. Registered in MLflow as perf-transfer-DATASET, first as @challenger.",
            {"mlflow", "python"},
            [],
        ).replace_attributes(skippable=True, deps=[dg.AssetDep(ROWS, partition_mapping=_ALL)])
    ],
    check_specs=[
        partitioned_spec(
            ADAPTED,
            CAN_BE_ADAPTED,
            "There is another dataset to adapt from, and enough rows that can be learned",
            blocking=False,
            partitions=datasets,
        )
    ],
    partitions_def=datasets,
    name="adapt_dataset",
)
@explained
def adapt_dataset(
    context: dg.AssetExecutionContext, config: DatasetConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Adapt and register; a dataset that cannot be adapted yet says why in a check, and goes on without."""
    from perf_assets.registry.transfer import made_of, register_transfer
    from perf_assets.workflows import transfer

    name = context.partition_key
    try:
        inputs = transfer.transfer_inputs(lake.lake(), name, config.seed)
        with _alone(lake, name):
            version = made_of(name, inputs.digest) if config.only_if_changed else None
            metadata: Metadata = {"is_kept": version is not None}
            if version is None:
                adapted = transfer.adapt_dataset(inputs, context.log.info)
                run_id = context.run.run_id
                tags = transfer.dataset_tags(inputs) | {"dagster_run_id": run_id, "dagster_run": run_link(run_id)}
                version = register_transfer(adapted, tags, transfer.papers(adapted, tags)).version
                metadata |= {"rows_count": len(adapted.rows), "chosen": adapted.chosen, **tags}
                metadata |= {"sources": " + ".join(adapted.sources), "severity": adapted.severity or "not known"}
    except (RegistryError, BusyError, UnreadableFileError):
        raise
    except BadInputError as error:
        context.log.warning(f"no model of the dataset {name}: {error}")
        context.log_event(dg.AssetObservation(ADAPTED, partition=name, metadata={NOT_MADE: str(error)}))
        yield _can_be_adapted(str(error))
        return
    yield _registered(name, version, inputs.digest, metadata)
    yield _can_be_adapted(None)


@dg.multi_asset(
    specs=[
        asset_spec(DATASET_VERDICTS, {"mlflow", "parquet"}, [ADAPTED, ROWS]).replace_attributes(
            automation_condition=FOLLOWS
        )
    ],
    partitions_def=datasets,
    name="judge_dataset",
)
@explained
def judge_dataset(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare the newest model with the champion and with baselines; promote it, or leave it a challenger."""
    from perf_assets.workflows import transfer

    name = context.partition_key
    with _alone(lake, name):
        rows = transfer.judge_dataset(lake.lake(), name)
        path = store(lake.lake(), lake.warehouse(), DATASET_VERDICTS, rows, name)
    newest = rows.iloc[-1]
    context.log.info(f"perf-transfer-{name} version {newest['version']}: {newest['decision']}, {newest['reason']}")
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "decision": str(newest["decision"]),
            "reason": str(newest["reason"]),
            "history": dg.MetadataValue.md(shown(rows)),
            "record": dg.MetadataValue.path(path),
        },
        data_version=dg.DataVersion(f"version {newest['version']} {newest['decision']}"),
    )


@dg.multi_asset(
    specs=[
        asset_spec(DATASET_SCORES, {"parquet"}).replace_attributes(
            deps=[dg.AssetDep(ROWS, partition_mapping=_ALL), dg.AssetDep(ADAPTED)]
        )
    ],
    partitions_def=datasets,
    name="score_dataset",
)
@explained
def score_dataset(
    context: dg.AssetExecutionContext, config: CurveConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Error over the number of rows, beside baselines on the same test rows; none for a dataset with too few."""
    from perf_assets.workflows.transfer import transfer_inputs
    from perf_assets.workflows.transfer_report import learning_curve

    name = context.partition_key
    rows = learning_curve(transfer_inputs(lake.lake(), name), config.seeds, context.log.info)
    path = store(lake.lake(), lake.warehouse(), DATASET_SCORES, rows, name)
    table = rows.pivot_table(index="method", columns="shots", values="mape_ratio").reset_index()
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "mape_by_shots": dg.MetadataValue.md(markdown_rows(table, ".3f")),
            "record": dg.MetadataValue.path(path),
        }
    )


@dg.multi_asset(
    specs=[
        model_spec(
            PAGE,
            "Page of a dataset: its model, severity, candidates, learning curve, alignment of features, what to "
            "measure next, what became of its models.",
            {"html"},
            [],
        ).replace_attributes(
            deps=[
                dg.AssetDep(ROWS, partition_mapping=_ALL),
                *map(dg.AssetDep, (DATASET_VERDICTS.name, DATASET_SCORES.name)),
            ],
        )
    ],
    partitions_def=datasets,
    name="write_dataset_page",
)
@explained
def write_dataset_page(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page of a dataset that has a model."""
    from perf_assets.reports.datasets.page import dataset_page
    from perf_assets.workflows.transfer import transfer_inputs
    from perf_assets.workflows.transfer_report import dataset_facts

    name = context.partition_key
    facts = dataset_facts(lake.lake(), transfer_inputs(lake.lake(), name))
    path = store_page(lake.lake(), f"dataset-{name}.html", dataset_page(facts))
    return dg.MaterializeResult(
        metadata={"page": dg.MetadataValue.path(path), "open": dg.MetadataValue.url(path.as_uri())}
    )


@dg.multi_asset(
    specs=[asset_spec(MODELX_TABLE, {"parquet", "html"}, [ROWS]).replace_attributes(skippable=True)],
    check_specs=[
        dg.AssetCheckSpec(
            HAS_DATASETS, asset=MODELX_TABLE.name, description="There are two datasets to transfer between, at least"
        )
    ],
    name="make_modelx_table",
)
@explained
def make_modelx_table(
    context: dg.AssetExecutionContext, config: ModelxConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Each dataset in turn is the target, all others are its sources; where there are too few, a check says so."""
    from perf_assets.reports.modelx.page import modelx_page
    from perf_assets.workflows.transfer_report import lake_modelx

    try:
        found, rows = lake_modelx(lake.lake(), config.shots, config.seeds, context.log.info, config.targets)
    except BadInputError as error:
        context.log.warning(str(error))
        context.log_event(dg.AssetObservation(MODELX_TABLE.name, metadata={NOT_MADE: str(error)}))
        yield _check(MODELX_TABLE.name, HAS_DATASETS, str(error))
        return
    path = store(lake.lake(), lake.warehouse(), MODELX_TABLE, rows)
    origin = "simulated" if rows["is_simulated"].any() else "datasets of the lake"
    page = store_page(lake.lake(), "modelx.html", modelx_page(rows, origin=origin))
    yield dg.MaterializeResult(
        asset_key=MODELX_TABLE.name,
        metadata={
            "dagster/row_count": len(rows),
            "notes": "; ".join(found.notes) or "none",
            "table": dg.MetadataValue.md(markdown_rows(rows, ".3f")),
            "page": dg.MetadataValue.path(page),
            "open": dg.MetadataValue.url(page.as_uri()),
            "record": dg.MetadataValue.path(path),
        },
    )
    yield _check(MODELX_TABLE.name, HAS_DATASETS, None)


def _can_be_adapted(problem: str | None) -> dg.AssetCheckResult:
    return _check(ADAPTED, CAN_BE_ADAPTED, problem)


def _check(asset: str, name: str, problem: str | None) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=problem is None,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"why_not": problem} if problem else {},
    )


def _registered(dataset: str, version: int, inputs_digest: str, metadata: Metadata) -> dg.MaterializeResult[None]:
    from perf_assets.registry.transfer import registered_name

    name = registered_name(dataset)
    links: Metadata = {
        "mlflow_version": f"{name} version {version}",
        "mlflow_uri": f"models:/{name}/{version}",
        "mlflow": dg.MetadataValue.url(version_link(name, version)),
    }
    return dg.MaterializeResult(
        asset_key=ADAPTED, metadata=links | metadata, data_version=dg.DataVersion(inputs_digest)
    )
