"""`perf-assets demo`."""

import click

from perf_assets.cli.commands.adapt import adapt
from perf_assets.cli.commands.ingest import ingest_with_progress, report
from perf_assets.cli.commands.train import train
from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import check_dagster_home
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land

_SEEDS = 2
"""Random draws of shots behind a learning curve."""
_NEXT = """
All of this is simulated. Look at it:
  make up                                      the Dagster page (lineage, tables, checks) and the MLflow page
  data_lake/reports/index.html                 all machines: champions, what is not well, what to do next
  data_lake/reports/machine-dane.html          a machine that came late: its model, learning curve, next runs
  .venv/bin/perf-assets models                 what is registered in MLflow, and from what it was made
  .venv/bin/perf-assets predict --from quartz --to dane   how long all that ran on quartz takes there
  .venv/bin/perf-assets plan dane              which runs on it would teach most
  .venv/bin/perf-assets vectors                a model that predicts all machines from one run (some 4 minutes)
  .venv/bin/perf-assets evaluate xamm          all methods beside their baselines, as a page (about 12 minutes)
  .venv/bin/perf-assets amm                    the machines as vectors; data_lake/reports/amm.html shows them
  .venv/bin/perf-assets counters               what each machine counts, and what it stands for
  .venv/bin/perf-assets land PATH --machine M  your own measurements (see docs/get_started.md)
  .venv/bin/perf-assets ingest                 read what landed, unless the sensor of 'make up' does
"""


@click.command()
@click.option("--scale", default=1.0, show_default=True, help="Size of the fleet's data: 0.1 for a try, 100 for load.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same files.")
@machine_option
@json_option
def command(scale: float, seed: int, chosen: tuple[str, ...], as_json: bool) -> None:
    """Simulate a fleet of machines, land its files, and materialise every asset from them.

    The files are genuine RAJAPerf, HPCToolkit, PAPI and perf stat formats; the measurements in them are simulated.
    """
    from perf_assets.demo.fleet_machines import load_machines

    known = sorted(load_machines())
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise BadInputError(f"machine {unknown[0]!r} is not in the simulated fleet: choose from {', '.join(known)}")
    if not 0 < scale <= 1000:
        raise BadInputError(f"--scale {scale:g} is out of range: give a number above 0 and up to 1000")
    lake = Lake.default()
    check_dagster_home()
    machines = sorted(chosen) or known
    _land_fleet(lake, scale, seed, machines)
    outcomes = ingest_with_progress(machines)
    if not any(outcome.failure for outcome in outcomes):
        _make_models(lake, seed, machines)
    say(_NEXT)
    report(lake, machines, outcomes, as_json=as_json)


def _make_models(lake: Lake, seed: int, machines: list[str]) -> None:
    """Source models of the fleet, and target models of the machines that came last."""
    from perf_assets.defs.operate.runs import write_fleet_page
    from perf_assets.demo.fleet import LATER_MACHINES

    try:
        train(lake, seed)
        adapt([machine for machine in LATER_MACHINES if machine in machines], seed, _SEEDS)
        write_fleet_page(say_stage)
    except BadInputError as error:
        say(f"Not all models were made: {error}")


def _land_fleet(lake: Lake, scale: float, seed: int, machines: list[str]) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from perf_assets.demo.fleet import fleet_bundles

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("landing", total=len(machines))
        current, count = "", 0
        for bundle in fleet_bundles(scale, seed, machines):
            if bundle.facts.machine != current:
                progress.advance(task, 1 if current else 0)
                current, count = bundle.facts.machine, 0
            land(lake, bundle.facts, bundle.name, bundle.write)
            count += 1
            progress.update(task, description=f"landing {current}: {count} bundles")
        progress.advance(task)
