"""`perf-assets probe`."""

from pathlib import Path

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import check_folder, print_json, say


@click.command()
@click.argument("machine")
@click.option("--out", type=click.Path(path_type=Path), help="File to write, as machine.yaml; printed if absent.")
@click.option(
    "--measure", "with_tests", is_flag=True, help="Also test memory bandwidth and matrix products, for seconds."
)
@click.option(
    "--benchpark", type=click.Path(path_type=Path), help="A hardware_description.yaml of Benchpark, which is added."
)
@json_option
def command(machine: str, out: Path | None, with_tests: bool, benchpark: Path | None, as_json: bool) -> None:
    """Write the data sheet of MACHINE by looking at the node that this runs on.

    Figures that no node shows (bytes per cycle of caches, units) are those of a known machine with the same cores, or
    with the nearest ancestor of them that is known; the sheet says whose. What is not found is said, and has a line in
    the file. Land it with 'perf-assets land PATH --spec machine.yaml'.
    """
    from perf_assets.core.errors import BadInputError
    from perf_assets.demo.fleet_machines import load_machines
    from perf_assets.workflows.landing.probe import probe

    if out is not None:
        check_folder(out)
    if benchpark is not None and not benchpark.is_file():
        raise BadInputError(f"{benchpark} does not exist")
    sheet = probe(machine, list(load_machines().values()), with_tests=with_tests, benchpark=benchpark)
    if out is not None:
        out.write_text(sheet.to_yaml())
    if as_json:
        print_json({"machine": machine, "figures": sheet.fields, "sources": sheet.sources, "missing": sheet.missing})
    elif out is None:
        click.echo(sheet.to_yaml(), nl=False)
    for path in sheet.missing:
        say(f"not found: {path}")
