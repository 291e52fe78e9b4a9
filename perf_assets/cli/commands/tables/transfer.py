"""`perf-assets transfer`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_result, print_table, say
from perf_assets.cli.support.tables import check_patterns, read_table, split_names
from perf_assets.core.errors import BadInputError
from perf_assets.core.shots import Shots

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.tables.unpaired import TransferTable
    from perf_assets.models.transfer.evaluation import TransferEvaluation

_PLATFORM_PREFIX = "perf-"
"""Beginning of the names of models that the platform registers."""


@click.command()
@click.option(
    "--source",
    "sources",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="FILE",
    help="Table of a source; may be repeated.",
)
@click.option("--target", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Table of the target.")
@click.option("--target-column", required=True, metavar="C", help="Column to predict.")
@click.option("--source-target-column", metavar="C", help="The same in the sources, if it has another name.")
@click.option("--pair-key", metavar="COLS", help="Columns that say which configuration a row is: A,B,...")
@click.option("--app-column", metavar="C", help="Column with the application (with --pair-key).")
@click.option("--benchmark-app", "benchmarks", multiple=True, metavar="A", help="Application that is the benchmark.")
@click.option("--log-target/--no-log-target", default=True, show_default=True, help="Predict the logarithm.")
@click.option("--drop", multiple=True, metavar="REGEX", help="Columns to ignore.")
@click.option("--shots", metavar="N|P%", help="Rows of the target to learn from; needed unless --register is given.")
@click.option("--register", metavar="NAME", help="Fit to all rows of the target, and register the model as NAME.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=10, show_default=True, help="Draws of the shots.")
@json_option
def command(
    sources: tuple[Path, ...],
    target: Path,
    target_column: str,
    source_target_column: str | None,
    pair_key: str | None,
    app_column: str | None,
    benchmarks: tuple[str, ...],
    log_target: bool,
    drop: tuple[str, ...],
    shots: str | None,
    register: str | None,
    seeds: int,
    as_json: bool,
) -> None:
    """Model a target from few of its rows and a source with other counters, beside all baselines.

    Half of the target's rows are test rows, drawn anew for every seed; shots are drawn from the other half. With
    --pair-key, rows pair on a key: the first source is the reference machine whose runs predict, further ones train
    the prior, and rows of the benchmark applications describe the machines. With --register nothing is held out:
    'perf-assets predict --model NAME TABLE' asks the model then.
    """
    check_patterns(drop)
    tables = _Tables(sources, target, target_column, source_target_column or target_column, log_target, drop)
    if register is not None:
        if pair_key or app_column or benchmarks or shots:
            raise BadInputError("--register fits to all rows and pairs none: leave out --shots and options of pairs")
        made = _registered(register, tables)
        print_result(made, f"{register}@champion is version {made['version']} now", as_json=as_json)
        return
    if shots is None:
        raise BadInputError("--shots is missing: say how many rows of the target to learn from, or --register NAME")
    if pair_key is None:
        if app_column or benchmarks:
            raise BadInputError("--app-column and --benchmark-app go with --pair-key")
        evaluated, notes = _unpaired(tables, shots, seeds)
    else:
        if not log_target:
            raise BadInputError("--pair-key compares run times: it predicts logarithms")
        if app_column is None:
            raise BadInputError("--pair-key needs --app-column")
        evaluated, notes = _paired(tables, pair_key, app_column, benchmarks, shots, seeds)
    document = _document(evaluated, notes, "paired" if pair_key else None)
    print_json(document) if as_json else _print(document, target.stem)


@dataclass(frozen=True)
class _Tables:
    """Files of a target and its sources, and how they are read."""

    sources: tuple[Path, ...]
    target: Path
    target_column: str
    source_column: str
    """Column of the sources that corresponds to the target's."""
    is_log: bool
    drop: tuple[str, ...]

    def read(self) -> "tuple[TransferTable, list[TransferTable]]":
        """The target, and its sources."""
        from perf_assets.features.tables.unpaired import transfer_table

        options: dict[str, Any] = {"drop": self.drop, "is_log": self.is_log}
        target = transfer_table(self.target.stem, read_table(self.target), self.target_column, **options)
        sources = [transfer_table(path.stem, read_table(path), self.source_column, **options) for path in self.sources]
        return target, sources


