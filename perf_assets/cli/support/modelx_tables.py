"""`perf-assets evaluate modelx`: ModelX's table on plain tables."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import check_folder, print_json, print_table, say, say_stage
from perf_assets.cli.support.tables import check_pattern, read_table, split_names
from perf_assets.core.errors import BadInputError
from perf_assets.core.shots import Shots
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.transfer.modelx_table import Dataset, ModelxRow, ModelxTable

_PAGE = ".html"
_WALL_SECONDS = "wall_seconds"
"""Run time in tables out of a lake."""
_ABSENT = "-"


@click.command()
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME=FILE[:TARGETCOLUMN]",
    help="Table and its column to predict [wall_seconds, else the last column of numbers]; repeat it. Without any, the "
    "datasets of the lake.",
)
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Only this target; may be repeated.")
@click.option("--drop", multiple=True, metavar="REGEX", help="Columns to ignore.")
@click.option("--shots", default="1%,5%", show_default=True, metavar="N|P%,...", help="Rows of a target to learn from.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Draws of the shots.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="PAGE.html", help="Write a page, too.")
@json_option
def modelx(
    datasets: tuple[str, ...],
    targets: tuple[str, ...],
    drop: tuple[str, ...],
    shots: str,
    seeds: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Make ModelX's table: each dataset in turn is the target, all others are its sources.

    A row says how hard the transfer is, the errors of the product, of three usual uses of a source, of the best model
    without sources and of a supervised model on 100 times the shots. Errors are mean squared errors of the logarithm.
    """
    for pattern in drop:
        check_pattern(pattern)
    wanted = [Shots.parse(text) for text in split_names(shots)]
    if out is not None:
        if out.suffix != _PAGE:
            raise BadInputError(f"--out {out}: must end with {_PAGE}")
        check_folder(out)
    given = [_named(text) for text in datasets]
    if not given:
        _of_lake(shots, seeds, targets, drop, out, as_json=as_json)
        return

    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.models.transfer.modelx_table import modelx_table

    read = [_dataset(name, place) for name, place in given]
    found = modelx_table(read, wanted, seeds, targets=targets, drop=drop, catalogue=load_catalogue(), progress=say)
    if out is not None:
        _write(out, found)
        say(f"page: {out}")
    if as_json:
        print_json({"rows": [row.to_dict() for row in found.rows], "notes": list(found.notes)})
    else:
        _print(found.rows, seeds)


def _of_lake(
    shots: str, seeds: int, targets: tuple[str, ...], drop: tuple[str, ...], out: Path | None, *, as_json: bool
) -> None:
    """The asset `eval_modelx__table`."""
    from perf_assets.core.tables.datasets import MODELX_TABLE
    from perf_assets.defs.operate.launch import make_modelx_table
    from perf_assets.models.transfer.modelx_table import ModelxRow
    from perf_assets.storage.results import stored

    if drop or out is not None:
        raise BadInputError("--drop and --out go with --dataset: in a lake, datasets.yaml says which columns to drop")
    make_modelx_table(split_names(shots), seeds, targets, say_stage)
    table = stored(Lake.default(), MODELX_TABLE, "perf-assets evaluate modelx").drop(columns="is_simulated")
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    rows = tuple(
        ModelxRow(**{str(name): value for name, value in row.items()} | {"sources": tuple(row["sources"].split(" + "))})
        for row in records
    )
    if as_json:
        print_json({"rows": [row.to_dict() for row in rows], "notes": []})
    else:
        _print(rows, seeds)
        say(f"page: {Lake.default().reports / 'modelx.html'}")


def _named(text: str) -> tuple[str, str]:
    name, found, place = text.partition("=")
    if not (name and found and place):
        raise BadInputError(f"--dataset {text!r}: write NAME=FILE or NAME=FILE:TARGETCOLUMN")
    return name, place


def _dataset(name: str, place: str) -> "Dataset":
    from perf_assets.models.transfer.modelx_table import Dataset

    path, column = _file_and_column(place)
    frame = read_table(path)
    if column:
        return Dataset(name, frame, column)
    usual = _usual_target(name, frame)
    return Dataset(name, frame, usual, (f"{name}: predicts {usual}; another column is named as {name}={path}:COLUMN",))


def _file_and_column(place: str) -> tuple[Path, str]:
    """Both may have colons: the file ends where there is one of that name."""
    if not Path(place).is_file():
        parts = place.split(":")
        for end in range(len(parts) - 1, 0, -1):
            path = Path(":".join(parts[:end]))
            if path.is_file():
                return path, ":".join(parts[end:])
        return Path(place.rpartition(":")[0] or place), ""
    return Path(place), ""


def _usual_target(name: str, frame: "pd.DataFrame") -> str:
    numbers = [str(column) for column in frame.select_dtypes("number").columns]
    if not numbers:
        raise BadInputError(f"{name}: no column holds numbers: there is nothing to predict")
    return _WALL_SECONDS if _WALL_SECONDS in numbers else numbers[-1]


def _write(out: Path, found: "ModelxTable") -> None:
    """Write the page whole or not at all."""
    from perf_assets.infra.files import write_bytes
    from perf_assets.reports.modelx.page import modelx_page

    is_in_site = out.absolute().parent == Lake.default().reports.absolute()
    write_bytes(out.absolute(), modelx_page(found.to_frame(), is_in_site=is_in_site).encode())


def _print(rows: "tuple[ModelxRow, ...]", seeds: int) -> None:
    errors = [
        [
            _transfer(row), row.shots, _short(row.severity), *map(_short, (
                row.product, row.zero_shot, row.linear_probe, row.fine_tune, row.target_best, row.oracle_100x
            )),
        ]
        for row in rows
    ]  # fmt: skip
    names = ["product", "zero-shot", "probe", "tuned", "target-only", "100x"]
    print_table(f"Mean squared log errors, seeds: {seeds}", ["transfer", "shots", "severity", *names], errors)
    verdicts = [
        [
            _transfer(row), row.shots, row.features,
            _ABSENT if row.improvement is None else f"{row.improvement:.0f}", row.winner,
            "yes" if row.matches_oracle else "no", 100 * row.mape, 100 * row.coverage_90,
        ]
        for row in rows
    ]  # fmt: skip
    print_table(
        "Improvement over the best of zero-shot, linear probing and fine-tuning; MAPE and coverage of the product",
        ["transfer", "shots", "features", "improvement %", "winner", "as 100x", "MAPE %", "coverage %"],
        verdicts,
    )


def _transfer(row: "ModelxRow") -> str:
    return f"{'+'.join(row.sources)} -> {row.target}"


def _short(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.3g}"
