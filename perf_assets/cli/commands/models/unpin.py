"""`perf-assets unpin`."""

import click

from perf_assets.cli.support.lake import check_registry
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_result


@click.command()
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Let versions of the registered model NAME compete again after 'promote' or 'rollback'.

    What people get stays as it is until the next version is judged.
    """
    check_registry()
    from perf_assets.registry.versions import all_aliases, unknown_model, unpin

    names = sorted(all_aliases())
    if name not in names:
        raise unknown_model(name, names)
    pinned = unpin(name)
    text = f"{name} was pinned to {'; '.join(pinned)}" if pinned else f"{name} was not pinned"
    print_result({"name": name, "was_pinned": pinned}, text, as_json=as_json)
