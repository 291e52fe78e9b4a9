"""`perf-assets adapt`."""

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import print_json, print_table, say, say_stage
from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.storage.lake import Lake

_SHOWN = ("product", "without_prior", "target_gp")


@click.command()
@machine_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Random draws of shots.")
@json_option
def command(chosen: tuple[str, ...], seed: int, seeds: int, as_json: bool) -> None:
    """Fit target models from the runs that landed, score them over the number of runs, and register them.

    Each machine gets a page in the lake's folder of reports. Needs ingested machines (perf-assets ingest).
    """
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHAMPION, versions
    from perf_assets.storage.results import stored

    lake = Lake.default()
    machines = choose_machines(lake, chosen)
    adapt(machines, seed, seeds)
    scores = stored(lake, TRANSFER_SCORES, "perf-assets adapt")
    registered = {m: versions(registered_name(m)).get(CHAMPION) for m in machines}
    if as_json:
        groups = scores[scores["machine"].isin(machines)].groupby(["machine", "target", "method", "shots"])
        found = groups["mape_ratio"].median().reset_index().to_dict("records")
        print_json({"registered": registered, "median_mape": found})
        return
    for machine in machines:
        here = scores[(scores["machine"] == machine) & scores["method"].isin(_SHOWN)]
        if here.empty:
            continue
        table = here.pivot_table(index=["target", "method"], columns="shots", values="mape_ratio", aggfunc="median")
        title = f"{registered_name(machine)} version {registered[machine]}: median MAPE % by shots"
        percent = (100 * table).reset_index().to_numpy().tolist()
        print_table(title, ["target", "method", *map(str, table.columns)], percent)
    say(f"pages: {lake.reports}/machine-*.html")


def adapt(machines: list[str], seed: int, seeds: int) -> None:
    """Adapt with a line for each machine."""
    from perf_assets.defs.operate.runs import adapt_machines

    adapt_machines(machines, seed, seeds, say_stage)
