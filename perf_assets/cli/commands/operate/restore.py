"""`perf-assets restore`."""

from importlib.resources import files
from pathlib import Path

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, say
from perf_assets.core.paths import database_of
from perf_assets.infra.postgres import Address


@click.command()
@click.argument("backup", type=click.Path(path_type=Path), metavar="BACKUP")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--database", metavar="ADDRESS", help="Empty database for what was in PostgreSQL: postgresql://USER@HOST/DB"
)
@json_option
def command(backup: Path, folder: Path, database: str | None, as_json: bool) -> None:
    """Make DIR, a new folder, a home that holds what BACKUP does, and answers as the saved one did.

    BACKUP is a folder of 'perf-assets backup', and stays as it is. Every file is compared with what was saved; DIR
    appears when all of it is there. Then 'perf-assets -C DIR up' opens the pages.
    """
    from perf_assets.workflows.operate.restore import restore

    workspace = (files("perf_assets") / "cli" / "site" / "workspace.yaml").read_bytes()
    address = None if database is None else Address.given(database)
    contents = restore(backup.absolute(), folder.absolute(), address, workspace, say)
    _end_runs(folder.absolute() / "dagster_home")
    if as_json:
        print_json({"folder": str(folder.absolute()), "files": len(contents.files), "saved_at": contents.made_at})
    else:
        click.echo(f"{folder} holds what was saved at {contents.made_at}; next: perf-assets -C {folder} up")


def _end_runs(home: Path) -> None:
    """End the runs that were at work during the backup: they go on in the saved home only."""
    if database_of(home) is None and not (home / "history").is_dir():
        return
    from perf_assets.defs.operate.dead_runs import end_saved_runs

    end_saved_runs(home)
