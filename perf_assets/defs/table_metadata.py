"""What the UI shows of a table."""

import dagster as dg

from perf_assets.core.manifest import digest_of
from perf_assets.core.schema import Table
from perf_assets.storage.warehouse import Warehouse

PREVIEW_ROWS = 5
_MODELS_VERSION = "1"
"""To be raised when models or pages made by new code differ from those made by old."""
_NOT_SHOWN = {"bundle_digest", "formulas", "runs"}


def asset_spec(table: Table, kinds: set[str], deps: list[str] | None = None) -> dg.AssetSpec:
    """The asset that stands for a table: name, description, columns and group follow from the vocabulary."""
    return dg.AssetSpec(
        table.name,
        deps=deps or [],
        description=table.description,
        group_name=table.name.split("_", 1)[0],
        kinds=kinds,
        owners=["team:performance"],
        metadata={"dagster/column_schema": column_schema(table), "dagster/table_name": table.name},
        code_version=digest_of(table.ddl().encode())[:12],
    )


def model_spec(name: str, description: str, kinds: set[str], deps: list[str]) -> dg.AssetSpec:
    """An asset that is no table: a fitted model, a page, pictures."""
    return dg.AssetSpec(
        name,
        deps=deps,
        description=description,
        group_name=name.split("_", 1)[0],
        kinds=kinds,
        owners=["team:performance"],
        code_version=_MODELS_VERSION,
    )


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
            "preview": dg.MetadataValue.md(head.to_markdown(index=False)),
        },
        data_version=dg.DataVersion(warehouse.content_digest(table, machine)),
    )
