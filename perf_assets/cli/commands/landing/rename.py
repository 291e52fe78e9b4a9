"""`perf-assets rename`."""

import click

from perf_assets.cli.support.lake import check_machine
from perf_assets.cli.support.options import json_option, why_option
from perf_assets.cli.support.output import print_result
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("machine")
@click.argument("name")
@why_option
@json_option
def command(machine: str, name: str, why: str, as_json: bool) -> None:
    """Let all that landed of MACHINE be of NAME instead, which may be another machine that is known.

    Bundles land again under the new name, are ingested, and the old name is forgotten; a model is made anew.
    """
    from perf_assets.cli.support.taking_back import adapt_again, has_model, read_again, remove_machine, say_of_sources
    from perf_assets.workflows.landing.taking_back import forget, rename

    for one in (machine, name):
        check_machine(one)
    lake = Lake.default()
    with_model = has_model(machine) or has_model(name)
    count = rename(lake, machine, name, why)
    read_again(name)
    forget(lake, machine, f"renamed to {name}: {why}")
    say_of_sources(machine)
    remove_machine(lake, machine)
    if with_model:
        adapt_again(name)
    text = f"{count} bundles of {machine} are of {name} now"
    print_result({"machine": machine, "name": name, "bundles": count}, text, as_json=as_json)
