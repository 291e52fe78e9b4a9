"""`perf-assets models`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table


@click.command()
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the registered models with their aliases, or all versions of NAME with their provenance.

    NAME is that of a registered model, as in perf-target-ruby.
    """
    from perf_assets.registry.versions import registered

    found = [version for version in registered(name) if name is not None or version.aliases]
    if as_json:
        rows = [
            {
                "name": version.name,
                "version": version.version,
                "aliases": version.aliases,
                "created_at": version.created_at.isoformat(timespec="seconds"),
                "tags": version.tags,
                "metrics": version.metrics,
            }
            for version in found
        ]
        print_json({"models": rows})
        return
    columns = ["model", "version", "aliases", "registered (UTC)", "source version", "severity", "Dagster run"]
    print_table(
        "Registered models" if name is None else f"All versions of {name}",
        columns,
        [
            (
                version.name,
                version.version,
                ", ".join(version.aliases) or "-",
                f"{version.created_at:%Y-%m-%d %H:%M}",
                version.tags.get("source_version", "-"),
                version.tags.get("severity", "-"),
                version.tags.get("dagster_run_id", "-")[:8],
            )
            for version in found
        ],
    )
