"""`perf-assets rollback`."""

import click

from perf_assets.cli.support.lake import check_registry
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_result
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Make the previous champion of the registered model NAME the champion again.

    That is its @champion, which becomes @challenger, or perf-source@with-amm. No newer version takes its place until
    'perf-assets unpin NAME'. Refused where the version could not answer: source model and encoder (perf-amm) need
    descriptions of all machines by that encoder.
    """
    check_registry()
    from perf_assets.workflows.models.chains import roll_back

    alias, now, before = roll_back(Lake.default(), name)
    document = {"name": name, "alias": alias, "version": now, alias: now, "before": before}
    text = f"{name}@{alias} is version {now} again, before {before}; it stays until 'perf-assets unpin'"
    print_result(document, text, as_json=as_json)
