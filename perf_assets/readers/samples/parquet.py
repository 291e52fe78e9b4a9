"""Tables of samples in Parquet. What its footer says it will unpack to is checked before anything is unpacked."""

import math
from array import array
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perf_assets.readers.files import SourceFile, opened, unreadable
from perf_assets.readers.samples.table import IDENTITY_TEXTS, MAX_COLUMNS, Columns, SampleTable, number_in, unique_names

_BATCH_ROWS = 10_000
_FREE_BYTES = 64 * 2**20
_MAX_GROWTH = 4
_MAX_FOOTER_STRINGS = 16 * 2**20
_MAX_FOOTER_ITEMS = 4 * 2**20


def read_table(source: SourceFile) -> SampleTable:
    """Read a Parquet file as a table of samples."""
    try:
        with (
            opened(source) as stream,
            pq.ParquetFile(
                stream,
                thrift_string_size_limit=_MAX_FOOTER_STRINGS,
                thrift_container_size_limit=_MAX_FOOTER_ITEMS,
            ) as file,
        ):
            _check_size(source, file.metadata)
            _check_types(source, file.schema_arrow)
            return SampleTable(source, _columns(source, file))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(source, f"is no readable Parquet file ({str(error)[:200]}): copy it again") from None


def _check_size(source: SourceFile, footer: Any) -> None:
    unpacked = sum(footer.row_group(index).total_byte_size for index in range(footer.num_row_groups))
    cells = 8 * footer.num_rows * footer.num_columns
    allowed = _MAX_GROWTH * source.size + _FREE_BYTES
    if not 2 <= footer.num_columns <= MAX_COLUMNS:
        raise unreadable(source, f"has {footer.num_columns} columns; a table of samples has 2 to {MAX_COLUMNS}")
    if footer.num_rows < 1:
        raise unreadable(source, "has columns but no rows")
    if max(unpacked, cells) > allowed:
        raise unreadable(
            source, f"unpacks to {max(unpacked, cells)} bytes; {allowed} are allowed for its size: store it in parts"
        )


def _check_types(source: SourceFile, schema: pa.Schema) -> None:
    for column in schema:
        if pa.types.is_nested(column.type):
            raise unreadable(source, f"column {column.name[:60]!r} holds {column.type}; only numbers and text are read")


def _columns(source: SourceFile, file: Any) -> Columns:
    names = unique_names(file.schema_arrow.names)
    numbers: dict[str, array[float]] = {}
    texts: dict[str, list[str | None]] = {}
    for name, column in zip(names, file.schema_arrow, strict=True):
        if _is_numeric(column.type):
            numbers[name] = array("d")
        else:
            texts[name] = []
    columns = Columns(numbers, texts)
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
        columns.row_count += batch.num_rows
        if columns.row_count > file.metadata.num_rows:
            raise unreadable(source, "holds more rows than its footer says")
        for name, cells in zip(names, batch.columns, strict=True):
            if name in numbers:
                numbers[name].extend(_floats(cells))
            else:
                texts[name].extend(_strings(cells))
    _move_levels(columns)
    return columns


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _floats(cells: pa.Array) -> Iterator[float]:
    return (math.nan if value is None else float(value) for value in cells.to_pylist())


def _strings(cells: pa.Array) -> Iterator[str | None]:
    return (None if value is None else str(value) for value in cells.to_pylist())


def _move_levels(columns: Columns) -> None:
    """Text columns that hold nothing but levels and numbers are numeric, as in text tables."""
    for name, cells in list(columns.texts.items()):
        if name in IDENTITY_TEXTS:
            continue
        values = [math.nan if cell is None else number_in(cell.strip()) for cell in cells]
        if all(value is not None for value in values) and any(cell is not None for cell in cells):
            columns.numbers[name] = array("d", (value for value in values if value is not None))
            del columns.texts[name]
