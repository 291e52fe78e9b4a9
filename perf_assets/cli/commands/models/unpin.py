"""`perf-assets unpin`."""

import click

from perf_assets.cli.support.lake import check_registry
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_result
from perf_assets.core.errors import BadInputError


@click.command()
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Let versions of the registered model NAME compete again after 'promote' or 'rollback'.

    What people get stays as it is until the next version is judged.
    """
    check_registry()
    from perf_assets.registry.versions import tags_by_version, unpin

    if not tags_by_version(name):
        raise BadInputError(f"no model {name} is registered: see 'perf-assets models'")
    pinned = unpin(name)
    text = f"{name} was pinned to {'; '.join(pinned)}" if pinned else f"{name} was not pinned"
    print_result({"name": name, "was_pinned": pinned}, text, as_json=as_json)
