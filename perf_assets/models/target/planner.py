"""Configurations to run next on the target: those whose runs tell most about all others.

The correction's covariance tells, before a run is made, how much less uncertain every other prediction will be after
it. Runs are picked one after the other; each pick takes those before it into account. Where runs have a price, what
counts is the gain for it, among runs that lower the error enough to be worth it (`core/planned_runs.py`).

The linear cause of the correction is left out when runs are picked: under it the most extreme runs look the most
instructive, and there a straight line is the least to be trusted.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.planned_runs import ENOUGH_RUNS, WORTH_IT
from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.models.target.causes import without_profile
from perf_assets.models.target.correction import PairedModel
from perf_assets.models.target.model import AdaptedTarget

_MEAN_OVER_SPREAD = float(np.sqrt(2 / np.pi))
"""Mean absolute deviation of a normal distribution over its standard deviation."""
MOST_CANDIDATES = 2000
"""Runs that stand for the whole population, and for all candidates, if there are more: memory grows as their square."""
_SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True)
class PickedRun:
    """One configuration to run, in its place of the plan."""

    row: int
    configuration: str
    app: str
    error_before: float
    """Expected relative error over the population without this run, with those planned before it (0.1 is 10%)."""
    error_after: float
    """Expected relative error with this run."""
    is_worth_it: bool
    """Whether it lowers the error by a share of it that is worth a run; these come before those that do not. While the
    model knows few runs, all are."""
    node_hours: float | None
    """Price of the run, where that is known."""


def plan(
    model: PairedModel,
    samples: PairedSamples,
    candidates: Indices,
    budget: int,
    cost: Floats | None = None,
    population: Indices | None = None,
    most: int = MOST_CANDIDATES,
) -> list[PickedRun]:
    """Pick at most `budget` of the candidates, best first; runs the model already has are passed over.

    Candidates and population are configurations that ran on the model's source. `cost` is the price of each candidate
    in node-hours (see `node_hours`). The population is what shall be predicted well; by default all application
    configurations that ran on the source.
    """
    done = np.isin([samples.configurations[row] for row in candidates], model.shots)
    left = _some(np.flatnonzero(~done), most)
    prices = None if cost is None else _checked_prices(cost, candidates)[left]
    candidates = candidates[left]
    wanted = _population(model, samples, most) if population is None else population
    _check(model, samples, candidates, wanted, budget)
    careful = replace(model, processes=[without_profile(process) for process in model.processes])
    across = careful.covariance(samples, wanted, candidates)
    among = careful.covariance(samples, candidates, candidates)
    variance, noise = model.spread(samples, wanted) ** 2, model.noise**2
    chosen: list[PickedRun] = []
    is_left, any_worth_it = np.ones(len(candidates), bool), True
    least_gain = WORTH_IT if len(model.shots) >= ENOUGH_RUNS else 0.0
    for _ in range(min(budget, len(candidates))):
        own = np.maximum(np.diag(among), 0.0) + noise
        after = np.sqrt(np.maximum(variance[:, None] - across**2 / own, noise)).mean(axis=0)
        before = float(np.sqrt(np.maximum(variance, noise)).mean())
        is_worth_it = is_left & (before - after >= least_gain * before)
        any_worth_it &= bool(is_worth_it.any())
        gain = before - after if prices is None else (before - after) / prices
        best = int(np.argmax(np.where(is_worth_it if any_worth_it else is_left, gain, -np.inf)))
        chosen.append(
            PickedRun(
                row=int(candidates[best]),
                configuration=samples.configurations[candidates[best]],
                app=str(samples.apps[candidates[best]]),
                error_before=_MEAN_OVER_SPREAD * before,
                error_after=_MEAN_OVER_SPREAD * float(after[best]),
                is_worth_it=any_worth_it,
                node_hours=None if prices is None else float(prices[best]),
            )
        )
        is_left[best] = False
        variance = variance - across[:, best] ** 2 / own[best]
        across = across - np.outer(across[:, best], among[best]) / own[best]
        among = among - np.outer(among[:, best], among[best]) / own[best]
    return chosen


def node_hours(model: PairedModel, samples: PairedSamples, rows: Indices, nodes: Floats) -> Floats:
    """Expected price of running configurations on the target, each on its number of nodes."""
    return np.asarray(np.exp(model.predict(samples, rows)) / _SECONDS_AN_HOUR * nodes)


def _population(model: PairedModel, samples: PairedSamples, most: int) -> Indices:
    return _some(np.flatnonzero(np.isfinite(samples.log_seconds[model.source]) & ~samples.is_benchmark), most)


def _some(rows: Indices, most: int) -> Indices:
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _checked_prices(cost: Floats, candidates: Indices) -> Floats:
    if len(cost) != len(candidates) or not (np.isfinite(cost) & (cost > 0)).all():
        raise BadInputError("every candidate needs a price above 0 node-hours")
    return cost


def _check(model: PairedModel, samples: PairedSamples, candidates: Indices, wanted: Indices, budget: int) -> None:
    if budget < 1:
        raise BadInputError(f"a budget of {budget} runs plans nothing")
    source = samples.machines[model.source]
    for rows, what in ((candidates, "candidate that is not done"), (wanted, "configuration to be predicted")):
        if not len(rows):
            raise BadInputError(f"there is no {what}")
        if not np.isfinite(samples.log_seconds[model.source, rows]).all():
            raise BadInputError(f"a {what} did not run on {source}, from which is predicted")


def next_runs(adapted: AdaptedTarget, budget: int, nodes: "pd.Series[float] | None" = None) -> pd.DataFrame:
    """Configurations to run next, best first, for each way programs see the machine.

    `nodes` gives the nodes of a configuration by its name, where they are known; then runs are priced in node-hours.
    """
    rows = []
    for name, view in adapted.views.items():
        samples = adapted.samples
        source, target = view.model.source, view.model.target
        open_runs = _not_run(samples, source, target)
        if not len(open_runs):
            continue
        names = [samples.configurations[row] for row in open_runs]
        cost = (
            _prices(adapted, name, open_runs, np.asarray(nodes.reindex(names), np.float64))
            if nodes is not None
            else None
        )
        for position, run in enumerate(plan(view.model, samples, open_runs, budget, cost), 1):
            rows.append(
                {
                    "seen_as": name,
                    "rank": position,
                    "configuration": run.configuration,
                    "app": run.app,
                    "error_before_ratio": run.error_before,
                    "error_after_ratio": run.error_after,
                    "is_worth_it": run.is_worth_it,
                    "shots": len(view.model.shots),
                    "node_hours": np.nan if run.node_hours is None else run.node_hours,
                }
            )
    if not rows:
        raise BadInputError(f"{adapted.machine}: every configuration of its reference machine has already run on it")
    return pd.DataFrame(rows)


def _not_run(samples: PairedSamples, source: int, target: int) -> Indices:
    """Configurations that ran on the source and in no way on the machine of the target."""
    here = samples.physical_machines == samples.physical_machines[target]
    done = np.isfinite(samples.log_seconds[here]).any(axis=0)
    return np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~done & ~samples.is_benchmark)


def _prices(adapted: AdaptedTarget, name: str, rows: Indices, nodes: Floats) -> Floats:
    known = np.where(np.isfinite(nodes), nodes, 1.0)
    return node_hours(adapted.views[name].model, adapted.samples, rows, known)
