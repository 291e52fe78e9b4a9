"""`perf-assets train`."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    from perf_assets.models.source.settings import SourceSettings


@click.command()
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@click.option(
    "--method", "methods", multiple=True, metavar="NAME", help="Only these methods are tried, as in raw_amm_xgboost."
)
@click.option(
    "--quick",
    "is_quick",
    is_flag=True,
    help="Two methods, the paper's AMMs, a short training of attention: less accurate.",
)
@json_option
def command(seed: int, methods: tuple[str, ...], is_quick: bool, as_json: bool) -> None:
    """Train the AMM encoder, describe every machine, train the source models and register them in MLflow.

    Needs ingested machines (perf-assets ingest). Runs the same assets as the Dagster page, where the runs show up. A
    --method is a description (raw, embedding, raw_amm, embedding_amm) and a downstream model (xgboost, random_forest,
    bagging, adaboost); all of them are tried where none is named, which takes most of the time.
    """
    lake = Lake.default()
    start = time.monotonic()
    train(lake, seed, methods, is_quick=is_quick)
    from perf_assets.registry.source import NAME
    from perf_assets.registry.versions import versions

    in_use = [{"model": NAME, "alias": alias, "version": number} for alias, number in versions(NAME).items()]
    if as_json:
        print_json({"registered": in_use, "seconds": time.monotonic() - start})
    else:
        for row in in_use:
            click.echo(f"models:/{row['model']}@{row['alias']}  (version {row['version']})")


def train(lake: Lake, seed: int, methods: Sequence[str] = (), *, is_quick: bool = False) -> None:
    """Train with a line for each stage."""
    from perf_assets.defs.operate.launch import train_fleet
    from perf_assets.models.source.settings import SourceSettings

    known = SourceSettings()
    unknown = sorted(set(methods) - {*known.without_amm, *known.with_amm})
    if unknown:
        raise BadInputError(f"--method {unknown[0]} is not known: choose from {', '.join(_every(known))}")
    chosen = {
        "without_amm": [name for name in known.without_amm if name in methods],
        "with_amm": [name for name in known.with_amm if name in methods],
    }
    settings = SourceSettings.quick().model_dump(mode="json", exclude_defaults=True) if is_quick else {}
    choose_machines(lake, ())
    settings |= {kind: names for kind, names in chosen.items() if names}
    train_fleet(seed, say_stage, settings, chooses_amm_options=not is_quick)


def _every(settings: "SourceSettings") -> list[str]:
    return [*settings.without_amm, *settings.with_amm]
