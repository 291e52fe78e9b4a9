"""`perf-assets evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.modelx_tables import modelx
from perf_assets.cli.support.options import json_option, reference_option
from perf_assets.cli.support.output import print_json, print_table, say, say_stage
from perf_assets.cli.support.tables import check_pattern, read_machine_tables, read_table, split_names
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import TRANSFER_MATRIX
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    import pandas as pd


EMBEDDINGS = ("raw", "tabnet", "nn", "ae", "vae")
_PROTOCOLS = {"loao": "unseen application (leave one out)", "lomo": "unseen machine (leave one out)"}
_VECTOR_PROTOCOLS = {"sample": "80/20 by configuration", "app": "unseen application (each in turn)"}


@click.group()
def command() -> None:
    """Score methods beside their baselines on data of your own."""


command.add_command(modelx)


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
    (counters), onehot (and the machines' names), spec (and --spec), embedding (TabNet), embedding_amm and raw_amm (and
    the published AMMs), raw_relative_amm (and the pair's benchmark ratios). Or answers without trees: unchanged,
    pair_median, benchmark_mean; attention, bilinear, mixture, likeness; anchored_xgboost, anchored_spec_xgboost
    (departures from the mean benchmark ratio); best (a blend, chosen on what is held out within the training data).
    What has AMMs, benchmark or machine models in it needs --benchmark-app.

    Folds are computed side by side, as many as there are threads (PERF_ASSETS_THREADS). A protocol that the tables do
    not allow (no machine of two can be left out) is said to be impossible before the work, and the rest is done.
    """
    wanted = _listed(protocols, "--protocol", tuple(_PROTOCOLS))
    for pattern in drop:
        check_pattern(pattern)
    frames = read_machine_tables(tables)

    from perf_assets.features.tables.paired import Roles, pair_tables, with_specification

    roles = Roles(tuple(split_names(key)), app_column, time_column, benchmarks, drop)
    samples = pair_tables(frames, roles)
    if spec is not None:
        table = read_table(spec)
        samples = with_specification(samples, table, _machine_column(table, spec, samples.machines))
    for note in samples.notes:
        say(note)

    from perf_assets.models.common.regressors import DOWNSTREAM
    from perf_assets.models.source.evaluation import evaluate_relative
    from perf_assets.models.source.methods import default_methods

    trees = _listed(downstream, "--downstream", DOWNSTREAM)
    chosen = split_names(methods) if methods is not None else default_methods(samples, trees)
    found = evaluate_relative(samples, chosen, wanted, seeds, say)
    if as_json:
        print_json(
            {
                "protocols": found,
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
        _print(found, seeds)


def _print(found: dict[str, dict[str, dict[str, object]]], seeds: int) -> None:
    columns = ["method", "MAPE %", "+- seeds", "median %", "log error", "within 10% %", "within 25% %"]
    for protocol, methods in found.items():
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
    for pattern in drop:
        check_pattern(pattern)
    frames = read_machine_tables(tables)

    from perf_assets.features.tables.paired import Roles
    from perf_assets.features.vectors import check_reference, vector_table

    check_reference(reference, tuple(frames))
    samples = vector_table(frames, Roles(tuple(split_names(key)), app_column, time_column, (), drop))
    for note in samples.paired.notes:
        say(note)

    from perf_assets.core.vector_settings import VectorSettings
    from perf_assets.models.vectors.evaluation import BEST, evaluate_vectors, majority_order

    settings = VectorSettings.quick() if is_quick else VectorSettings()
    chosen = None if methods is None else split_names(methods)
    found = evaluate_vectors(samples, reference, seeds, settings, chosen, progress=say)
    order, share = majority_order(samples)
    if figures is not None:
        from perf_assets.reports.vectors.figures import draw_all

        for path in draw_all(found.rows, found.entries, found.vectors, figures):
            say(f"drawn: {path}")
    if as_json:
        print_json(
            {
                "protocols": found.scores,
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
    _print_vectors(found.scores, seeds)
    for protocol, scores in found.scores.items():
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
        for name, found in methods.items():
            value = {key: score for key, score in found.items() if isinstance(score, float)}
            plain = [f"{value[key]:.3f}" for key in ("r2", "r2_per_machine", "mae")]
            percent = [100 * value[key] for key in ("mape", "same_order", "top1", "regret")]
            rows.append([name, *plain, *percent, f"{value['auc']:.3f}"])
        print_table(f"{protocol}: {_VECTOR_PROTOCOLS[protocol]}, seeds: {seeds}", columns, rows)
