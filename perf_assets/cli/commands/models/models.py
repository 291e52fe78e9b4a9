"""`perf-assets models`."""

from dataclasses import asdict

import click

from perf_assets.cli.support.lake import check_registry
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_rows, print_table
from perf_assets.core.errors import BadInputError


@click.command()
@click.argument("name", required=False)
@click.option("--lineage", is_flag=True, help="Print what NAME was made of, link by link, down to what landed.")
@json_option
def command(name: str | None, lineage: bool, as_json: bool) -> None:
    """List the registered models with their aliases, or all versions of NAME with their provenance.

    NAME is that of a registered model, as in perf-target-ruby.
    """
    check_registry()
    from perf_assets.registry.versions import pin_of, registered

    if lineage:
        if name is None:
            raise BadInputError("--lineage is of one model: name it, as in perf-target-ruby")
        _print_lineage(name, as_json=as_json)
        return

    listed = [version for version in registered(name) if name is not None or version.aliases]
    pins = {(one.name, alias): pin_of(one.name, alias) for one in listed for alias in one.aliases}
    if as_json:
        rows = [
            {
                "name": version.name,
                "version": version.version,
                "aliases": version.aliases,
                "pinned": [pin for alias in version.aliases if (pin := pins[version.name, alias])],
                "created_at": version.created_at.isoformat(timespec="seconds"),
                "tags": version.tags,
                "metrics": version.metrics,
            }
            for version in listed
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
                ", ".join(f"{a} (pinned)" if pins[version.name, a] else a for a in version.aliases) or "-",
                f"{version.created_at:%Y-%m-%d %H:%M}",
                version.tags.get("source_version", "-"),
                version.tags.get("severity", "-"),
                version.tags.get("dagster_run_id", "-")[:8],
            )
            for version in listed
        ],
    )


def _print_lineage(name: str, *, as_json: bool) -> None:
    """Target model, source model and encoder, each with the manifests it was made of."""
    from perf_assets.registry.lineage import chain

    links = chain(name)
    print_rows(
        {"lineage": [asdict(link) for link in links]},
        f"What {name} version {links[0].version} was made of",
        ["model", "version", "named as", "aliases", "manifests", "digest of manifests"],
        [
            (
                link.name,
                link.version or "no longer registered",
                link.identity,
                ", ".join(link.aliases) or "-",
                link.manifests_count or "-",
                link.manifests_digest[:16] or "-",
            )
            for link in links
        ],
        as_json=as_json,
    )
