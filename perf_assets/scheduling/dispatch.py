"""Several clusters, and a rule that sends each job to one of them when it comes.

Jobs are workloads of a table of relative speeds: one row per workload, one column per way to run it. A column is called
as its cluster, or `CLUSTER-cpu` and `CLUSTER-gpu` where a cluster has both; an empty cell says that the workload
cannot run there. When jobs come, how many nodes they take, how long they take at speed 1, and what their users ask for
is taken from a log; of a job whose user asked for no time, its run time counts as asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError, listed
from perf_assets.scheduling.kernels import dispatch
from perf_assets.scheduling.kernels.compiled import Floats, Integers
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS, Jobs, empty_outcome
from perf_assets.scheduling.metrics import Metrics, measure
from perf_assets.scheduling.simulate import Machine, Schedule
from perf_assets.scheduling.traces.trace import Trace

KINDS = ("cpu", "gpu")
RANDOM, WAIT_ONLY, IDEAL = "random", "wait only", "ideal"
"""Dispatch that knows nothing, that knows how long jobs wait, and that knows every run time."""


class Rule(IntEnum):
    """Rule that chooses a cluster for a job."""

    TURNAROUND = dispatch.TURNAROUND
    """Smallest estimated wait plus predicted time."""
    WAIT = dispatch.WAIT
    """Smallest estimated wait."""
    RELATIVE = dispatch.RELATIVE
    """Smallest predicted time among the clusters with enough free nodes, else of all: Algorithm 2 of Nichols et al."""


@dataclass(frozen=True, eq=False)
class SpeedTable:
    """Measured speeds of workloads on clusters, relative to one reference for all."""

    ways: tuple[str, ...]
    """Columns: ways to run a workload."""
    cluster: Integers
    """Position of each way's cluster."""
    speed: Floats
    """Workloads x ways; NaN where a workload cannot run."""
    rows: Integers
    """Position of each workload in the table that was read."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, clusters: Sequence[Machine], gpu_only: Sequence[str] = ()) -> "SpeedTable":
        """Ways to run on these clusters; applications in `gpu_only` cannot use a CPU where a cluster has GPUs."""
        ways, cluster, absent = [], [], []
        for position, machine in enumerate(clusters):
            names = [name for name in (machine.name, *(f"{machine.name}-{kind}" for kind in KINDS)) if name in frame]
            ways += names
            cluster += [position] * len(names)
            absent += [] if names else [machine.name]
        if absent:
            raise BadInputError(
                f"the table of speeds has no column {listed(absent)} (nor with -cpu or -gpu); "
                f"its columns: {listed([str(name) for name in frame])}"
            )
        values = frame[ways].apply(pd.to_numeric, errors="coerce").to_numpy(float)
        speed = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        notes = []
        if gpu_only:
            if "app" not in frame:
                raise BadInputError("the table of speeds has no column app: applications for GPUs only cannot be told")
            unknown = sorted(set(gpu_only) - set(frame["app"].astype(str)))
            if unknown:
                raise BadInputError(f"the table of speeds has no application {listed(unknown)}")
            on_gpu = np.array([way.endswith("-gpu") for way in ways])
            is_kept = on_gpu | ~frame["app"].astype(str).isin(gpu_only).to_numpy()[:, None]
            speed = np.where(is_kept, speed, np.nan)
        can_run = np.isfinite(speed).any(axis=1)
        if not can_run.any():
            raise BadInputError("no row of the table of speeds has a positive speed on any of these clusters")
        if not can_run.all():
            notes.append(f"{int((~can_run).sum())} workloads that run on none of these clusters are left out")
        return cls(tuple(ways), np.array(cluster, np.int64), speed[can_run], np.flatnonzero(can_run), tuple(notes))

    def __len__(self) -> int:
        return len(self.speed)


@dataclass(frozen=True, eq=False)
class DispatchExperiment:
    """Workloads on clusters, submitted as the jobs of a log."""

    table: SpeedTable
    log: Trace
    clusters: tuple[Machine, ...]

    def draw(self, load: float, seed: int) -> "DispatchedJobs":
        """Jobs at a load: the node-seconds of their mean time over the ways they have, over those of all clusters."""
        random = np.random.default_rng(seed)
        sizes = np.array([machine.nodes for machine in self.clusters], np.int64)[self.table.cluster]
        can_run = np.isfinite(self.table.speed)
        widest = np.where(can_run, sizes, 0).max(axis=1)
        fits = self.log.nodes <= widest.max()
        log = self.log.where(fits)
        if not len(log):
            raise BadInputError(f"no job of {self.log.name} fits into a cluster that a workload can run on")
        # Of the workloads that have a cluster wide enough for the job, any.
        order = np.argsort(-widest, kind="stable")
        enough = np.searchsorted(-widest[order], -log.nodes, "right")
        workload = order[np.floor(random.random(len(log)) * enough).astype(np.int64)]
        is_option = can_run[workload] & (sizes[None, :] >= log.nodes[:, None])
        job, way = np.nonzero(is_option)
        seconds = np.maximum(log.run[job] / self.table.speed[workload[job], way], LEAST_SECONDS)
        counts = is_option.sum(axis=1)
        mean_seconds = np.bincount(job, seconds, len(log)) / counts
        span = float(log.submit[-1] - log.submit[0])
        if not span > 0:
            raise BadInputError(f"all jobs of {log.name} come at once: they have no load that could be changed")
        total = sum(machine.nodes for machine in self.clusters)
        submit = log.submit * float((mean_seconds * log.nodes).sum()) / (total * load * span)
        asked = np.maximum(np.where(np.isfinite(log.request), log.request, log.run), LEAST_SECONDS)
        doubled = np.ceil(np.log2(np.maximum(seconds / asked[job], 1.0)))
        return DispatchedJobs(
            self,
            workload,
            Jobs(
                submit - submit[0],
                np.cumsum([0, *counts]).astype(np.int64),
                self.table.cluster[way],
                log.nodes[job],
                seconds,
                asked[job] * 2.0**doubled,
                asked[job] * 2.0**doubled,
            ),
            way,
            log.run[job],
            int((~fits).sum()),
        )


@dataclass(frozen=True, eq=False)
class DispatchedJobs:
    """Jobs that come to the clusters: the same ones for every rule and every prediction."""

    experiment: DispatchExperiment
    workload: Integers
    """Row of each job in the table of speeds."""
    jobs: Jobs
    """Options are ways to run; clusters plan with what users asked for, doubled until it suffices."""
    way: Integers
    """Way of each option."""
    seconds_at_one: Floats
    """Seconds of each option's job at speed 1."""
    left_out: int
    """Jobs of the log that fit into no cluster."""

    def expected(self, speed: Floats) -> Floats:
        """Seconds that a dispatcher expects of each option who knows the time at speed 1, and predicts speeds."""
        counts = np.diff(self.jobs.first)
        job = np.repeat(np.arange(len(counts)), counts)
        return np.maximum(self.seconds_at_one / speed[self.workload[job], self.way], LEAST_SECONDS)

    def schedule(self, rule: Rule, expected: Floats) -> Schedule:
        """Schedule by a rule, with expected seconds of each option."""
        return dispatched(self.experiment.clusters, self.jobs, expected, rule)

    def random(self, seed: int) -> Schedule:
        """Schedule with each job sent to any way it has."""
        counts = np.diff(self.jobs.first)
        drawn = np.random.default_rng(seed).random(len(counts)) * counts
        chosen = self.jobs.first[:-1] + np.floor(drawn).astype(np.int64)
        options = {name: getattr(self.jobs, name)[chosen] for name in ("machine", "nodes", "run", "estimate", "limit")}
        jobs = self.jobs._replace(first=np.arange(len(counts) + 1), **options)
        return dispatched(self.experiment.clusters, jobs, jobs.estimate, Rule.WAIT)


