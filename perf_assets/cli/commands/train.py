"""`perf-assets train`."""

import time

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, say_stage
from perf_assets.storage.lake import Lake


@click.command()
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@json_option
def command(seed: int, as_json: bool) -> None:
    """Train the AMM encoder, describe every machine, train the source models and register them in MLflow.

    Needs ingested machines (perf-assets ingest). Runs the same assets as the Dagster page, where the runs show up.
    """
    lake = Lake.default()
    start = time.monotonic()
    train(lake, seed)
    from perf_assets.registry.source import NAME
    from perf_assets.registry.versions import versions

    found = [{"model": NAME, "alias": alias, "version": number} for alias, number in versions(NAME).items()]
    if as_json:
        print_json({"registered": found, "seconds": time.monotonic() - start})
    else:
        for row in found:
            click.echo(f"models:/{row['model']}@{row['alias']}  (version {row['version']})")


def train(lake: Lake, seed: int) -> None:
    """Train with a line for each stage."""
    from perf_assets.defs.operate.runs import train_fleet

    train_fleet(choose_machines(lake, ()), seed, say_stage)
