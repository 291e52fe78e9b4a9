"""Asking a registered model with a table, for `perf-assets predict --model`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.output import check_folder, print_json, print_table, say
from perf_assets.cli.support.tables import read_table
from perf_assets.core.text import csv_of

if TYPE_CHECKING:
    import pandas as pd

_SHOWN_ROWS = 50
_DIGITS = 6


def ask_model(reference: str, table: Path, out: Path | None, *, as_json: bool, as_csv: bool) -> None:
    """Print or write what a registered model says of the rows of a table."""
    from perf_assets.workflows.predict import ask_table

    if out is not None:
        check_folder(out)
    found = ask_table(reference, read_table(table))
    records = found.frame.astype(object).where(found.frame.notna(), None).to_dict("records")
    document = {"model": found.model, "version": found.version, "answers": records}
    if out is not None:
        _write(out, document, found.frame)
        say(f"{len(found.frame)} answers of {found.model} version {found.version} are in {out}")
    elif as_json:
        print_json(document)
    elif as_csv:
        click.echo(csv_of(found.frame), nl=False)
    else:
        shown = found.frame.head(_SHOWN_ROWS)
        rows = [[_shown(value) for value in row] for row in shown.itertuples(index=False, name=None)]
        title = f"{found.model} version {found.version}: {len(found.frame)} answers"
        print_table(title, list(map(str, shown.columns)), rows)
        if len(found.frame) > len(shown):
            say(f"the first {len(shown)} of {len(found.frame)}: --out FILE, --csv and --json have all")


def _shown(value: object) -> str:
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)


def _write(out: Path, document: dict[str, object], frame: "pd.DataFrame") -> None:
    """Write answers whole or not at all."""
    import json

    from perf_assets.infra.files import replacing

    text = json.dumps(document, indent=1) if out.suffix == ".json" else csv_of(frame)
    with replacing(out.absolute()) as temporary:
        temporary.write_text(text)
