"""Predictions for the jobs of a log: other widths on its machine, and other machines."""

from collections.abc import Callable, Sequence
from math import exp
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError, RegistryError, UnknownError, listed
from perf_assets.storage.aliases import known_applications, load_aliases
from perf_assets.workflows.fleet import Fleet, open_warehouse

if TYPE_CHECKING:
    from perf_assets.models.scaling.model import ScalingModel
    from perf_assets.models.scaling.runs import ScalingRuns
    from perf_assets.scheduling.other_ways import ModelledJobs, Way
    from perf_assets.scheduling.simulate import Machine
    from perf_assets.scheduling.traces.trace import Trace
    from perf_assets.serving.predictor import Predictor


def modelled(
    predictor: "Predictor", trace: "Trace", machine: str, nodes: int, others: "Sequence[Machine]" = ()
) -> "ModelledJobs":
    """Predictions for the applications of a log: other widths on its machine, and other machines."""
    from perf_assets.models.scaling.runs import NODES
    from perf_assets.scheduling.other_ways import NINETY_PERCENT, ModelledJobs
    from perf_assets.scheduling.simulate import Machine
    from perf_assets.workflows.models.scaling import scaling_runs

    lake = predictor.lake
    if machine not in lake.machines():
        raise UnknownError(f"machine {machine!r} is not known: there are {listed(lake.machines()) or 'none yet'}")
    if not trace.application_names:
        raise BadInputError(
            f"{trace.name} has no names of applications: only logs of Slurm and Flux with job names have models to ask"
        )
    aliases = load_aliases(lake, known_applications(lake))
    called = {name: aliases.application(name) for name in trace.application_names}
    every = scaling_runs(open_warehouse(lake), machine)
    runs = {app: one for app, one in every.items() if one.width == NODES and app in called.values()}
    widths = {app: _narrower(one, one.fit()) for app, one in runs.items()}
    notes = [f"{app}: models of {machine} know its widths" for app in widths]
    elsewhere: dict[str, list[Way]] = {}
    for place, other in enumerate(others, start=1):
        for app in sorted(set(called.values())):
            try:
                way = _there(predictor, app, machine, place, other.name)
            except (BadInputError, UnknownError, RegistryError):
                continue
            elsewhere.setdefault(app, []).append(way)
            low, high = (way.ratio * exp(sign * NINETY_PERCENT * way.deviation) for sign in (-1, 1))
            notes.append(
                f"{app}: predicted {way.ratio:.2f} times as long on {other.name} (90%: {low:.2f} to {high:.2f})"
            )
    made_up = [name for name in (machine, *(one.name for one in others)) if Fleet(lake).is_simulated(name)]
    if made_up and notes:
        notes.append(f"models of {listed(made_up)} were made of simulated runs")
    ways: dict[str, Callable[[int], Sequence[Way]]] = {}
    for name, app in called.items():
        if app in widths or app in elsewhere:
            ways[name] = _ways(widths.get(app), elsewhere.get(app, []), [nodes, *(one.nodes for one in others)])
    if not ways:
        raise BadInputError(
            f"none of the {len(called)} applications of {trace.name} has a model on {machine}: the lake knows "
            f"{listed(sorted(every)) or 'none that ran on three numbers of nodes'}; aliases.yaml maps names of jobs"
        )
    return ModelledJobs((Machine(machine, nodes), *others), ways, tuple(notes))


def _ways(
    narrower: "Callable[[int], Sequence[Way]] | None", elsewhere: "Sequence[Way]", sizes: Sequence[int]
) -> "Callable[[int], Sequence[Way]]":
    from perf_assets.scheduling.other_ways import Way

    def find(nodes: int) -> "Sequence[Way]":
        here = list(narrower(nodes)) if narrower is not None else []
        there = [Way(one.machine, nodes, one.ratio, one.deviation) for one in elsewhere]
        return [way for way in (*here, *there) if way.nodes <= sizes[way.machine]]

    return find


def _narrower(runs: "ScalingRuns", model: "ScalingModel") -> "Callable[[int], Sequence[Way]]":
    """Ways on halves, quarters, ... of the requested nodes, within the measured widths: the mean over problems."""
    import numpy as np

    from perf_assets.scheduling.other_ways import NINETY_PERCENT, Way

    problems = np.unique(runs.values[:, 1:], axis=0)
    least, most = float(runs.widths.min()), float(runs.widths.max())

    def find(nodes: int) -> "Sequence[Way]":
        if not least <= nodes <= most:
            return []
        halves: list[int] = []
        while nodes // 2 ** (len(halves) + 1) >= max(least, 1):
            halves.append(nodes // 2 ** (len(halves) + 1))
        if not halves:
            return []
        asked = np.array([[width, *problem] for width in (nodes, *halves) for problem in problems])
        times = model.predict(asked)
        seconds = np.log(times.seconds).reshape(len(halves) + 1, -1)
        reach = np.log(times.upper / times.seconds).reshape(len(halves) + 1, -1).mean(axis=1) / NINETY_PERCENT
        ratios = np.exp((seconds - seconds[0]).mean(axis=1))
        return [Way(0, width, float(ratios[i]), float(reach[i])) for i, width in enumerate(halves, start=1)]

    return find


def _there(predictor: "Predictor", app: str, machine: str, place: int, other: str) -> "Way":
    """The mean relative time of an application's runs on another machine."""
    import numpy as np

    from perf_assets.scheduling.other_ways import NINETY_PERCENT, Way
    from perf_assets.serving.asked_runs import stored_runs

    answers = predictor.predict(stored_runs(predictor.lake, machine, app), other, with_measured=True)
    times = np.log([one.relative_time for one in answers])
    reach = np.log([one.upper_seconds / one.predicted_seconds for one in answers])
    return Way(place, 0, float(np.exp(times.mean())), float(reach.mean() / NINETY_PERCENT))
