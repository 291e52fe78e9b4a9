"""Tables of samples in text: comma, semicolon, tab or blanks between the cells, names in the first line."""

import csv
import io
import os
from array import array
from collections.abc import Iterator

from perf_assets.readers.files import HEAD_BYTES, SourceFile, open_file, unreadable
from perf_assets.readers.samples.table import IDENTITY_TEXTS, MAX_COLUMNS, Columns, SampleTable, number_in, unique_names

_SEPARATORS = ("\t", ",", ";")
_MAX_LINE = 2**24
"""Characters of a line; a file can hold a line of any length, and a hole in it costs its writer nothing."""


def read_table(source: SourceFile) -> SampleTable:
    """Read a table. A column is numeric if every cell that is there is a number or a level such as `Low (3)`."""
    header, separator = _header(source)
    texts = {name for name in header if name in IDENTITY_TEXTS}
    columns = Columns(numbers={name: array("d") for name in header if name not in texts})
    for row in _rows(source, len(header), separator):
        columns.row_count += 1
        for name, cell in zip(header, row, strict=True):
            if name not in texts:
                value = number_in(cell.strip())
                if value is None:
                    texts.add(name)
                    del columns.numbers[name]
                else:
                    columns.numbers[name].append(value)
    if columns.row_count == 0:
        raise unreadable(source, "has column names but no rows")
    if texts:
        _read_texts(source, header, separator, columns, texts)
    return SampleTable(source, columns)


def looks_like_table(head: bytes) -> bool:
    """Whether a file may be a table: a line of names, then a line with as many cells.

    Of a line of names that is longer than `head` only that it has names can be seen.
    """
    lines = head.decode("utf-8-sig", "replace").splitlines()
    if len(head) >= HEAD_BYTES and len(lines) > 1:
        del lines[-1]
    lines = [line for line in lines if line.strip()][:2]
    if not lines or (len(lines) < 2 and len(head) < HEAD_BYTES):
        return False
    separator = _separator(lines[0])
    try:
        names, *rows = [_cells(line, separator) for line in lines]
    except csv.Error:
        return False
    if len(names) < 2 or all(number_in(name.strip()) is not None for name in names):
        return False
    # Prose is words between blanks too, but no two lines of it are a table with numbers.
    is_prose = separator is None and not any(number_in(cell) is not None for row in rows for cell in row)
    return not is_prose and all(len(row) == len(names) for row in rows)


def _read_texts(
    source: SourceFile, header: list[str], separator: str | None, columns: Columns, names: set[str]
) -> None:
    """Second pass, for what turned out to be text; equal texts are kept once."""
    wanted = [(position, name) for position, name in enumerate(header) if name in names]
    columns.texts = {name: [] for _, name in wanted}
    known: dict[str, str] = {}
    for row in _rows(source, len(header), separator):
        for position, name in wanted:
            cell = row[position].strip()
            is_missing = cell in ("", "?", "NA", "NaN")
            columns.texts[name].append(None if is_missing else known.setdefault(cell, cell))


def _separator(line: str) -> str | None:
    """The separator of a line of names; None for runs of blanks."""
    return next((mark for mark in _SEPARATORS if mark in line), None)


def _cells(line: str, separator: str | None) -> list[str]:
    return line.split() if separator is None else next(csv.reader([line], delimiter=separator))


def _header(source: SourceFile) -> tuple[list[str], str | None]:
    with _text_stream(source) as stream:
        try:
            line = next(_lines(source, stream), "")
            separator = _separator(line)
            if separator is not None and line.count(separator) > MAX_COLUMNS:
                raise unreadable(source, f"has more than {MAX_COLUMNS} columns")
            names = _cells(line, separator)
        except (csv.Error, StopIteration) as error:
            raise unreadable(source, f"has no readable line of column names ({error})") from None
        except UnicodeDecodeError as error:
            raise unreadable(source, f"is not UTF-8 text ({error.reason})") from None
    if not 1 < len(names) <= MAX_COLUMNS:
        raise unreadable(source, f"has {len(names)} columns; a table of samples has 2 to {MAX_COLUMNS}")
    if all(number_in(name.strip()) is not None for name in names):
        raise unreadable(source, "has no column names: write them into the first line")
    return unique_names(names), separator


def _rows(source: SourceFile, width: int, separator: str | None) -> Iterator[list[str]]:
    with _text_stream(source) as stream:
        try:
            lines = _lines(source, stream)
            next(lines, None)
            rows = csv.reader(lines, delimiter=separator) if separator else (line.split() for line in lines)
            for number, row in enumerate(rows):
                if len(row) != width and row:
                    raise unreadable(
                        source, f"row {number} has {len(row)} cells instead of {width}: cut off, or a stray separator"
                    )
                if row:
                    yield row
        except csv.Error as error:
            raise unreadable(source, f"is no proper table ({error})") from None
        except UnicodeDecodeError as error:
            raise unreadable(source, f"is not UTF-8 text ({error.reason})") from None


def _lines(source: SourceFile, stream: io.TextIOWrapper) -> Iterator[str]:
    while line := stream.readline(_MAX_LINE):
        if len(line) == _MAX_LINE:
            raise unreadable(source, f"has a line of more than {_MAX_LINE} characters")
        yield line


def _text_stream(source: SourceFile) -> io.TextIOWrapper:
    descriptor, _ = open_file(source.path, source.name)
    return io.TextIOWrapper(os.fdopen(descriptor, "rb"), encoding="utf-8-sig", newline="")
