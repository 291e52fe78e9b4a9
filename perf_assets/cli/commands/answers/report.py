"""`perf-assets report`."""

from pathlib import Path

import click

from perf_assets.cli.support.groups import CommandGroup
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

_NO_PAGES = "no machine has a page yet: run 'perf-assets train', then 'perf-assets adapt'"


@click.group(cls=CommandGroup, invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Write the results as pages for people.

    Without a further word: all pages again, as a site that needs no network and can be moved. It begins at index.html.
    """
    if context.invoked_subcommand is None:
        _write_site(Lake.default(), as_json=as_json)
    elif as_json:
        raise click.UsageError(f"--json goes after '{context.invoked_subcommand}'")


@command.command()
@json_option
def fleet(as_json: bool) -> None:
    """Write the page of the fleet, through Dagster, and print where it is."""
    from perf_assets.defs.operate.launch import write_fleet_page
    from perf_assets.storage.pages import INDEX

    write_fleet_page(say_stage)
    path = Lake.default().reports / INDEX
    if as_json:
        print_json({"page": path})
    else:
        click.echo(path)


@command.command()
@json_option
def xamm(as_json: bool) -> None:
    """Write the page of the xAMM experiments from their stored tables, and print where it is."""
    path, data, scores_count = _write_xamm(Lake.default())
    if as_json:
        print_json({"page": path, "data": data, "scores_count": scores_count})
    else:
        click.echo(path)


def _write_site(lake: Lake, *, as_json: bool) -> None:
    from perf_assets.core.tables.models import AMMS, XAMM_EMBEDDINGS, XAMM_SCORES
    from perf_assets.defs.operate.launch import write_site
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import versions
    from perf_assets.storage.pages import INDEX, machine_page_name, other_pages
    from perf_assets.storage.results import has_rows

    if has_rows(lake, XAMM_SCORES) and has_rows(lake, XAMM_EMBEDDINGS):
        say_stage("page of the xAMM experiments")
        _write_xamm(lake)
    with_model = [name for name in lake.machines() if versions(registered_name(name))]
    failures = write_site(with_model, say_stage, has_amms=has_rows(lake, AMMS))
    machines = {name: page for name in lake.machines() if (lake.reports / (page := machine_page_name(name))).is_file()}
    index = lake.reports / INDEX
    if as_json:
        print_json({"index": index, "machines": machines, "others": list(other_pages(lake)), "failures": failures})
    elif index.is_file():
        click.echo(index)
    if failures:
        raise BadInputError("; ".join(failures))
    if not machines:
        say(_NO_PAGES)


def _write_xamm(lake: Lake) -> tuple[Path, str, int]:
    """Where the page is, which data it is from, and of how many scores."""
    from perf_assets.core.tables.models import XAMM_EMBEDDINGS, XAMM_SCORES
    from perf_assets.reports.scores import origin
    from perf_assets.reports.xamm.page import xamm_page
    from perf_assets.storage.pages import store_page
    from perf_assets.storage.results import stored

    scores, embeddings = (
        stored(lake, table, f"dg launch --assets {table.name}") for table in (XAMM_SCORES, XAMM_EMBEDDINGS)
    )
    return store_page(lake, "xamm.html", xamm_page(scores, embeddings)), origin(scores), len(scores)
