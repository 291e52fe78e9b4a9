"""`perf-assets promote`."""

import click

from perf_assets.cli.support.lake import check_registry
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_result
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(1))
@json_option
def command(name: str, version: int, as_json: bool) -> None:
    """Make VERSION of the registered model NAME the @champion, whatever the checks say.

    No newer version takes its place until 'perf-assets unpin NAME'; 'perf-assets rollback' takes it back.
    """
    check_registry()
    from perf_assets.workflows.models.chains import promote

    before, alias = promote(Lake.default(), name, version)
    earlier = f", before {before}" if before else ""
    text = f"{name}@{alias} is version {version}{earlier}; it stays until 'perf-assets unpin'"
    print_result({"name": name, alias: version, "before": before}, text, as_json=as_json)
