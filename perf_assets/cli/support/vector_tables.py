"""`perf-assets evaluate vector`: relative-performance vectors on plain tables."""

from pathlib import Path

import click

from perf_assets.cli.support.options import json_option, reference_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.cli.support.tables import check_pattern, read_machine_tables, split_names

_PROTOCOLS = {"sample": "80/20 by configuration", "app": "unseen application (each in turn)"}


@click.command()
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
    _print(found.scores, seeds)
    for protocol, scores in found.scores.items():
        if BEST in scores:
            inside, stated, right = (scores[BEST][name] for name in ("coverage", "stated_order", "same_order"))
            click.echo(
                f"{protocol}: {inside:.0%} of the times are within the 90% intervals of {BEST}; "
                f"{right:.0%} of its orders are right, it said {stated:.0%}"
            )
    click.echo(f"Majority order, fast to slow ({share:.1%} of the configurations): {', '.join(order)}")


def _print(scores: dict[str, dict[str, dict[str, object]]], seeds: int) -> None:
    columns = ["method", "R2", "R2 per machine", "MAE", "MAPE %", "same order %", "top-1 %", "regret %", "AUC"]
    for protocol, methods in scores.items():
        rows = []
        for name, found in methods.items():
            value = {key: score for key, score in found.items() if isinstance(score, float)}
            plain = [f"{value[key]:.3f}" for key in ("r2", "r2_per_machine", "mae")]
            percent = [100 * value[key] for key in ("mape", "same_order", "top1", "regret")]
            rows.append([name, *plain, *percent, f"{value['auc']:.3f}"])
        print_table(f"{protocol}: {_PROTOCOLS[protocol]}, seeds: {seeds}", columns, rows)
