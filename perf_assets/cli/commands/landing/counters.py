"""`perf-assets counters`."""

from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import print_rows
from perf_assets.core.measurements import is_run_time
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    from perf_assets.core.catalogue import Resolved


@click.command()
@machine_option
@click.option("--unmapped", is_flag=True, help="Only counters that no quantity is made of.")
@json_option
def command(chosen: tuple[str, ...], unmapped: bool, as_json: bool) -> None:
    """List the counters of each machine, and which canonical quantity each stands for.

    What the catalogue does not know is kept under its own name; add a file to <lake>/catalogue/ to give it a meaning.
    """
    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.workflows.fleet import open_warehouse

    lake = Lake.default()
    catalogue, warehouse = load_catalogue(lake.site_catalogues()), open_warehouse(lake)
    rows = []
    for machine in choose_machines(lake, chosen):
        counters, microarchitecture = warehouse.counters_of(machine)
        formulas = catalogue.resolve(counters, microarchitecture)
        rows += [_row(machine, counter, formulas) for counter in counters]
    if unmapped:
        rows = [row for row in rows if not row["quantities"]]
    columns = ["machine", "counter", "quantities", "meaning"]
    print_rows({"counters": rows}, "Counters", columns, [list(row.values()) for row in rows], as_json=as_json)


def _row(machine: str, counter: str, formulas: "list[Resolved]") -> dict[str, str]:
    if is_run_time(counter):
        return {"machine": machine, "counter": counter, "quantities": "wall_seconds", "meaning": "run time"}
    used = [formula for formula in formulas if counter in formula.counters]
    return {
        "machine": machine,
        "counter": counter,
        "quantities": ", ".join(dict.fromkeys(formula.quantity for formula in used)),
        "meaning": "; ".join(dict.fromkeys(formula.meaning for formula in used)),
    }
