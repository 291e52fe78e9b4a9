"""`perf-assets rollback`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json


@click.command()
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Let the version that was @champion of NAME before be it again; the present one becomes @challenger."""
    from perf_assets.registry.versions import CHAMPION, roll_back

    now, before = roll_back(name)
    if as_json:
        print_json({"name": name, "champion": now, "before": before})
    else:
        click.echo(f"{name}@{CHAMPION} is version {now} again, before {before}")
