"""`perf-assets severity`."""

from pathlib import Path

import click

from perf_assets.cli.options import json_option
from perf_assets.cli.output import print_json, print_table, say
from perf_assets.cli.tables import check_pattern, read_table


@click.command()
@click.option("--source", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Table of the source.")
@click.option("--target", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Table of the target.")
@click.option("--target-column", required=True, metavar="C", help="Column to predict.")
@click.option("--source-target-column", metavar="C", help="The same in the source, if it has another name.")
@click.option("--log-target/--no-log-target", default=True, show_default=True, help="Predict the logarithm.")
@click.option("--drop", multiple=True, metavar="REGEX", help="Columns that are no counters.")
@json_option
def command(
    source: Path,
    target: Path,
    target_column: str,
    source_target_column: str | None,
    log_target: bool,
    drop: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say how hard a transfer between two tables is: 0 the same relation of counters to target, 1 none in common.

    Beside it stand what two halves of the source give (floor) and what shuffled labels give (ceiling).
    """
    for pattern in drop:
        check_pattern(pattern)

    from perf_assets.features.transfer_tables import transfer_table
    from perf_assets.models.severity import severity

    theirs = transfer_table(
        source.stem, read_table(source), source_target_column or target_column, drop=drop, is_log=log_target
    )
    ours = transfer_table(target.stem, read_table(target), target_column, drop=drop, is_log=log_target)
    for note in (*theirs.notes, *ours.notes):
        say(note)
    found = severity(theirs.counters, theirs.target, ours.counters, ours.target)
    if as_json:
        print_json({**vars(found), "notes": [*theirs.notes, *ours.notes]})
    else:
        rows = [[name, f"{value:.3f}" if isinstance(value, float) else value] for name, value in vars(found).items()]
        print_table(f"{source.stem} to {target.stem}", ["measure", "value"], rows)
