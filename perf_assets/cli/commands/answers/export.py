"""`perf-assets export`."""

from pathlib import Path

import click

from perf_assets.cli.support.groups import CommandGroup
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import check_folder, print_result
from perf_assets.storage.lake import Lake


@click.group(cls=CommandGroup)
def command() -> None:
    """Write runs, and what models are made of, into files for other programs."""


@command.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Parquet file to write.")
@json_option
def inputs(out: Path, as_json: bool) -> None:
    """Write the inputs of downstream models: one row per run and ordered pair of machines that ran it.

    Columns: embedding of the run on its source, AMM of the source, AMM of the target, relative_time, is_simulated, and
    the versions of encoder and source model. Made by 'perf-assets train'.
    """
    from perf_assets.workflows.exports.downstream_inputs import export_inputs

    check_folder(out)
    rows, columns = export_inputs(Lake.default(), out)
    document = {"file": str(out), "rows": rows, "columns": columns}
    print_result(document, f"{rows} rows of {columns} columns are in {out}", as_json=as_json)


@command.command()
@click.option("--machine", help="Runs of this machine only.")
@click.option("--app", help="Runs of this application only; RAJAPerf is one, too.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="JSON file to write.")
@json_option
def thicket(machine: str | None, app: str | None, out: Path, as_json: bool) -> None:
    """Write runs for Thicket, which reads them with Thicket.from_json(open(FILE).read()).

    A profile per run: regions where the run has some (Caliper), kernels of RAJAPerf, counters of the whole program, and
    what is known of the run as metadata.
    """
    from perf_assets.infra.files import write_bytes
    from perf_assets.workflows.exports.thicket import thicket_json

    check_folder(out)
    text, count = thicket_json(Lake.default(), machine, app)
    write_bytes(out.absolute(), text.encode())
    print_result({"file": str(out), "profiles": count}, f"{count} profiles are in {out}", as_json=as_json)
