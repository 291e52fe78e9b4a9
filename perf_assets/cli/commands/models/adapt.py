"""`perf-assets adapt`."""

from collections.abc import Mapping

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import print_json, print_table, say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.storage.lake import Lake

_METHOD_TITLES = {
    "product": "our model",
    "source_unchanged": "time unchanged",
    "target_ridge": "these runs alone (ridge)",
    "target_gp": "these runs alone (Gaussian process)",
}
"""Methods that are printed, in the words of a person."""


_ERRORS = {"mape": "our model", "mape_target_only": "these runs alone", "mape_unchanged": "time unchanged"}
"""Metrics of a champion, in the words of a person."""


@click.command()
@machine_option
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME|all",
    help="The model of this dataset from other datasets, instead of machines; may be repeated.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Random draws of shots.")
@click.option(
    "--most-shots",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Most runs on a machine that its model is fitted to; the others are left to judge it by.",
)
@json_option
def command(
    chosen: tuple[str, ...], datasets: tuple[str, ...], seed: int, seeds: int, most_shots: int, as_json: bool
) -> None:
    """Fit target models from the runs that landed, score them over the number of runs, and register them.

    Each machine gets a page in the lake's folder of reports. Needs ingested machines (perf-assets ingest). With
    --dataset, a table of samples with features and a target of its own gets a model from other such tables.
    """
    if datasets:
        if chosen:
            raise BadInputError("--machine and --dataset exclude each other: choose one")
        _adapt_datasets(datasets, seed, seeds, as_json=as_json)
        return
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHAMPION, metrics_of, versions
    from perf_assets.storage.pages import INDEX, machine_page_name
    from perf_assets.storage.results import stored_or_empty

    lake = Lake.default()
    machines = choose_machines(lake, chosen)
    adapt(machines, seed, seeds, most_shots)
    scores = stored_or_empty(lake, TRANSFER_SCORES)
    registered = {m: versions(registered_name(m)).get(CHAMPION) for m in machines}
    if as_json:
        groups = scores[scores["machine"].isin(machines)].groupby(["machine", "target", "method", "shots"])
        medians = groups["mape_ratio"].median().reset_index().to_dict("records")
        print_json({"registered": registered, "median_mape": medians})
        return
    for machine in machines:
        here = scores[(scores["machine"] == machine) & scores["method"].isin(list(_METHOD_TITLES))]
        if here.empty:
            continue
        table = here.pivot_table(index=["target", "method"], columns="shots", values="mape_ratio", aggfunc="median")
        title = f"{registered_name(machine)} version {registered[machine]}: median MAPE % by shots"
        shown = table.map(lambda ratio: "-" if ratio != ratio else f"{100 * ratio:.1f}").reset_index()
        percent = shown.replace({"method": _METHOD_TITLES}).to_numpy().tolist()
        print_table(title, ["target", "method", *map(str, table.columns)], percent)
    for name, version in ((registered_name(machine), registered[machine]) for machine in machines):
        if version is not None:
            say(f"{name} version {version}: {_errors(metrics_of(name, version))}")
    say(f"page: {lake.reports / (machine_page_name(machines[0]) if len(machines) == 1 else INDEX)}")


def _errors(metrics: Mapping[str, float]) -> str:
    """Errors of a champion on held-out runs beside those of baselines, in words."""
    known = {words: metrics[name] for name, words in _ERRORS.items() if name in metrics}
    if "mape" not in metrics:
        return "too few runs to hold some out: its error is not known yet"
    return "error on held-out runs: " + ", ".join(f"{words} {100 * ratio:.1f}%" for words, ratio in known.items())


def _adapt_datasets(datasets: tuple[str, ...], seed: int, seeds: int, *, as_json: bool) -> None:
    from perf_assets.core.tables.datasets import DATASET_VERDICTS
    from perf_assets.defs.operate.launch import adapt_datasets
    from perf_assets.registry.transfer import registered_name
    from perf_assets.registry.versions import CHAMPION, versions
    from perf_assets.storage.datasets import stored_names
    from perf_assets.storage.results import rows_of

    lake = Lake.default()
    wanted = [] if "all" in datasets else list(datasets)
    adapt_datasets(wanted, seed, seeds, say_stage)
    rows = []
    for name in wanted or stored_names(lake):
        verdicts = rows_of(lake, DATASET_VERDICTS, name)
        if verdicts is None:
            continue
        last = verdicts.iloc[-1]
        shown = {key: last[key] for key in ("version", "decision", "shots", "log_rmse", "target_only_log_rmse")}
        champion = versions(registered_name(name)).get(CHAMPION)
        rows.append({"dataset": name, **shown, "champion": champion, "reason": last["reason"]})
    if as_json:
        print_json({"datasets": rows})
        return
    print_table("Models of datasets", list(rows[0]), [list(row.values()) for row in rows])
    say(f"pages: {lake.reports}/dataset-*.html")


def adapt(machines: list[str], seed: int, seeds: int, most_shots: int = 200) -> None:
    """Adapt with a line for each machine."""
    from perf_assets.defs.operate.launch import adapt_machines

    adapt_machines(machines, seed, seeds, say_stage, {"most_shots": most_shots})
