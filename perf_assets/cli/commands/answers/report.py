"""`perf-assets report`."""

import click

from perf_assets.cli.support.groups import CommandGroup
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_result, say, say_stage
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
    print_result({"page": path}, path, as_json=as_json)


@command.command()
@json_option
def xamm(as_json: bool) -> None:
    """Write the page of the xAMM experiments from their stored tables, and print where it is."""
    from perf_assets.reports.scores import origin
    from perf_assets.workflows.models.experiments import write_xamm_report

    path, scores = write_xamm_report(Lake.default())
    print_result({"page": path, "data": origin(scores), "scores_count": len(scores)}, path, as_json=as_json)


def _write_site(lake: Lake, *, as_json: bool) -> None:
    from perf_assets.core.tables.models import AMMS, XAMM_EMBEDDINGS, XAMM_SCORES
    from perf_assets.defs.operate.launch import write_site
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import versions
    from perf_assets.storage.pages import INDEX, machine_page_name, other_pages
    from perf_assets.storage.results import has_rows
    from perf_assets.workflows.models.experiments import write_xamm_report

    if has_rows(lake, XAMM_SCORES) and has_rows(lake, XAMM_EMBEDDINGS):
        say_stage("page of the xAMM experiments")
        write_xamm_report(lake)
    with_model = [name for name in lake.machines() if versions(registered_name(name))]
    failures = write_site(with_model, say_stage, has_amms=has_rows(lake, AMMS))
    machines = {name: page for name in lake.machines() if (lake.reports / (page := machine_page_name(name))).is_file()}
    index = lake.reports / INDEX
    document = {"index": index, "machines": machines, "others": list(other_pages(lake)), "failures": failures}
    if as_json:
        print_json(document)
    elif index.is_file():
        click.echo(index)
    if failures:
        raise BadInputError("; ".join(failures))
    if not machines:
        say(_NO_PAGES)