def _registered(name: str, tables: _Tables) -> dict[str, Any]:
    from perf_assets.core.datasets import check_dataset_name

    try:
        check_dataset_name(name)
    except ValueError as error:
        raise BadInputError(f"--register: {error}") from None
    if name.startswith(_PLATFORM_PREFIX):
        raise BadInputError(
            f"--register {name!r}: names that begin with {_PLATFORM_PREFIX} are made by the platform: take another"
        )
    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.workflows.models.datasets import PlainTable, adapt_tables, register_tables

    ours = PlainTable(tables.target.stem, read_table(tables.target), tables.target_column)
    theirs = [PlainTable(path.stem, read_table(path), tables.source_column) for path in tables.sources]
    adapted = adapt_tables(ours, theirs, drop=tables.drop, is_log=tables.is_log, catalogue=load_catalogue(), say=say)
    version = register_tables(adapted, name)
    return {
        "name": name,
        "version": version,
        "rows": len(adapted.rows),
        "chosen": adapted.chosen,
        "severity_rescaled": adapted.severity,
        "candidates": [vars(score) for score in adapted.scores],
    }


def _unpaired(tables: _Tables, shots: str, seeds: int) -> "tuple[TransferEvaluation, list[str]]":
    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.features.tables.unpaired import kind_notes

    ours, theirs = tables.read()
    notes = [note for table in (*theirs, ours) for note in table.notes]
    notes += [note for table in theirs for note in kind_notes(table, ours)]
    say(*notes)
    count = Shots.parse(shots).count(len(ours))

    from perf_assets.models.transfer.evaluation import evaluate_transfer
    from perf_assets.models.transfer.model import LEAST_SHOTS
    from perf_assets.models.transfer.task import TransferTask

    if count < LEAST_SHOTS:
        raise BadInputError(f"--shots {shots}: give at least {LEAST_SHOTS}")
    _check_half(count, len(ours))
    task = TransferTask.of(theirs, ours, load_catalogue())
    for source, matches in zip(task.sources, task.same, strict=True):
        say(f"{source.name}: {len(matches)} of {len(ours.counter_names)} target features are the same")
    return evaluate_transfer(task, count, seeds, is_log=tables.is_log, progress=say), notes


def _paired(
    tables: _Tables, key: str, app_column: str, benchmarks: tuple[str, ...], shots: str, seeds: int
) -> "tuple[TransferEvaluation, list[str]]":
    frames: dict[str, pd.DataFrame] = {}
    for path in (*tables.sources, tables.target):
        if path.stem in frames:
            raise BadInputError(f"two tables are called {path.stem}: machines are told apart by file name")
        frame = read_table(path)
        if path != tables.target and tables.source_column != tables.target_column:
            frame = frame.rename(columns={tables.source_column: tables.target_column})
        frames[path.stem] = frame

    from perf_assets.features.tables.paired import Roles, pair_tables

    roles = Roles(tuple(split_names(key)), app_column, tables.target_column, benchmarks, tables.drop)
    samples = pair_tables(frames, roles)
    say(*samples.notes)

    from perf_assets.models.transfer.paired_candidate import evaluate_paired_transfer, paired_task

    last = len(samples.machines) - 1
    task, rows = paired_task(samples, 0, last)
    count = Shots.parse(shots).count(len(rows))
    _check_half(count, len(rows))
    return evaluate_paired_transfer(samples, task, rows, count, seeds, progress=say), list(samples.notes)


def _check_half(count: int, rows: int) -> None:
    if count > rows // 2:
        raise BadInputError(f"{count} shots are more than half of the target's {rows} rows; the others are test rows")


def _document(evaluated: "TransferEvaluation", notes: list[str], paired: str | None) -> dict[str, Any]:
    import numpy as np

    methods: dict[str, Any] = {
        name: {
            metric: {"median": float(np.median(values)), "mean": float(np.mean(values))}
            for metric, values in scores.items()
        }
        for name, scores in evaluated.scores.items()
    }
    if evaluated.target_best is not None:
        methods["target_best"] = {**methods[evaluated.target_best], "method": evaluated.target_best}
    methods |= {name: {"absent": reason} for name, reason in evaluated.absent.items() if name not in methods}
    if paired is None:
        methods["paired"] = {"absent": "runs are not paired: give --pair-key"}
    return {
        "shots": evaluated.shots,
        "methods": methods,
        "chosen": evaluated.chosen,
        "adapt_seconds": evaluated.adapt_seconds,
        "predict_seconds_per_row": evaluated.predict_seconds_per_row,
        "coverage_90": float(np.mean(evaluated.coverage)) if evaluated.coverage else None,
        "severity_rescaled": float(np.median(evaluated.severity)) if evaluated.severity else None,
        "candidates": evaluated.candidates,
        "notes": notes,
    }


def _print(document: dict[str, Any], target: str) -> None:
    rows = []
    for name, scores in document["methods"].items():
        if "absent" in scores:
            rows.append([name, "-", "-", "-", scores["absent"]])
        else:
            values = [f"{scores[m]['median']:.4g}" for m in ("mape", "log_mse", "r2")]
            rows.append([name, *values, scores.get("method", "")])
    title = f"{target}, {document['shots']} shots: medians over seeds"
    print_table(title, ["method", "MAPE", "log error", "R2", "note"], rows)
    say(f"chosen: {', '.join(document['chosen'])}")
