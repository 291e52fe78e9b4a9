"""A plan as a script for the machine: each run measured, so that what it leaves lands as it is."""

import re
import shlex
from collections.abc import Sequence

from perf_assets.serving.answers import PlannedRun
from perf_assets.workflows.landing.measure_node import carried, job_head

_START = {"slurm": "srun -N {nodes} -n {ranks} -c {threads}", "flux": "flux run -N {nodes} -n {ranks} -c {threads}"}
_PLAIN_START = "mpirun -np {ranks}"


def plan_script(machine: str, runs: Sequence[PlannedRun], measure: str, system: str | None = None) -> str:
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


def _run_lines(machine: str, run: PlannedRun, variable: str, system: str | None) -> list[str]:
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
