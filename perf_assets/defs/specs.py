"""Assets as Dagster knows them: specifications made from tables, steps and their options, rows as metadata."""

from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.runs import ENVIRONMENTS, FEATURES
from perf_assets.core.tables.schema import Table
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.storage.warehouse import Warehouse

Metadata = dict[str, Any]
"""Metadata of a materialisation for the UI, by label."""
PREVIEW_ROWS = 5
POOL = "warehouse"
"""Pool of all steps that write the warehouse: DuckDB lets one process write."""
_GROUPS = {
    "raw_landing": "landing",
    "model_amm": "machines",
    "out_amm": "machines",
    "model_source": "sources",
    "model_vector": "sources",
    "model_target": "targets",
    "core_datasets": "datasets",
    "model_transfer": "datasets",
    "eval_dataset": "datasets",
    "raw": "raw",
    "core": "core",
    "eval": "evaluation",
    "out": "reports",
}
"""Group by the beginning of an asset's name: the lineage reads from landing to reports."""
FLEET = [FEATURES.name, TIMINGS.name, ENVIRONMENTS.name, SPECS.name]
"""Tables that fleet-wide models are made from."""
_NOT_SHOWN = {"bundle_digest", "formulas", "runs"}


class TrainingConfig(dg.Config):
    """Options of a step that trains."""

    seed: int = Field(default=0, ge=0, description="Seed of everything that is random")


def group_of(name: str) -> str:
    """Group of an asset in the lineage."""
    return next(group for beginning, group in _GROUPS.items() if name.startswith(f"{beginning}_"))


def asset_spec(
    table: Table, kinds: set[str], deps: Sequence[str | dg.AssetDep] = (), **attributes: Any
) -> dg.AssetSpec:
    """The asset that stands for a table: name, description, columns and group are those of the vocabulary."""
    shown = {"dagster/column_schema": column_schema(table), "dagster/table_name": table.name}
    return model_spec(table.name, table.description, kinds, deps, metadata=shown, **attributes)


def model_spec(
    name: str, description: str, kinds: set[str], deps: Sequence[str | dg.AssetDep] = (), **attributes: Any
) -> dg.AssetSpec:
    """Specification of an asset, by default without a table: a fitted model, a page, pictures."""
    return dg.AssetSpec(name, deps=deps, description=description, group_name=group_of(name), kinds=kinds, **attributes)


def one_asset(
    spec: dg.AssetSpec, *checks: dg.AssetCheckSpec, **settings: Any
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorator of a step that makes one asset and has its name; its errors begin with what to do."""
    step = dg.multi_asset(name=spec.key.to_user_string(), specs=[spec], check_specs=checks, **settings)
    return lambda function: step(explained(function))


def column_schema(table: Table) -> dg.TableSchema:
    """Columns with type, unit and rules, as the UI shows them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.type.value,
                f"{column.description} [{column.unit}]" if column.unit else column.description,
                constraints=dg.TableColumnConstraints(
                    nullable=column.nullable, other=[] if column.rule() == "present" else [column.rule()]
                ),
            )
            for column in table.columns
        ],
        constraints=dg.TableConstraints([f"key: {', '.join(table.key)}"]),
    )


def materialization(warehouse: Warehouse, table: Table, machine: str, row_count: int) -> dg.MaterializeResult[None]:
    """Row counts, a preview and the version of a machine's rows of a table."""
    shown = ", ".join(f'"{name}"' for name in table.column_names() if name not in _NOT_SHOWN)
    head = warehouse.frame(
        f'SELECT {shown} FROM "{table.name}" WHERE {table.of_machine} LIMIT {PREVIEW_ROWS}', {"machine": machine}
    )
    return dg.MaterializeResult(
        asset_key=table.name,
        metadata={
            "dagster/partition_row_count": row_count,
            "preview": dg.MetadataValue.md(markdown_rows(head)),
        },
        data_version=dg.DataVersion(warehouse.content_digest(table, machine)),
    )


def as_event(result: dg.MaterializeResult[None], name: str, partition: str) -> dg.AssetMaterialization:
    """A result of one asset as an event, for a step that makes it beside its own."""
    assert result.data_version is not None, "what is made beside must say its version"
    tags = {"dagster/data_version": result.data_version.value}
    return dg.AssetMaterialization(name, partition=partition, metadata=result.metadata, tags=tags)
