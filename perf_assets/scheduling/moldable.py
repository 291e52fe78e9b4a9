"""ModelX's experiment: jobs are rows of a table of measured runs, and a policy says on how many nodes each one runs.

The stock scheduler runs a job as it was asked for. A predictor replaces it by the run of the same application on the
fewest nodes whose predicted time is at most (1 + tolerance) times what it predicts for the run asked for; of several
on as few nodes, by the one with the smallest prediction. What then happens is what was measured. Submissions come from
a log, limits are what its users asked for of jobs about as long, doubled until they suffice. All policies plan with
the limit. The first third of the log is the past: how much slower is tolerable is chosen on it, from predictions and
their intervals alone, and what is reported comes from the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError, listed
from perf_assets.scheduling.choices import Policy
from perf_assets.scheduling.kernels.compiled import Floats, Integers
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS, Jobs
from perf_assets.scheduling.metrics import Metrics, measure
from perf_assets.scheduling.simulate import Machine, simulate
from perf_assets.scheduling.traces.draw import limits_for
from perf_assets.scheduling.traces.trace import Trace

STOCK, NARROWEST = "stock", "fewest nodes, no prediction"
FIXED = (0.1, 0.2)
"""ModelX's tolerances, which every prediction is shown with, too: there, policies differ in predictions alone."""
TOLERANCES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
_PREDICTED, _UPPER = "_predicted_seconds", "_upper_seconds"
_NINETY_PERCENT = 1.645
"""Standard deviations of a normal distribution that 90% of its values are within."""
_PAST = 1 / 3


@dataclass(frozen=True, eq=False)
class Widths:
    """Width of each row of a table under a policy."""

    nodes: Integers
    seconds: Floats


