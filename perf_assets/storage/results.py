"""Tables that models make: Parquet files beside the record, and the warehouse tables loaded from them."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.schema import Table
from perf_assets.infra.files import replacing
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import arrow_schema
from perf_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import pandas as pd

_FILE = "rows.parquet"
_WAIT_SECONDS = 60.0


def stored_at(lake: Lake, table: Table, of: str | None = None) -> Path:
    """File of a table's rows, or of those of a machine (a dataset) where it is made machine by machine."""
    return lake.record / table.name / (_part(table, of) if of else "") / _FILE


def store(lake: Lake, warehouse: Warehouse, table: Table, rows: "pd.DataFrame", of: str | None = None) -> Path:
    """Replace a table's rows, or those of a machine (a dataset) where it is made machine by machine."""
    path = store_part(lake, table, rows, _part(table, of) if of else "")
    warehouse.load_results(table)
    return path


def store_part(lake: Lake, table: Table, rows: "pd.DataFrame", part: str) -> Path:
    """Replace one part of a table in the record; `Warehouse.load_results` then loads all parts."""
    path = lake.record / table.name / part / _FILE
    columns = pa.Table.from_pandas(rows[table.column_names()], arrow_schema(table), preserve_index=False)
    lock = lake.locks / f"{table.name}.lock"
    with leased(lock, f"the table {table.name}", _WAIT_SECONDS) as lease, replacing(path) as temporary:
        pq.write_table(columns, temporary, compression="zstd")
        lease.check()
    return path


def drop_part(lake: Lake, table: Table, of: str) -> bool:
    """Remove the rows of a machine (a dataset) where a table is made machine by machine; whether there were any."""
    file = stored_at(lake, table, of)
    is_there = file.is_file()
    file.unlink(missing_ok=True)
    return is_there


def drop_parts(lake: Lake, table: Table) -> None:
    """Remove everything that is stored of a table."""
    for file in (lake.record / table.name).rglob(_FILE):
        file.unlink()


def stored(lake: Lake, table: Table, what_makes_it: str) -> "pd.DataFrame":
    """All rows of a table; refuses where there are none yet."""
    files = _files(lake, table)
    if not files:
        raise BadInputError(f"there is no {table.name} yet: run {what_makes_it!r}")
    rows: pd.DataFrame = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files]).to_pandas()
    return rows


def stored_or_empty(lake: Lake, table: Table) -> "pd.DataFrame":
    """All rows of a table; an empty frame where nothing is stored yet."""
    if has_rows(lake, table):
        return stored(lake, table, "")
    rows: pd.DataFrame = arrow_schema(table).empty_table().to_pandas()
    return rows


def written_at(lake: Lake, table: Table) -> tuple[int, ...]:
    """Time at which the parts of a table were last replaced: another value means that it may have changed."""
    return tuple(file.stat().st_mtime_ns for file in _files(lake, table))


def rows_of(lake: Lake, table: Table, of: str) -> "pd.DataFrame | None":
    """Rows of a machine (a dataset), where the table is made machine by machine; None where there are none."""
    file = stored_at(lake, table, of)
    if not file.is_file() or not _has_columns(file, table):
        return None
    rows: pd.DataFrame = pq.read_table(file, partitioning=None).to_pandas()
    return rows


def _part(table: Table, of: str) -> str:
    """Folder of what belongs to one value of the first column of the key."""
    return f"{table.key[0]}={of}"


def has_rows(lake: Lake, table: Table) -> bool:
    """Whether anything is stored of a table."""
    return bool(_files(lake, table))


def _files(lake: Lake, table: Table) -> list[Path]:
    """Files of a table with the columns it has today: those of an older release are as if they were not there."""
    return [file for file in sorted((lake.record / table.name).rglob(_FILE)) if _has_columns(file, table)]


def _has_columns(file: Path, table: Table) -> bool:
    return set(pq.read_schema(file).names) == set(table.column_names())
