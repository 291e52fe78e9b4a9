"""How commands print: results on stdout as a table or one JSON document, everything else on stderr."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from perf_assets.core.errors import BadInputError
from perf_assets.core.text import printable, without_passwords

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


def say(message: str) -> None:
    """Tell a person what is going on, on stderr."""
    click.echo("\n".join(map(printable, without_passwords(message).split("\n"))), err=True)


def say_stage(title: str) -> None:
    """Tell a person which part of a longer work begins."""
    say(f"== {title}")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def check_folder(out: Path) -> None:
    """Refuse a file in a folder that is not there."""
    if not out.absolute().parent.is_dir():
        raise BadInputError(f"{out.parent} does not exist: make the folder first")
