"""`perf-assets init`."""

from importlib.resources import files
from pathlib import Path

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_result
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import check_restored
from perf_assets.infra.files import write_bytes

_WRITTEN = {"workspace.yaml": "workspace.yaml", "dagster.yaml": "dagster_home/dagster.yaml"}
"""Files that the package has, and where in the folder they go."""
_LAKE = "data_lake"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Make DIR a home of perf_assets: a data lake with a site file, a Dagster home, a workspace for Dagster's commands.

    What is there already is left as it is. Then 'perf-assets -C DIR up' opens the pages, and every other command works
    on it the same way; PERF_ASSETS_HOME=DIR stands for '-C DIR'.
    """
    from perf_assets.core.site import EXAMPLE, FILE_NAME

    folder = folder.absolute()
    check_restored(folder)
    in_the_way = [place for place in (folder, folder / "dagster_home", folder / _LAKE) if _is_no_folder(place)]
    if in_the_way:
        raise BadInputError(f"{in_the_way[0]} is a file: name a folder, or one that is not there yet")
    (folder / _LAKE).mkdir(parents=True, exist_ok=True)
    made = []
    for name, place in _WRITTEN.items():
        target = folder / place
        if target.exists():
            continue
        write_bytes(target, (files("perf_assets") / "cli" / "site" / name).read_bytes())
        made.append(place)
    site = folder / _LAKE / FILE_NAME
    if not site.exists():
        write_bytes(site, EXAMPLE.encode())
        made.append(f"{_LAKE}/{FILE_NAME}")
    text = f"{folder}: {', '.join(made) or 'nothing'} written; next: perf-assets -C {folder} up"
    print_result({"folder": str(folder), "written": made}, text, as_json=as_json)


def _is_no_folder(place: Path) -> bool:
    return place.exists() and not place.is_dir()
