"""`perf-assets promote`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(1))
@json_option
def command(name: str, version: int, as_json: bool) -> None:
    """Let VERSION of the registered model NAME be the @champion, whatever the checks said.

    'perf-assets rollback' takes it back.
    """
    from perf_assets.workflows.chains import promote

    before, alias = promote(Lake.default(), name, version)
    if as_json:
        print_json({"name": name, alias: version, "before": before})
    else:
        click.echo(f"{name}@{alias} is version {version}" + (f", before {before}" if before else ""))