@dataclass(frozen=True, eq=False)
class MoldableTable:
    """Measured runs of applications, a row each."""

    app: Integers
    """Number of each row's application."""
    asked: Widths
    """The run itself."""
    choices: Mapping[str, Widths]
    """Choices that the table brings, by name (`NAME_nodes` and `NAME_seconds`)."""
    predicted: Mapping[str, Floats]
    """Predicted seconds of each row, by name (`NAME_predicted_seconds`)."""
    deviation: Mapping[str, Floats]
    """Standard deviation of the logarithm of what is predicted (`NAME_upper_seconds`, the upper end of the 90%
    interval); 0 where the table does not say."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.app)

    @classmethod
    def of(cls, frame: pd.DataFrame, nodes: int) -> "MoldableTable":
        """Rows of a table with `app`, `nodes`, `runtime_seconds`, for a machine of `nodes` nodes."""
        absent = [name for name in ("app", "nodes", "runtime_seconds") if name not in frame]
        if absent:
            raise BadInputError(f"the table of jobs has no column {listed(absent)}")
        names = [str(name).removesuffix("_nodes") for name in frame if str(name).endswith("_nodes")]
        brought = [name for name in names if f"{name}_seconds" in frame]
        predictors = [str(name).removesuffix(_PREDICTED) for name in frame if str(name).endswith(_PREDICTED)]
        wanted = ["nodes", "runtime_seconds", *(f"{n}{what}" for n in brought for what in ("_nodes", "_seconds"))]
        bounded = [name for name in predictors if name + _UPPER in frame]
        wanted += [name + _PREDICTED for name in predictors] + [name + _UPPER for name in bounded]
        values = frame[wanted].apply(pd.to_numeric, errors="coerce").astype(float)
        is_good = (np.isfinite(values) & (values > 0)).all(axis=1) & frame["app"].notna()
        fits = (values[["nodes", *(f"{name}_nodes" for name in brought)]] <= nodes).all(axis=1)
        kept = is_good & fits
        if not kept.any():
            raise BadInputError(f"the table of jobs has no row with positive numbers that fits into {nodes} nodes")
        notes = [(int((~is_good).sum()), "rows without positive numbers are left out"),
                 (int((is_good & ~fits).sum()), f"rows of more than {nodes} nodes are left out")]  # fmt: skip
        values, app = values[kept], frame.loc[kept, "app"].astype(str)
        single = values["nodes"].groupby(app).nunique().loc[lambda counts: counts == 1]
        if len(single) == app.nunique():
            raise BadInputError("every application of the table ran on one number of nodes: there is nothing to choose")
        notes += [(int(app.isin(single.index).sum()), "rows are of applications that ran on one number of nodes only")]
        return cls(
            pd.factorize(app)[0].astype(np.int64),
            _widths(values, "nodes", "runtime_seconds"),
            {name: _widths(values, f"{name}_nodes", f"{name}_seconds") for name in brought},
            {name: values[name + _PREDICTED].to_numpy() for name in predictors},
            {name: _deviation(values, name) if name in bounded else np.zeros(len(values)) for name in predictors},
            tuple(f"{count} {what}" for count, what in notes if count),
        )

    def chosen(self, predicted: Floats, tolerance: float) -> Integers:
        """Row that each row is run as, by predicted seconds of all rows."""
        chosen = np.arange(len(self))
        for app in np.unique(self.app):
            rows = np.flatnonzero(self.app == app)
            chosen[rows] = rows[_fewest_nodes(self.asked.nodes[rows], predicted[rows], tolerance)]
        return chosen

    def narrowest(self, random: np.random.Generator) -> Integers:
        """Row that each row is run as by who predicts nothing: any run of the application on its fewest nodes."""
        chosen = np.arange(len(self))
        for app in np.unique(self.app):
            rows = np.flatnonzero(self.app == app)
            fewest = rows[self.asked.nodes[rows] == self.asked.nodes[rows].min()]
            chosen[rows] = random.choice(fewest, len(rows))
        return chosen

    def run_as(self, rows: Integers, seconds: Floats | None = None) -> Widths:
        """Nodes of rows, and their measured seconds, or others."""
        return Widths(self.asked.nodes[rows], (self.asked.seconds if seconds is None else seconds)[rows])


def _widths(values: pd.DataFrame, nodes: str, seconds: str) -> Widths:
    return Widths(values[nodes].to_numpy(np.int64), values[seconds].to_numpy())


def _deviation(values: pd.DataFrame, name: str) -> Floats:
    ratio = (values[name + _UPPER] / values[name + _PREDICTED]).to_numpy(float)
    return np.asarray(np.log(np.maximum(ratio, 1.0)) / _NINETY_PERCENT)


def _fewest_nodes(nodes: Integers, predicted: Floats, tolerance: float) -> Integers:
    """Index of the run that replaces each run of an application."""
    # By prediction: what may replace a run are the first so many; of these the fewest nodes, then the smallest time.
    order = np.argsort(predicted, kind="stable")
    best, places = 0, np.empty(len(order), np.int64)
    for place, row in enumerate(order):
        if nodes[row] < nodes[order[best]]:
            best = place
        places[place] = best
    last = np.searchsorted(predicted[order], (1 + tolerance) * predicted, "right") - 1
    chosen = order[places[last]]
    return np.where(nodes[chosen] == nodes, np.arange(len(nodes)), chosen)


@dataclass(frozen=True, eq=False)
class MoldableExperiment:
    """A table of jobs on a machine, submitted as a log was."""

    table: MoldableTable
    log: Trace
    nodes: int

    @cached_property
    def _mean_work(self) -> float:
        """Node-seconds of a job as asked for."""
        return float((self.table.asked.nodes * self.table.asked.seconds).mean())

    @cached_property
    def _limited(self) -> Trace:
        """Jobs of the log with a time that their users requested."""
        return self.log.where(np.isfinite(self.log.request))

    @cached_property
    def past(self) -> Trace:
        """Jobs on which is chosen what is tolerable."""
        return self.log.where(np.arange(len(self.log)) < _PAST * len(self.log))

    @cached_property
    def later(self) -> Trace:
        """Jobs that are reported on."""
        return self.log.where(np.arange(len(self.log)) >= _PAST * len(self.log))

    def draw(self, load: float, seed: int, of: Trace | None = None) -> "DrawnJobs":
        """Jobs at a load of the stock scheduler: rows of the table, and shaken submissions (later ones, or `of`)."""
        random, log = np.random.default_rng(seed), of or self.later
        rows = random.integers(0, len(self.table), len(log))
        came = log.submit - (log.submit[0] if len(log) else 0)
        span = float(came[-1]) if len(log) else 0.0
        if not span > 0:
            raise BadInputError(f"{self.log.name} has too few jobs, or all come at once: they have no load to change")
        submit = came * (self._mean_work * len(rows) / (self.nodes * load * span))
        gap = float(np.diff(submit).mean())
        submit = np.sort(submit + random.uniform(-gap, gap, len(submit)))
        limit = limits_for(self._limited, self.table.asked.seconds[rows], random)
        return DrawnJobs(self, rows, submit - submit[0], np.maximum(limit, LEAST_SECONDS))

    def tolerance(self, name: str, load: float, seed: int) -> float:
        """The tolerance with the smallest mean turnaround in the log's past, times drawn from what is predicted.

        No measured time is used. A prediction that is too short looks good: with its doubt, choices by it do not.
        """
        jobs, predicted = self.draw(load, seed, self.past), self.table.predicted[name]
        doubt = np.random.default_rng(seed).normal(size=len(predicted)) * self.table.deviation[name]
        means = {}
        for tolerance in TOLERANCES:
            widths = self.table.run_as(self.table.chosen(predicted, tolerance), predicted * np.exp(doubt))
            means[tolerance] = jobs.metrics(widths).turnaround.mean
        return min(means, key=lambda tolerance: means[tolerance])


@dataclass(frozen=True, eq=False)
class DrawnJobs:
    """Jobs that come to the machine: the same ones for every policy."""

    experiment: MoldableExperiment
    rows: Integers
    submit: Floats
    limit: Floats
    """Seconds that users asked for."""

    def jobs(self, widths: Widths, factor: float = 1.0) -> Jobs:
        """Jobs as the simulator takes them; `factor` makes all jobs narrower, at the same time."""
        seconds = np.maximum(widths.seconds[self.rows], LEAST_SECONDS)
        nodes = np.maximum(np.ceil(widths.nodes[self.rows] * factor), 1).astype(np.int64)
        doubled = np.ceil(np.log2(np.maximum(seconds / self.limit, 1.0)))
        limit = self.limit * 2.0**doubled
        count = len(self.rows)
        return Jobs(self.submit, np.arange(count + 1), np.zeros(count, np.int64), nodes, seconds, limit, limit)

    def metrics(self, widths: Widths, *, nodes: int | None = None, factor: float = 1.0) -> Metrics:
        """Metrics of a policy under EASY backfilling, on this machine or a larger one."""
        machine = Machine("nodes", nodes or self.experiment.nodes)
        return measure(simulate((machine,), self.jobs(widths, factor), Policy.EASY))

    def nodes_per_job(self, widths: Widths) -> float:
        """Mean number of nodes of a job."""
        return float(widths.nodes[self.rows].mean())


def policies(experiment: MoldableExperiment, load: float, seed: int) -> dict[str, tuple[Widths, float | None]]:
    """Widths of the rows of the table by policy, and the tolerance that it chose for a load.

    Stock, the fewest nodes, the choices that the table brings, and each of its predictions with ModelX's tolerances and
    with a chosen one.
    """
    table = experiment.table
    widths_by_policy: dict[str, tuple[Widths, float | None]] = {STOCK: (table.asked, None)}
    widths_by_policy[NARROWEST] = table.run_as(table.narrowest(np.random.default_rng(seed))), None
    widths_by_policy |= {name: (widths, None) for name, widths in table.choices.items()}
    for name, predicted in table.predicted.items():
        for fixed in FIXED:
            widths_by_policy[f"{name}, {fixed:.0%}"] = table.run_as(table.chosen(predicted, fixed)), fixed
        tolerance = experiment.tolerance(name, load, seed)
        widths_by_policy[f"{name}, chosen tolerance"] = table.run_as(table.chosen(predicted, tolerance)), tolerance
    return widths_by_policy


def sweep(
    experiment: MoldableExperiment, loads: Sequence[float], repetitions: int, seed: int = 0
) -> list[dict[str, object]]:
    """Rows by load, repetition and policy: metrics, nodes per job, and what stock would need to match."""
    rows: list[dict[str, object]] = []
    for load in loads:
        chosen = policies(experiment, load, seed + repetitions)
        for repetition in range(repetitions):
            jobs = experiment.draw(load, seed + repetition)
            stock = jobs.metrics(experiment.table.asked)
            for name, (widths, tolerance) in chosen.items():
                metrics = stock if name == STOCK else jobs.metrics(widths)
                rows.append(
                    {
                        "load": load,
                        "repetition": repetition,
                        "policy": name,
                        "tolerance": tolerance,
                        "turnaround_ratio": metrics.turnaround.mean / stock.turnaround.mean,
                        "nodes_per_job": jobs.nodes_per_job(widths),
                        **metrics.as_document(),
                    }
                )
    return rows
