"""`perf-assets promote`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(1))
@json_option
def command(name: str, version: int, as_json: bool) -> None:
    """Let VERSION of the registered model NAME be the @champion, whatever the checks said.

    'perf-assets rollback' takes it back.
    """
    from perf_assets.registry.versions import CHAMPION, promote, versions

    before = versions(name).get(CHAMPION)
    promote(name, version)
    if as_json:
        print_json({"name": name, "champion": version, "before": before})
    else:
        click.echo(f"{name}@{CHAMPION} is version {version}" + (f", before {before}" if before else ""))
