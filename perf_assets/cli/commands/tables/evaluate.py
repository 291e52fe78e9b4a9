"""`perf-assets evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.groups import CommandGroup
from perf_assets.cli.support.options import json_option, reference_option
from perf_assets.cli.support.output import check_folder, print_json, print_table, say, say_stage
from perf_assets.cli.support.tables import check_patterns, read_machine_tables, read_table, split_names
from perf_assets.core.errors import BadInputError
from perf_assets.core.shots import Shots
from perf_assets.core.tables.models import TRANSFER_MATRIX
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.transfer.modelx_table import Dataset, ModelxRow, ModelxTable


EMBEDDINGS = ("raw", "tabnet", "nn", "ae", "vae")
_PROTOCOLS = {"loao": "unseen application (leave one out)", "lomo": "unseen machine (leave one out)"}
_VECTOR_PROTOCOLS = {"sample": "80/20 by configuration", "app": "unseen application (each in turn)"}


@click.group(cls=CommandGroup)
def command() -> None:
    """Score methods beside their baselines on data of your own."""


@command.command()
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Repetitions.")
@click.option("--method", "methods", multiple=True, metavar="NAME", help="Only these methods are scored.")
@click.option(
    "--embedding", "embeddings", multiple=True, type=click.Choice(EMBEDDINGS), help="Only these embeddings are drawn."
)
def xamm(seeds: int, methods: tuple[str, ...], embeddings: tuple[str, ...]) -> None:
    """Run the xAMM experiments on the machines of the lake and write their page (several minutes)."""
    from perf_assets.defs.operate.launch import evaluate_xamm

    evaluate_xamm(seeds, say_stage, methods, embeddings)
    click.echo(Lake.default().reports / "xamm.html")


@command.command()
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Random draws of shots.")
@click.option(
    "--shots",
    type=click.IntRange(0),
    multiple=True,
    default=(0, 5, 10, 20, 50),
    show_default=True,
    help="Number of runs on the target; may be repeated.",
)
def pairs(seeds: int, shots: tuple[int, ...]) -> None:
    """Score target models for all ordered pairs of machines of the lake; goes on where it was stopped."""
    from perf_assets.defs.operate.launch import score_pairs

    score_pairs(seeds, shots, say_stage)
    click.echo(f"table {TRANSFER_MATRIX.name} in {Lake.default().warehouse}")


@command.command()
@click.option("--table", "tables", multiple=True, required=True, metavar="NAME=FILE", help="Samples of one machine.")
@click.option("--key", required=True, metavar="COLS", help="Columns that say which configuration a row is: A,B,...")
@click.option("--app-column", required=True, metavar="C", help="Column with the application.")
@click.option("--time-column", required=True, metavar="C", help="Column with the run time.")
@click.option("--benchmark-app", "benchmarks", multiple=True, metavar="A", help="Application that is the benchmark.")
@click.option("--spec", type=click.Path(path_type=Path), metavar="FILE", help="Machine specifications, a row each.")
@click.option("--drop", multiple=True, metavar="REGEX", help="Columns to ignore.")
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="Repetitions.")
@click.option("--methods", metavar="A,B,...", help="Only these methods (see below).")
@click.option(
    "--protocol",
    "--protocols",
    "protocols",
    metavar="A,B",
    default="loao,lomo",
    show_default=True,
    help="What is new: loao an application, lomo a machine.",
)
@click.option("--downstream", metavar="A,B,...", default="xgboost", show_default=True, help="Tree models to compare.")
@json_option
def relative(
    tables: tuple[str, ...],
    key: str,
    app_column: str,
    time_column: str,
    benchmarks: tuple[str, ...],
    spec: Path | None,
    drop: tuple[str, ...],
    seeds: int,
    methods: str | None,
    protocols: str,
    downstream: str,
    as_json: bool,
) -> None:
    """Predict relative times between machines: unseen applications, unseen machines, all methods.

    Every FILE is one machine's samples. Rows are paired on the key; rows of the benchmark applications describe the
    machine, the others are predicted.

    Methods are a description with a tree model (_xgboost, _random_forest, _bagging, _adaboost) behind it: raw
    (counters), onehot (and the machines' names), rates (counters per second of the time on the source, and
    machines' names), spec (and --spec), embedding (TabNet), embedding_amm and raw_amm (and the published AMMs),
    raw_relative_amm (and the pair's benchmark ratios). Or answers without trees: unchanged, pair_median,
    benchmark_mean, typical (the mean over all machines where a run was made, corrected by how fast machines
    typically are); attention, bilinear, mixture (of machines), kernel_mixture (of benchmark rows);
    anchored_xgboost, anchored_spec_xgboost (departures from the mean benchmark ratio); best (a blend, chosen on
    what is held out within the training data). What has AMMs, benchmark or machine models in it needs
    --benchmark-app.

    Folds are computed side by side, as many as there are threads (PERF_ASSETS_THREADS). A protocol that the tables do
    not allow (no machine of two can be left out) is said to be impossible before the work, and the rest is done.
    """
    wanted = _listed(protocols, "--protocol", tuple(_PROTOCOLS))
    check_patterns(drop)
    frames = read_machine_tables(tables)

    from perf_assets.features.tables.paired import Roles, pair_tables, with_specification

    roles = Roles(tuple(split_names(key)), app_column, time_column, benchmarks, drop)
    samples = pair_tables(frames, roles)
    if spec is not None:
        table = read_table(spec)
        samples = with_specification(samples, table, _machine_column(table, spec, samples.machines))
    say(*samples.notes)

    from perf_assets.models.common.regressors import DOWNSTREAM
    from perf_assets.models.source.evaluation import evaluate_relative
    from perf_assets.models.source.methods import default_methods

    trees = _listed(downstream, "--downstream", DOWNSTREAM)
    chosen = split_names(methods) if methods is not None else default_methods(samples, trees)
    scores = evaluate_relative(samples, chosen, wanted, seeds, say)
    if as_json:
        print_json(
            {
                "protocols": scores,
                "machines": list(samples.machines),
                "applications": samples.application_names,
                "benchmark_applications": list(benchmarks),
                "counters": list(samples.counter_names),
                "configurations": len(samples.configurations),
                "seeds": seeds,
                "notes": list(samples.notes),
            }
        )
    else:
        _print(scores, seeds)


def _print(scores_by_protocol: dict[str, dict[str, dict[str, object]]], seeds: int) -> None:
    columns = ["method", "MAPE %", "+- seeds", "median %", "log error", "within 10% %", "within 25% %"]
    for protocol, methods in scores_by_protocol.items():
        rows = []
        for name, scores in methods.items():
            value = {key: score for key, score in scores.items() if isinstance(score, float)}
            percent = [100 * value[key] for key in ("mape", "mape_std", "mape_median")]
            shares = [100 * value[key] for key in ("within_10", "within_25")]
            rows.append([name, *percent, f"{value['log_rmse']:.3f}", *shares])
        print_table(f"{protocol}: {_PROTOCOLS[protocol]}, seeds: {seeds}", columns, rows)


def _machine_column(table: "pd.DataFrame", spec: Path, machines: tuple[str, ...]) -> str:
    """The column of the specification that names the machines."""
    for name in table.columns:
        if set(machines) <= set(table[name].astype(str)):
            return str(name)
    raise BadInputError(f"{spec.name}: no column names all of the machines {', '.join(machines)}")


def _listed(text: str, option: str, known: tuple[str, ...]) -> list[str]:
    parts = split_names(text)
    wrong = [part for part in parts if part not in known]
    if wrong or not parts:
        raise BadInputError(f"{option} {text!r}: use some of {', '.join(known)}")
    return parts


@command.command()
@click.option("--table", "tables", multiple=True, required=True, metavar="NAME=FILE", help="Samples of one machine.")
@click.option("--key", required=True, metavar="COLS", help="Columns that say which configuration a row is: A,B,...")
@click.option("--app-column", required=True, metavar="C", help="Column with the application.")
@click.option("--time-column", required=True, metavar="C", help="Column with the run time.")
@click.option("--drop", multiple=True, metavar="REGEX", help="Columns to ignore.")
@reference_option
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="Repetitions.")
@click.option("--methods", metavar="A,B,...", help="Only these methods.")
@click.option("--figures", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Draw pictures there.")
@click.option("--quick", "is_quick", is_flag=True, help="A small net and a forest: seconds, for a try.")
@json_option
def vector(
    tables: tuple[str, ...],
    key: str,
    app_column: str,
    time_column: str,
    drop: tuple[str, ...],
    reference: str,
    seeds: int,
    methods: str | None,
    figures: Path | None,
    is_quick: bool,
    as_json: bool,
) -> None:
    """Predict from one run the times on all machines at once: unseen configurations, unseen applications, all methods.

    Every FILE is one machine's samples. Rows are paired on the key; each row is a sample, its target the vector of the
    times of its configuration on all machines.
    """
    check_patterns(drop)
    frames = read_machine_tables(tables)

    from perf_assets.features.tables.paired import Roles
    from perf_assets.features.vectors import check_reference, vector_table

    check_reference(reference, tuple(frames))
    samples = vector_table(frames, Roles(tuple(split_names(key)), app_column, time_column, (), drop))
    say(*samples.paired.notes)

    from perf_assets.core.vector_settings import VectorSettings
    from perf_assets.models.vectors.evaluation import BEST, evaluate_vectors, majority_order

    settings = VectorSettings.quick() if is_quick else VectorSettings()
    chosen = None if methods is None else split_names(methods)
    evaluated = evaluate_vectors(samples, reference, seeds, settings, chosen, progress=say)
    order, share = majority_order(samples)
    if figures is not None:
        from perf_assets.reports.vectors.figures import draw_all

        for path in draw_all(evaluated.rows, evaluated.entries, evaluated.vectors, figures):
            say(f"drawn: {path}")
    if as_json:
        print_json(
            {
                "protocols": evaluated.scores,
                "majority_order": order,
                "majority_order_share": share,
                "relative_to": reference,
                "machines": list(samples.machines),
                "applications": sorted(set(samples.apps.tolist())),
                "features": list(samples.feature_names),
                "configurations": len(samples.configurations),
                "samples": len(samples),
                "seeds": seeds,
                "notes": list(samples.paired.notes),
            }
        )
        return
    _print_vectors(evaluated.scores, seeds)
    for protocol, scores in evaluated.scores.items():
        if BEST in scores:
            inside, stated, right = (scores[BEST][name] for name in ("coverage", "stated_order", "same_order"))
            click.echo(
                f"{protocol}: {inside:.0%} of the times are within the 90% intervals of {BEST}; "
                f"{right:.0%} of its orders are right, it said {stated:.0%}"
            )
    click.echo(f"Majority order, fast to slow ({share:.1%} of the configurations): {', '.join(order)}")


def _print_vectors(scores: dict[str, dict[str, dict[str, object]]], seeds: int) -> None:
    columns = ["method", "R2", "R2 per machine", "MAE", "MAPE %", "same order %", "top-1 %", "regret %", "AUC"]
    for protocol, methods in scores.items():
        rows = []
        for name, of_method in methods.items():
            value = {key: score for key, score in of_method.items() if isinstance(score, float)}
            plain = [f"{value[key]:.3f}" for key in ("r2", "r2_per_machine", "mae")]
            percent = [100 * value[key] for key in ("mape", "same_order", "top1", "regret")]
            rows.append([name, *plain, *percent, f"{value['auc']:.3f}"])
        print_table(f"{protocol}: {_VECTOR_PROTOCOLS[protocol]}, seeds: {seeds}", columns, rows)


_PAGE = ".html"
_WALL_SECONDS = "wall_seconds"
"""Run time in tables out of a lake."""
_ABSENT = "-"


@command.command()
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
    check_patterns(drop)
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
    table = modelx_table(read, wanted, seeds, targets=targets, drop=drop, catalogue=load_catalogue(), progress=say)
    if out is not None:
        _write(out, table)
        say(f"page: {out}")
    if as_json:
        print_json({"rows": [row.to_dict() for row in table.rows], "notes": list(table.notes)})
    else:
        _print_modelx(table.rows, seeds)


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
        _print_modelx(rows, seeds)
        say(f"page: {Lake.default().reports / 'modelx.html'}")


def _named(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
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


def _write(out: Path, table: "ModelxTable") -> None:
    """Write the page whole or not at all."""
    from perf_assets.infra.files import write_bytes
    from perf_assets.reports.modelx.page import modelx_page

    is_in_site = out.absolute().parent == Lake.default().reports.absolute()
    write_bytes(out.absolute(), modelx_page(table.to_frame(), is_in_site=is_in_site).encode())


def _print_modelx(rows: "tuple[ModelxRow, ...]", seeds: int) -> None:
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
