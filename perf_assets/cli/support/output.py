"""Output of commands: results on stdout as a table or one JSON document, everything else on stderr."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.core.errors import BadInputError
from perf_assets.core.text import csv_of, printable, without_passwords
from perf_assets.infra.files import write_bytes

if TYPE_CHECKING:
    import pandas as pd

_PIPE_WIDTH = 120


def print_json(document: object) -> None:
    """Print a result as one JSON document; what is not a number there is null."""
    click.echo(json.dumps(_without_nan(document), indent=1, default=str, allow_nan=False))


def _without_nan(document: object) -> object:
    if isinstance(document, dict):
        return {key: _without_nan(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [_without_nan(value) for value in document]
    return None if isinstance(document, float) and not math.isfinite(document) else document


def print_result(document: object, text: object, *, as_json: bool) -> None:
    """Print a result as one JSON document, or as a line for people."""
    print_json(document) if as_json else click.echo(text)


def print_rows(
    document: object, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, as_json: bool
) -> None:
    """Print a result as one JSON document, or as a table for people."""
    print_json(document) if as_json else print_table(title, columns, rows)


def print_file(document: object, frame: "pd.DataFrame", out: Path | None, *, as_json: bool, as_csv: bool) -> bool:
    """Write a result into a file as its ending says, or print it as JSON or CSV; False where it is for people."""
    if out is not None:
        text = json.dumps(document, indent=1) if out.suffix == ".json" else csv_of(frame)
        write_bytes(out.absolute(), text.encode())
    elif as_json:
        print_json(document)
    elif as_csv:
        click.echo(csv_of(frame), nl=False)
    return out is not None or as_json or as_csv


def check_formats(out: Path | None, *, as_json: bool, as_csv: bool) -> None:
    """Refuse two formats at once, and a file in a folder that is not there."""
    if as_json and as_csv:
        raise BadInputError("--json and --csv exclude each other: choose one")
    if out is not None:
        check_folder(out)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a result as a table; numbers to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)), title_justify="left")
    for position, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[position], int | float) for row in rows)
        table.add_column(
            Text(printable(column)), justify="right" if is_number else "left", overflow="fold", no_wrap=position == 0
        )
    for row in rows:
        table.add_row(*(Text(printable(_text(value))) for value in row))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


def say(*messages: str) -> None:
    """Print a line about progress for people, on stderr."""
    for message in messages:
        click.echo("\n".join(map(printable, without_passwords(message).split("\n"))), err=True)


def say_stage(title: str) -> None:
    """Print a line about the part of a longer work that begins, for people."""
    say(f"== {title}")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def check_folder(out: Path) -> None:
    """Refuse a file in a folder that is not there."""
    if not out.absolute().parent.is_dir():
        raise BadInputError(f"{out.parent} does not exist: make the folder first")
