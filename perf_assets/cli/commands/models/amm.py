"""`perf-assets amm`."""

from pathlib import Path

import click

from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import print_rows, say
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import AMMS
from perf_assets.storage.lake import Lake


@click.command()
@machine_option
@click.option(
    "--export", type=click.Path(path_type=Path), metavar="FILE", help="Write the AMMs to a .json or .parquet file."
)
@json_option
def command(chosen: tuple[str, ...], export: Path | None, as_json: bool) -> None:
    """Show the Abstract Machine Models: one vector per machine, made of its RAJAPerf runs by the frozen encoder.

    They are made by 'perf-assets train', and for a new machine by 'perf-assets ingest'.
    """
    from perf_assets.storage.amm_files import export_amms, of_one_encoder
    from perf_assets.storage.results import stored

    rows, stale = of_one_encoder(stored(Lake.default(), AMMS, "perf-assets train"))
    if stale:
        say(f"left out, described by another encoder: {', '.join(stale)}; run 'perf-assets train'")
    unknown = sorted(set(chosen) - set(rows["machine"]))
    if unknown:
        from perf_assets.workflows.fleet import Fleet
        from perf_assets.workflows.machines.readiness import Readiness

        ready = Readiness.of(Fleet(Lake.default()), unknown[0])
        missing = next(item for item in (ready.landed, ready.kernels) if not item.is_done or item is ready.kernels)
        raise BadInputError(f"there is no AMM of {unknown[0]}: {missing.sentence}")
    rows = rows[rows["machine"].isin(chosen)] if chosen else rows
    if export is not None:
        export_amms(rows, export)
        say(f"written: {export}")
    vectors = rows.pivot(index="seen_as", columns="component", values="value")
    first = rows.iloc[0]
    made = {name: str(first[name]) for name in ("encoder_version", "weighting", "normalize")}
    by_machine = {str(name): list(map(float, vector)) for name, vector in vectors.T.items()}
    title = ", ".join(f"{name} {value}" for name, value in made.items())
    shown = [[name, *(f"{value:z.3f}" for value in vector)] for name, vector in by_machine.items()]
    columns = ["machine", *map(str, vectors.columns)]
    print_rows({**made, "machines": by_machine}, title, columns, shown, as_json=as_json)
