"""`perf-assets severity`."""

from pathlib import Path

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_rows, say
from perf_assets.cli.support.tables import check_patterns, read_table
from perf_assets.core.errors import BadInputError


@click.command()
@click.option("--source", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Table of the source.")
@click.option("--target", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Table of the target.")
@click.option("--target-column", required=True, metavar="C", help="Column to predict.")
@click.option("--source-target-column", metavar="C", help="The same in the source, if it has another name.")
@click.option("--log-target/--no-log-target", default=True, show_default=True, help="Predict the logarithm.")
@click.option("--drop", multiple=True, metavar="REGEX", help="Columns to ignore.")
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
    """Say how hard a transfer between two tables is, on a scale from 0 to 1 (`rescaled`).

    0: the source, taken as it is, predicts the target as well as rows of its own (floor). 1: as badly as it predicts
    shuffled labels (ceiling). Without shared features, directions in which features move along the target, and the
    distributions of the target, are compared instead (`measure`).
    """
    check_patterns(drop)

    import numpy as np

    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.features.tables.unpaired import kind_notes, transfer_table
    from perf_assets.models.common.severity import transfer_severity
    from perf_assets.models.transfer.task import TransferTask

    theirs = transfer_table(
        source.stem, read_table(source), source_target_column or target_column, drop=drop, is_log=log_target
    )
    ours = transfer_table(target.stem, read_table(target), target_column, drop=drop, is_log=log_target)
    notes = [*theirs.notes, *ours.notes, *kind_notes(theirs, ours)]
    say(*notes)
    hard = transfer_severity(TransferTask.of([theirs], ours, load_catalogue()), np.arange(len(ours)))
    if hard is None:
        raise BadInputError("severity needs at least 4 rows of the target and twice that of the source")
    rows = [[name, f"{value:.3f}" if isinstance(value, float) else value] for name, value in vars(hard).items()]
    title = f"{source.stem} to {target.stem}"
    print_rows({**vars(hard), "notes": notes}, title, ["measure", "value"], rows, as_json=as_json)
    if not as_json:
        click.echo(
            f"Severity {hard.rescaled:.2f}: {hard.rescaled:.0%} of the way from what {target.stem} says of itself "
            "to what no relation at all looks like; near 1 the source hardly helps."
        )
