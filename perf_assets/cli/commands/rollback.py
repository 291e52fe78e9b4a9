"""`perf-assets rollback`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json
from perf_assets.storage.lake import Lake


@click.command()
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Let the version that people got of NAME before be what they get again.

    That is its @champion, which becomes @challenger, or perf-source@with-amm. Refused where the version could not
    answer: a source model needs descriptions of all machines by its own encoder.
    """
    from perf_assets.workflows.chains import roll_back

    alias, now, before = roll_back(Lake.default(), name)
    if as_json:
        print_json({"name": name, "alias": alias, "version": now, alias: now, "before": before})
    else:
        click.echo(f"{name}@{alias} is version {now} again, before {before}")
