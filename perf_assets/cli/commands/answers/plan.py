"""`perf-assets plan`."""

import re
import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.lake import check_machines
from perf_assets.cli.support.options import json_option, one_machine
from perf_assets.cli.support.output import print_json, print_table
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake
from perf_assets.workflows.landing.measure_node import carried, job_head

if TYPE_CHECKING:
    from perf_assets.serving.answers import PlannedRun


@click.command()
@one_machine
@click.option("--budget", type=click.IntRange(1, 1000), default=10, show_default=True, help="Runs to plan.")
@click.option("--script", is_flag=True, help="Print a script that measures them, to be run on the machine.")
@click.option("--slurm", "system", flag_value="slurm", help="With --script: as a job of Slurm.")
@click.option("--flux", "system", flag_value="flux", help="With --script: as a job of Flux.")
@json_option
def command(machine: str, budget: int, script: bool, system: str | None, as_json: bool) -> None:
    """Rank the configurations to run next on MACHINE by how much they lower the expected error.

    Runs are priced in node-hours: the predicted time, on the nodes that the configuration uses elsewhere. Left out are
    runs of which ten would lower the expected error by less than 2% of it, once the model knows 20 runs; where no run
    is worth it, the plan says so. What the script leaves lands as it is ('perf-assets land bundles'), and the next
    plan knows it.
    """
    if script and as_json:
        raise BadInputError("--script and --json print different things: give one of them")
    if system and not script:
        raise BadInputError(f"--{system} is for the script: give --script too")
    check_machines([machine])
    from perf_assets.api import open_lake

    rows = open_lake().plan(machine, budget)
    chosen = [run for run in rows if run.is_worth_it]
    if script:
        if not chosen:
            raise BadInputError(f"no run is left to measure: {' '.join(rows.notes)}")
        _print_script(machine, chosen, system)
        return
    if as_json:
        print_json({"machine": machine, "verdicts": list(rows.notes), "runs": rows.to_dicts()})
        return
    for name, part in groupby(chosen, key=lambda run: run.seen_as):
        print_table(
            name,
            ["rank", "configuration", "expected error before %", "after %", "node-hours"],
            [
                (
                    run.rank,
                    run.configuration,
                    100 * run.error_before_ratio,
                    100 * run.error_after_ratio,
                    "-" if run.node_hours is None else f"{run.node_hours:.3g}",
                )
                for run in part
            ],
        )
    for note in rows.notes:
        click.echo(note)


def _print_script(machine: str, runs: "Sequence[PlannedRun]", system: str | None) -> None:
    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.workflows.landing.event_sets import event_sets, measure_script

    sets = event_sets(load_catalogue(Lake.default().site_catalogues()), None)
    click.echo(plan_script(machine, runs, measure_script(sets), system), nl=False)


_START = {"slurm": "srun -N {nodes} -n {ranks} -c {threads}", "flux": "flux run -N {nodes} -n {ranks} -c {threads}"}
_PLAIN_START = "mpirun -np {ranks}"


def plan_script(machine: str, runs: "Sequence[PlannedRun]", measure: str, system: str | None = None) -> str:
    """Text of a POSIX shell script, or of a job of `slurm` or `flux`; `measure` is that of the measuring script.

    Programs are variables at the top: a model knows what an application is called, not where it is.
    """
    apps: dict[str, str] = {}
    for run in runs:
        name = f"program_{re.sub('[^a-z0-9]', '_', run.app.lower())}"
        apps.setdefault(run.app, name if name not in apps.values() else f"{name}_{len(apps)}")
    hours = sum(run.node_hours or 0.0 for run in runs)
    nodes, ranks = (max(getattr(run, name) for run in runs) for name in ("nodes", "ranks"))
    head = job_head(system, nodes, ranks) if system else ["#!/bin/sh\n"]
    lines = [
        f"# {len(runs)} runs that say most about {machine}: {hours:.3g} node-hours in all, per pass of counters.\n",
        "# Say here where the programs are. Arguments are without those that select the back end: add them.\n",
        *(f"{variable}=${{{variable}:-{shlex.quote(app)}}}\n" for app, variable in apps.items()),
        "out=${out:-bundles}\n\n",
        *(_check(app, variable) for app, variable in apps.items()),
        "failed=0\n",
    ]
    body = [text for run in runs for text in _run_lines(machine, run, apps[run.app], system)]
    tail = [f'echo "Now: perf-assets land $out; perf-assets adapt --machine {machine}" >&2\n', "exit $failed\n"]
    return "".join([*head, *lines, *carried(measure), *body, *tail])


def _check(app: str, variable: str) -> str:
    refusal = f'echo "no program for {_shown(app)}: set {variable}" >&2; exit 2'
    return f'command -v "${variable}" > /dev/null || {{ {refusal}; }}\n'


def _run_lines(machine: str, run: "PlannedRun", variable: str, system: str | None) -> list[str]:
    hours = "" if run.node_hours is None else f", {run.node_hours:.3g} node-hours"
    errors = f"{100 * run.error_before_ratio:.1f}% to {100 * run.error_after_ratio:.1f}%"
    where = "" if run.seen_as == machine else f" ({_shown(run.seen_as)})"
    options = ["--machine", machine, "--app", run.app]
    for name in ("ranks", "threads", "nodes"):
        options += [f"--{name}", str(getattr(run, name))]
    if run.ranks > 1:
        start = _START.get(system or "", _PLAIN_START)
        options += ["--launcher", start.format(ranks=run.ranks, threads=run.threads, nodes=run.nodes)]
    call = f'python3 "$measure" {shlex.join(options)} --out "$out" -- "${variable}" {shlex.join(_words(run.args))}'
    return [
        f"\n# {run.rank}{where}: expected error from {errors}{hours}\n",
        f"OMP_NUM_THREADS={run.threads} {call.rstrip()} || failed=1\n",
    ]


def _words(args: str) -> list[str]:
    """Arguments as a shell takes them apart; by blanks, where their quotes do not match."""
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()


def _shown(text: str) -> str:
    """A name in a comment or between double quotes."""
    return re.sub(r"[^\w .+()-]", "_", text)
