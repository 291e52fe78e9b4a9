"""`perf-assets forget`."""

import click

from perf_assets.cli.support.lake import check_machine
from perf_assets.cli.support.options import json_option, why_option
from perf_assets.cli.support.output import print_result
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("machine")
@why_option
@json_option
def command(machine: str, why: str, as_json: bool) -> None:
    """Take MACHINE out of the lake, the warehouse, the registry, Dagster and the pages.

    What landed and its record are moved to the lake's folder 'withdrawn', with a note of who and why.
    """
    from perf_assets.cli.support.taking_back import remove_machine, say_of_sources
    from perf_assets.workflows.landing.taking_back import forget

    check_machine(machine)
    lake = Lake.default()
    folder = forget(lake, machine, why)
    say_of_sources(machine)
    remove_machine(lake, machine)
    text = f"{machine} is forgotten; what landed of it is in {folder}"
    print_result({"machine": machine, "moved_to": folder}, text, as_json=as_json)
