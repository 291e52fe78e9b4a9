"""Inputs of the scheduling experiment: a trace, how problems scale on machines, what target models say of them."""

from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.scheduling.fleet_jobs import Problem
    from perf_assets.scheduling.traces.trace import Trace


def modelled_machines(fleet: Fleet) -> list[str]:
    """Machines that have a target model."""
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHAMPION, versions

    return [machine for machine in fleet.lake.machines() if CHAMPION in versions(registered_name(machine))]


def champion_version(machine: str) -> int:
    """Version of a machine's target model in use; refuses where there is none."""
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHAMPION, versions

    version = versions(registered_name(machine)).get(CHAMPION)
    if version is None:
        raise BadInputError(f"there is no target model of {machine!r}: run 'perf-assets adapt --machine {machine}'")
    return version


def fleet_problems(fleet: Fleet, machines: list[str]) -> "list[Problem]":
    """Problems with their runs on machines, in the order given, that the machines' target models were not fitted to."""
    import pandas as pd

    from perf_assets.features.fleet.samples import SCALING_QUERY, scaling_runs
    from perf_assets.models.target.model import held_out_predictions
    from perf_assets.registry.target import champion_of

    models = []
    for machine in machines:
        champion = champion_of(machine)
        if champion is None:
            raise BadInputError(f"there is no target model of {machine!r}: run 'perf-assets adapt --machine {machine}'")
        models.append(champion[1])
    predictions = pd.concat([held_out_predictions(model) for model in models], ignore_index=True)
    problems = _problems(scaling_runs(fleet.warehouse.frame(SCALING_QUERY), predictions), machines)
    if not problems:
        raise BadInputError(f"{machines[0]} ran nothing that its target model was not fitted to: land more runs")
    return problems


def most_scaling_machine(fleet: Fleet) -> str:
    """The machine with a target model on which most problems ran on several numbers of nodes."""
    machines = modelled_machines(fleet)
    if not machines:
        raise BadInputError("no machine has a target model: run 'perf-assets adapt' first")
    counts = {}
    for machine in machines:
        try:
            counts[machine] = sum(bool(p.narrower().any()) for p in fleet_problems(fleet, [machine]))
        except BadInputError:
            continue
    if not any(counts.values()):
        raise BadInputError(
            f"no problem ran on several numbers of nodes on {', '.join(machines)}: adapt a machine where some did"
        )
    return max(counts, key=lambda machine: counts[machine])


def given_trace(path: str | None, nodes: int | None, seed: int) -> "tuple[Trace, int]":
    """The trace of a file, or one drawn from the simulated log that ships, and the nodes of the machine it is for."""
    from perf_assets.scheduling.traces.draw import drawn, simulated_trace
    from perf_assets.scheduling.traces.read import read_trace

    trace = drawn(simulated_trace(), seed) if path is None else read_trace(Path(path))
    size = nodes or trace.most_nodes or int(trace.nodes.max())
    return trace.that_fits(size), size


def _problems(runs: "pd.DataFrame", machines: list[str]) -> "list[Problem]":
    import numpy as np

    from perf_assets.features.fleet.samples import PROBLEM
    from perf_assets.scheduling.fleet_jobs import Problem

    problems = []
    for (app, _), rows in runs.groupby(list(PROBLEM), sort=True):
        position = np.array([machines.index(machine) for machine in rows["machine"]], np.int64)
        if (position == 0).any():
            seconds = (rows[name].to_numpy(float) for name in ("seconds", "predicted_seconds", "upper_seconds"))
            problems.append(Problem(str(app), position, rows["nodes"].to_numpy(np.int64), *seconds))
    return problems