def dispatched(clusters: tuple[Machine, ...], jobs: Jobs, expected: Floats, rule: Rule) -> Schedule:
    """Dispatch jobs to clusters, each with EASY backfilling; `expected` are seconds of each option."""
    sizes = np.array([machine.nodes for machine in clusters], np.int64)
    if (jobs.nodes > sizes[jobs.machine]).any() or (jobs.nodes < 1).any():
        raise BadInputError("a job asks for more nodes than its cluster has, or for none")
    if not (np.isfinite(expected) & (expected > 0)).all():
        raise BadInputError("a dispatcher needs a positive number of seconds for every option")
    outcome = empty_outcome(len(jobs.submit))
    dispatch.run_dispatch(jobs, expected, sizes, int(rule), outcome)
    return Schedule(clusters, jobs, outcome)


def shares_kept(turnaround: Mapping[str, float]) -> dict[str, float]:
    """Share of the ideal's gain over `wait only` that each prediction keeps; empty where the ideal gains nothing."""
    gain = turnaround[WAIT_ONLY] - turnaround[IDEAL]
    if not gain > 0:
        return {}
    return {name: (turnaround[WAIT_ONLY] - value) / gain for name, value in turnaround.items()}


def compare(jobs: DispatchedJobs, predicted: Mapping[str, Floats], seed: int) -> dict[tuple[str, Rule], Metrics]:
    """Metrics by prediction and rule: every prediction with both rules that use one, beside those that use none."""
    metrics_by_rule = {
        (RANDOM, Rule.WAIT): measure(jobs.random(seed)),
        (WAIT_ONLY, Rule.WAIT): measure(jobs.schedule(Rule.WAIT, jobs.jobs.estimate)),
    }
    speeds = {IDEAL: jobs.experiment.table.speed, **predicted}
    for name, speed in speeds.items():
        expected = jobs.expected(speed)
        for rule in (Rule.TURNAROUND, Rule.RELATIVE):
            metrics_by_rule[name, rule] = measure(jobs.schedule(rule, expected))
    return metrics_by_rule


def sweep(
    experiment: DispatchExperiment,
    predicted: Sequence[Mapping[str, Floats]],
    loads: Sequence[float],
    repetitions: int,
    seed: int = 0,
) -> list[dict[str, object]]:
    """Rows by load, repetition, prediction and rule; `predicted` has one draw of shots per repetition, or none."""
    rows: list[dict[str, object]] = []
    for load in loads:
        for repetition in range(repetitions):
            jobs = experiment.draw(load, seed + repetition)
            metrics_by_rule = compare(jobs, predicted[repetition] if predicted else {}, seed + repetition)
            kept = shares_kept(
                {name: m.turnaround.mean for (name, rule), m in metrics_by_rule.items() if rule is not Rule.RELATIVE}
            )
            for (name, rule), metrics in metrics_by_rule.items():
                is_asked = rule is not Rule.RELATIVE and name != RANDOM
                rows.append(
                    {
                        "load": load,
                        "repetition": repetition,
                        "prediction": name,
                        "rule": name if name in (RANDOM, WAIT_ONLY) else rule.name.lower(),
                        "gain_kept_ratio": kept.get(name) if is_asked else None,
                        **metrics.as_document(),
                    }
                )
    return rows
