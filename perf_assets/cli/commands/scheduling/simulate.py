"""`perf-assets simulate`."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from perf_assets.cli.support.options import json_option, machine_sizes
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import KILL_TARGET, Estimates, KillAt, Planning, Policy

if TYPE_CHECKING:
    from perf_assets.scheduling.fleet_jobs import Problem
    from perf_assets.scheduling.simulate import Machine, Schedule
    from perf_assets.scheduling.traces.trace import Trace

LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
ORIGIN = (
    "jobs are measured runs of the table, submissions and limits are those of the trace, squeezed to the load of the "
    "stock policy; all policies plan with the limit"
)

_MOST_LOAD = 100.0


@dataclass(frozen=True)
class _Fleet:
    """Settings for jobs that are problems of the fleet: what the scheduler may choose, and among which machines."""

    machines: "tuple[Machine, ...]"
    problems: "list[Problem]"
    is_moldable: bool
    seed: int


@click.command()
@click.argument("trace", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the machine; as the trace says where not given.")
@click.option(
    "--policy", "policies", type=click.Choice([p.value for p in Policy]), multiple=True, help="May be repeated. [easy]"
)
@click.option(
    "--estimates",
    type=click.Choice([e.value for e in Estimates]),
    multiple=True,
    help="What is planned with; may be repeated. [user, oracle, predicted]",
)
@click.option(
    "--kill-at",
    type=click.Choice([k.value for k in KillAt]),
    default=KillAt.REQUEST.value,
    show_default=True,
    help="When a running job is killed; 'bound' concerns predicted estimates only.",
)
@click.option(
    "--kill-target",
    type=click.FloatRange(0.0, 0.5, min_open=True),
    default=KILL_TARGET,
    show_default=True,
    help="Share of jobs that may run longer than the predicted bound.",
)
@click.option("--moldable", is_flag=True, help="Jobs may start on fewer nodes: they scale like problems of the fleet.")
@click.option("--machines", metavar="M=N,...", help="Machines of the fleet to choose from, with their nodes.")
@click.option(
    "--jobs",
    "jobs_table",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="TABLE",
    help="Jobs are measured runs of this CSV (app, nodes, runtime_seconds); the trace says when they come.",
)
@click.option(
    "--speeds",
    "speeds_table",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="TABLE",
    help="Jobs are workloads of this CSV of relative speeds; each is sent to one of --machines when it comes.",
)
@click.option("--known", multiple=True, metavar="M", help="With --speeds: columns that predictions start from.")
@click.option("--models", is_flag=True, help="With --speeds: ask the lake's champions about runs on the first --known.")
@click.option("--gpu-only", multiple=True, metavar="APP", help="With --speeds: an application that runs on GPUs only.")
@click.option("--shots", multiple=True, metavar="N|P%", help="With --jobs, --speeds: rows that are learned from.")
@click.option("--zone", metavar="NAME", help="Time zone of local times, such as America/Denver; clocks change by it.")
@click.option("--window", metavar="FROM..TO", help="Part of the trace: dates (the last included) or numbers of jobs.")
@click.option("--draw", type=click.IntRange(0), metavar="SEED", help="Keep submissions, draw jobs from the window.")
@click.option("--load", type=click.FloatRange(0.0, _MOST_LOAD, min_open=True), help="Let jobs come in at this load.")
@click.option("--repetitions", type=click.IntRange(1, 1000), default=1, show_default=True, help="Shaken traces.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of which job is which problem.")
@click.option("--events", type=click.Path(path_type=Path, file_okay=False), help="Folder for event logs (CSV).")
@json_option
def command(
    trace: Path,
    nodes: int | None,
    policies: tuple[str, ...],
    estimates: tuple[str, ...],
    kill_at: str,
    kill_target: float,
    moldable: bool,
    machines: str | None,
    jobs_table: Path | None,
    speeds_table: Path | None,
    known: tuple[str, ...],
    models: bool,
    gpu_only: tuple[str, ...],
    shots: tuple[str, ...],
    zone: str | None,
    window: str | None,
    draw: int | None,
    load: float | None,
    repetitions: int,
    seed: int,
    events: Path | None,
    as_json: bool,
) -> None:
    """Schedule the jobs of TRACE again, and say what each policy is worth.

    TRACE is a job log, plain or gzip: Standard Workload Format, Slurm ('sacct -P', or its export as CSV), allocation
    history of CSM, or Flux (table, or JSON lines); which, is seen from the file.

    Jobs are as in the trace: measured. With --moldable or --machines they scale like problems of the fleet, and target
    models predict them: this needs a lake with such models (perf-assets adapt), and rigid jobs with users' estimates
    on the first machine are shown beside.

    With --jobs, ModelX's experiment is done: rows of TABLE are submitted when jobs of the trace were, and run as they
    are (stock), on the nodes that the table chose (NAME_nodes, NAME_seconds), or on the fewest nodes that are predicted
    to be fast enough (NAME_predicted_seconds, and --shots); loads are 0.5 to 1.2, or --load.

    With --speeds and --machines, jobs are workloads of TABLE (a row per workload, a column per cluster, or
    CLUSTER-cpu and CLUSTER-gpu), and go to a cluster by predicted turnaround, by relative time, by wait, or at random.
    Predictions are perfect ones, with --known and --shots few-shot ones and averages, and with --known and --models
    those of the registered target, source and vector models.
    """
    from perf_assets.scheduling.traces.read import read_trace

    if machines and nodes:
        raise BadInputError("--machines says how many nodes there are: leave --nodes out")
    log = read_trace(trace, zone)
    if window is not None:
        log = log.window(window)
    is_other = bool(moldable or policies or estimates or events or draw is not None)
    if jobs_table is not None:
        is_other = is_other or bool(machines or speeds_table or known or models or gpu_only)
        _simulate_table(log, jobs_table, nodes, shots, load, repetitions, seed, is_other, as_json)
    elif speeds_table is not None:
        clusters = None if is_other or machines is None else machines
        predictions = (known, shots, models)
        _simulate_speeds(log, speeds_table, clusters, predictions, gpu_only, load, repetitions, seed, as_json)
    elif shots or known or models or gpu_only:
        raise BadInputError("--shots goes with --jobs or --speeds; --known, --models and --gpu-only with --speeds")
    else:
        fleet = _fleet(machines, nodes or log.most_nodes, moldable, seed) if moldable or machines else None
        size = fleet.machines[0].nodes if fleet else nodes or log.most_nodes or int(log.nodes.max())
        plans = _plans(log, policies, estimates, KillAt(kill_at), kill_target)
        _simulate_log(log, fleet, size, plans, draw, load, repetitions, events, as_json)


def _simulate_log(
    log: "Trace",
    fleet: _Fleet | None,
    size: int,
    plans: list[tuple[Policy, Planning]],
    draw: int | None,
    load: float | None,
    repetitions: int,
    events: Path | None,
    as_json: bool,
) -> None:
    """Jobs as in the trace, or scaling like problems of the fleet."""
    from perf_assets.scheduling.simulate import compile_all

    name, log = log.name, log.that_fits(size)
    if not len(log):
        raise BadInputError(f"no job of {name} fits into {size} nodes")
    _say_notes(log)
    drawn_from = None
    if draw is not None:
        log, drawn_from = _drawn(log, draw)
    if load is not None:
        log = log.at_load(load, size)
    say(f"{len(log):,} jobs on {size:,} nodes, load {log.load(size):.2f}")
    compile_seconds = compile_all()
    named = _named(log, plans, fleet)
    started = perf_counter()
    values = {
        name: _repeated(log, size, fleet, policy, planning, is_free, repetitions)
        for name, policy, planning, is_free in named
    }
    simulate_seconds = perf_counter() - started
    if events is not None:
        _write_events(events, log, size, fleet, named)
    document = {
        "jobs": len(log),
        "policies": values,
        "simulate_seconds": simulate_seconds,
        "compile_seconds": compile_seconds,
        "trace": log.name,
        "nodes": size,
        "load": log.load(size),
        "skipped": dict(log.skipped),
        "notes": list(log.notes),
        "origin": _origin(fleet),
        "drawn": drawn_from,
    }
    if as_json:
        print_json(document)
    else:
        _print(document)


def _simulate_table(
    trace: "Trace",
    table: Path,
    nodes: int | None,
    shots: tuple[str, ...],
    load: float | None,
    repetitions: int,
    seed: int,
    is_other: bool,
    as_json: bool,
) -> None:

    if nodes is None or is_other:
        raise BadInputError(
            "--jobs goes with --nodes, --shots, --window, --load, --repetitions and --seed; it needs --nodes"
        )
    _say_notes(trace)
    document = simulate_table(trace, table, nodes, shots, load, repetitions, seed)
    if as_json:
        print_json(document)
    else:
        print_table(
            f"{table.name} on {nodes} nodes, {document['jobs']:,} jobs; {document['origin']}", *table_rows(document)
        )


def _simulate_speeds(
    trace: "Trace",
    table: Path,
    machines: str | None,
    predictions: tuple[tuple[str, ...], tuple[str, ...], bool],
    gpu_only: tuple[str, ...],
    load: float | None,
    repetitions: int,
    seed: int,
    as_json: bool,
) -> None:
    """Jobs are workloads sent to clusters; `predictions` are known machines, shots, and whether to ask models."""
    from perf_assets.cli.support.dispatch import simulate_dispatch, table_rows
    from perf_assets.scheduling.simulate import Machine

    if machines is None:
        raise BadInputError(
            "--speeds goes with --machines, --known, --shots, --models, --gpu-only, --window, --load, --repetitions "
            "and --seed; it needs --machines, such as dane=514,tioga=30"
        )
    clusters = tuple(Machine(name, size) for name, size in machine_sizes(machines).items())
    _say_notes(trace)
    known, shots, models = predictions
    document = simulate_dispatch(
        trace, table, clusters, known=known, shots=shots, models=models, gpu_only=gpu_only, load=load,
        repetitions=repetitions, seed=seed,
    )  # fmt: skip
    if as_json:
        print_json(document)
    else:
        print_table(f"{table.name}, {document['jobs']:,} jobs; {document['origin']}", *table_rows(document))


def _drawn(window: "Trace", seed: int) -> "tuple[Trace, dict[str, dict[str, float]]]":
    """Jobs drawn from a window, and how they compare with it; a warning names differences beyond chance."""
    from dataclasses import asdict

    from perf_assets.scheduling.traces.draw import drawn, likeness

    jobs = drawn(window, seed)
    compared = likeness(window, jobs)
    differing = [name for name, one in compared.items() if not one.is_alike]
    say(f"drawn jobs compare with the window's in {len(compared) - len(differing)} of {len(compared)} distributions")
    for name in differing:
        say(f"differs more than by chance: {name}, mean {compared[name].drawn_mean:,.0f} "
            f"instead of {compared[name].window_mean:,.0f}")  # fmt: skip
    return jobs, {name: asdict(one) for name, one in compared.items()}


def _fleet(machines: str | None, nodes: int | None, is_moldable: bool, seed: int) -> _Fleet:
    from perf_assets.scheduling.simulate import Machine
    from perf_assets.storage.lake import Lake
    from perf_assets.workflows.fleet import Fleet
    from perf_assets.workflows.scheduling.scheduled_problems import fleet_problems, most_scaling_machine

    fleet = Fleet(Lake.default())
    if machines is not None:
        sizes = machine_sizes(machines)
    elif nodes is not None:
        sizes = {most_scaling_machine(fleet): nodes}
    else:
        raise BadInputError("the trace does not say how many nodes its machine has: give --nodes")
    problems = fleet_problems(fleet, list(sizes))
    return _Fleet(tuple(Machine(name, size) for name, size in sizes.items()), problems, is_moldable, seed)


def _plans(
    trace: "Trace", policies: tuple[str, ...], estimates: tuple[str, ...], kill_at: KillAt, kill_target: float
) -> list[tuple[Policy, Planning]]:
    if not estimates:
        estimates = tuple(e.value for e in Estimates if e is not Estimates.BOUND)
        if not trace.has_requests():
            say("users' estimates are left out: the trace does not have them")
            estimates = estimates[1:]
    chosen = [Estimates(name) for name in dict.fromkeys(estimates)]
    if kill_at is KillAt.BOUND and not any(Planning(e).learns for e in chosen):
        raise BadInputError("--kill-at bound goes with --estimates predicted or bound")
    return [
        (Policy(policy), Planning(e, _kill_at(e, kill_at), kill_target))
        for policy in dict.fromkeys(policies or (Policy.EASY.value,))
        for e in chosen
    ]


def _kill_at(estimates: Estimates, kill_at: KillAt) -> KillAt:
    """Only predicted estimates have a bound; beside them, others are killed at the request."""
    return KillAt.REQUEST if kill_at is KillAt.BOUND and not Planning(estimates).learns else kill_at


def _named(
    trace: "Trace", plans: list[tuple[Policy, Planning]], fleet: _Fleet | None
) -> list[tuple[str, Policy, Planning, bool]]:
    """Name, policy, planning, and whether the scheduler may choose width and machine."""
    if fleet is None:
        return [(f"{policy.value}/{planning.estimates.value}", policy, planning, False) for policy, planning in plans]
    what = "+".join(
        word for word, is_so in (("moldable", fleet.is_moldable), ("machines", len(fleet.machines) > 1)) if is_so
    )
    usual = Planning(Estimates.USER if trace.has_requests() else Estimates.ORACLE)
    rigid = [
        (f"{policy.value}/{usual.estimates.value} rigid", policy, usual, False)
        for policy in dict.fromkeys(policy for policy, _ in plans)
    ]
    return rigid + [
        (f"{policy.value}/{planning.estimates.value} {what}", policy, planning, True) for policy, planning in plans
    ]


def _repeated(
    trace: "Trace",
    nodes: int,
    fleet: _Fleet | None,
    policy: Policy,
    planning: Planning,
    is_free: bool,
    repetitions: int,
) -> dict[str, Any]:
    """Values of the trace as it is; with repetitions, also the range of the means over shaken ones."""
    import numpy as np

    from perf_assets.scheduling.metrics import measure

    every = [
        measure(_schedule(trace.shaken(seed) if seed else trace, nodes, fleet, policy, planning, is_free))
        for seed in range(repetitions)
    ]
    values: dict[str, Any] = {**every[0].as_document()}
    if repetitions > 1:
        for name in ("turnaround_mean_s", "wait_mean_s", "bounded_slowdown_mean"):
            means = [metrics.as_document()[name] for metrics in every]
            values[f"{name}_shaken"] = {
                "mean": float(np.mean(means)),
                "std": float(np.std(means)),
                "min": min(means),
                "max": max(means),
            }
    return values


def _schedule(
    trace: "Trace", nodes: int, fleet: _Fleet | None, policy: Policy, planning: Planning, is_free: bool
) -> "Schedule":
    from perf_assets.scheduling.fleet_jobs import FleetJobs, Freedom
    from perf_assets.scheduling.simulate import simulate_trace
    from perf_assets.scheduling.strategies import Strategy

    if fleet is None:
        return simulate_trace(trace, nodes, policy, planning)
    sizes = [machine.nodes for machine in fleet.machines]
    jobs = FleetJobs.mapped(trace, fleet.problems, sizes, fleet.seed)
    freedom = Freedom(nodes=is_free and fleet.is_moldable, machine=is_free)
    return Strategy(policy, planning, freedom).schedule(jobs, fleet.machines)


def _write_events(
    folder: Path, trace: "Trace", nodes: int, fleet: _Fleet | None, named: list[tuple[str, Policy, Planning, bool]]
) -> None:
    from perf_assets.infra.files import write_bytes
    from perf_assets.scheduling.events import as_csv, event_log

    folder.mkdir(parents=True, exist_ok=True)
    for name, policy, planning, is_free in named:
        schedule = _schedule(trace, nodes, fleet, policy, planning, is_free)
        text = as_csv(event_log(schedule), schedule.machines, trace.number)
        write_bytes(folder / f"{name.replace('/', '-').replace(' ', '-')}.csv", text.encode())


def _origin(fleet: _Fleet | None) -> str:
    if fleet is None:
        return "jobs as in the trace (measured); predictions from jobs that ended before"
    return (
        "jobs as in the trace, scaling like runs of the fleet (simulated in the demo); predictions from target models"
    )


def _say_notes(trace: "Trace") -> None:
    for reason, count in trace.skipped.items():
        say(f"left out: {count:,} {reason}")
    for note in trace.notes:
        say(note)


def _print(document: dict[str, Any]) -> None:
    columns = ("turnaround_mean_s", "wait_mean_s", "bounded_slowdown_mean", "makespan_s", "utilisation", "killed")
    rows = [
        [name, *(f"{values[c]:.3f}" if c == "utilisation" else values[c] for c in columns)]
        for name, values in document["policies"].items()
    ]
    heads = ["policy/estimates", "turnaround s", "wait s", "bounded slowdown", "makespan s", "utilisation", "killed"]
    print_table(f"{document['trace']}: means over {document['jobs']:,} jobs; {document['origin']}", heads, rows)


def simulate_table(
    trace: "Trace", table: Path, nodes: int, shots: tuple[str, ...], load: float | None, repetitions: int, seed: int
) -> dict[str, Any]:
    """Means over repetitions by load and policy, and all rows."""
    import pandas as pd

    from perf_assets.scheduling.moldable import MoldableExperiment, MoldableTable, sweep
    from perf_assets.workflows.scheduling.moldable import with_predictions

    if not trace.has_requests():
        raise BadInputError(f"{trace.name} does not say how long users asked for: limits cannot be drawn from it")
    try:
        frame = pd.read_csv(table)
    except (ValueError, OSError) as error:
        raise BadInputError(f"{table} is no table of jobs (CSV): {error}") from None
    jobs = MoldableTable.of(with_predictions(frame, shots, seed, say) if shots else frame, nodes)
    for note in jobs.notes:
        say(f"{table.name}: {note}")
    experiment = MoldableExperiment(jobs, trace, nodes)
    rows = sweep(experiment, LOADS if load is None else [load], repetitions, seed)
    return {
        "jobs": len(experiment.later),
        "trace": trace.name,
        "nodes": nodes,
        "policies": means(rows),
        "rows": rows,
        "skipped": dict(trace.skipped),
        "notes": [*trace.notes, *jobs.notes],
        "origin": ORIGIN,
    }


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per load and policy: means over repetitions, and the range of turnarounds relative to the stock policy."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    averaged = []
    for (load, policy), part in frame.groupby(["load", "policy"], sort=False):
        ratios = part["turnaround_ratio"]
        tolerance = part["tolerance"].iloc[0]
        values = part.drop(columns=["policy", "load", "repetition", "tolerance"]).mean()
        averaged.append({
            "load": load, "policy": policy, "tolerance": None if pd.isna(tolerance) else float(tolerance),
            "turnaround_ratio_min": float(ratios.min()), "turnaround_ratio_max": float(ratios.max()),
            **{str(name): float(value) for name, value in values.items()},
        })  # fmt: skip
    return averaged


def table_rows(document: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows for people."""
    heads = ["load", "policy", "tolerance", "turnaround s", "of stock", "wait s", "bounded slowdown", "makespan s",
             "utilisation", "node-hours", "nodes per job"]  # fmt: skip
    rows = []
    for row in document["policies"]:
        tolerance = row["tolerance"]
        rows.append([
            f"{row['load']:g}", row["policy"], "" if tolerance is None else f"{tolerance:.0%}",
            row["turnaround_mean_s"], f"{row['turnaround_ratio']:.1%}", row["wait_mean_s"],
            row["bounded_slowdown_mean"], row["makespan_s"], f"{row['utilisation']:.3f}", row["node_hours"],
            f"{row['nodes_per_job']:.1f}",
        ])  # fmt: skip
    return heads, rows
