"""`perf-assets plan`."""

import click

from perf_assets.cli.lake import check_machine
from perf_assets.cli.options import json_option
from perf_assets.cli.output import print_json, print_table


@click.command()
@click.argument("machine")
@click.option("--budget", type=click.IntRange(1, 1000), default=10, show_default=True, help="Runs to plan.")
@json_option
def command(machine: str, budget: int, as_json: bool) -> None:
    """Rank the configurations to run next on MACHINE by how much they lower the expected error.

    Runs are priced in node-hours: the predicted time, on the nodes that the configuration uses elsewhere.
    """
    from perf_assets.defs.machine_facts import planned
    from perf_assets.defs.resources import LakeResource
    from perf_assets.registry.target import shown_of

    check_machine(machine)
    _, _, adapted = shown_of(machine)
    rows = planned(LakeResource(), adapted, budget)
    if as_json:
        print_json({"machine": machine, "runs": rows.to_dict("records")})
        return
    for name, part in rows.groupby("seen_as", sort=False):
        shown = part.assign(
            error_before_ratio=100 * part["error_before_ratio"],
            error_after_ratio=100 * part["error_after_ratio"],
            node_hours=part["node_hours"].map("{:.3g}".format),
        )[["rank", "configuration", "error_before_ratio", "error_after_ratio", "node_hours"]]
        print_table(
            f"{name}: {len(part)} runs, {part['node_hours'].sum():.3g} node-hours in all",
            ["rank", "configuration", "expected error before %", "after %", "node-hours"],
            shown.to_numpy().tolist(),
        )
