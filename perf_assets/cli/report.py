"""`perf-assets report`."""

import click

from perf_assets.cli.options import json_option
from perf_assets.cli.output import print_json, say_stage


@click.group()
def command() -> None:
    """Write a page of results for people."""


@command.command()
@json_option
def fleet(as_json: bool) -> None:
    """Write the page of the fleet, through Dagster, and print where it is."""
    from perf_assets.defs.runs import write_fleet_page
    from perf_assets.storage.lake import Lake

    write_fleet_page(say_stage)
    path = Lake.default().reports / "fleet.html"
    if as_json:
        print_json({"page": path})
    else:
        click.echo(path)


@command.command()
@json_option
def xamm(as_json: bool) -> None:
    """Write the page of the xAMM experiments from their stored tables, and print where it is."""
    from perf_assets.core.model_tables import XAMM_EMBEDDINGS, XAMM_SCORES
    from perf_assets.reports.xamm_report import origin, xamm_page
    from perf_assets.storage.lake import Lake
    from perf_assets.storage.pages import store_page
    from perf_assets.storage.results import stored

    lake = Lake.default()
    scores, embeddings = (
        stored(lake, table, f"dg launch --assets {table.name}") for table in (XAMM_SCORES, XAMM_EMBEDDINGS)
    )
    path = store_page(lake, "xamm.html", xamm_page(scores, embeddings))
    if as_json:
        print_json({"page": path, "data": origin(scores), "scores_count": len(scores)})
    else:
        click.echo(path)
