"""`perf-assets withdraw`."""

import click

from perf_assets.cli.support.options import json_option, why_option
from perf_assets.cli.support.output import print_result
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("bundle")
@why_option
@click.option("--machine", metavar="ID", help="Machine of the bundle, where several have one of this name.")
@json_option
def command(bundle: str, why: str, machine: str | None, as_json: bool) -> None:
    """Take back the landed BUNDLE: its rows count no more, and tables, model and page of its machine are made anew.

    Its files stay in the landing zone, and the record says who withdrew it and why. A corrected bundle of the same name
    lands as usual.
    """
    from perf_assets.cli.support.taking_back import adapt_again, has_model, read_again, say_of_sources
    from perf_assets.workflows.landing.taking_back import bundle_machine, withdraw

    lake = Lake.default()
    machine = bundle_machine(lake, bundle, machine)
    bundles = withdraw(lake, machine, bundle, why)
    read_again(machine)
    if has_model(machine):
        adapt_again(machine)
    say_of_sources(machine)
    text = f"withdrawn of {machine}: {', '.join(bundles)}"
    print_result({"machine": machine, "withdrawn": bundles}, text, as_json=as_json)
