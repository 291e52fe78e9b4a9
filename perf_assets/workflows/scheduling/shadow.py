"""Shadow mode: a centre's own log replayed as it was, then with predictions, and what these would have saved."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perf_assets.core.errors import BadInputError, listed
from perf_assets.scheduling.choices import Estimates, Planning, Policy

if TYPE_CHECKING:
    from perf_assets.scheduling.metrics import Metrics
    from perf_assets.scheduling.other_ways import ModelledJobs
    from perf_assets.scheduling.traces.trace import Trace

AS_IT_WAS = "as it was: users' limits"
PLANS = {
    AS_IT_WAS: (Policy.EASY, Planning()),
    "user statistics": (Policy.EASY, Planning(Estimates.PREDICTED)),
    "user statistics, shortest first": (Policy.EASY_SJBF, Planning(Estimates.PREDICTED)),
    "perfect predictions, shortest first": (Policy.EASY_SJBF, Planning(Estimates.ORACLE)),
}
"""Strategies that are compared; the last one is an upper bound that no predictor can reach."""
MODELLED = "models where there are, user statistics where not"
OF_MODELS = (
    "Where an application has a model, its jobs may run on half, a quarter, ... of their nodes (within what was run), "
    "or on the other machines, whose nodes come on top; users are taken to submit such jobs.",
    "How long such jobs take is the model's ratio to the time in the log, drawn from its interval in every replay, one "
    "draw per application and way; limits grow as the upper end says. Ranges hold the doubt of the models.",
)
ASSUMED = (
    "The batch system is taken to be EASY backfilling that plans with users' limits: priorities, partitions, "
    "reservations and dependencies are not in the log and not replayed.",
    "Jobs come when they came, and run as wide and as long as they did: nobody submits otherwise because waits change.",
    "User statistics are the median of the last 8 jobs of the same user, size and limit that had ended; nothing of the "
    "future is used. Nobody is killed earlier than at the limit.",
    "Ranges are over replays whose submissions are moved by up to 10 s; they do not cover what is assumed here.",
)


@dataclass(frozen=True)
class Range:
    """Mean, and lowest and highest over replays."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Saving:
    """One way to schedule, relative to how it was."""

    plan: str
    wait_hours_per_job: float
    bounded_slowdown: float
    saved_wait_hours: Range
    """Hours of waiting of all jobs together; negative where they wait longer."""
    saved_turnaround_hours: Range
    """Hours of waiting and running of all jobs together: on fewer nodes jobs run longer."""
    saved_node_hours: Range
    """Node-hours that jobs used."""
    saved_machine_hours: Range
    """Node-hours of the log's machine until the last job has ended."""
    late_share: float
    """Share of jobs that start later than the scheduler had first promised."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """Value that predictions would have had for a centre."""

    trace: str
    jobs: int
    nodes: int
    load: float
    replays: int
    savings: tuple[Saving, ...]
    skipped: dict[str, int]
    notes: tuple[str, ...]
    is_simulated: bool
    modelled_jobs: int = 0
    """Jobs whose application has a model."""
    models: tuple[str, ...] = ()
    """Predictions of models."""
    other_machines: tuple[str, ...] = ()
    """Other machines, with their nodes, that jobs with a model could have run on."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """Assumptions behind the figures."""
        return (*ASSUMED, *(OF_MODELS if self.models else ()))

    def to_dict(self) -> dict[str, Any]:
        """Report as a JSON object."""
        return {**asdict(self), "assumed": list(self.assumed)}

    def page(self) -> str:
        """Report as a page for people who decide."""
        import pandas as pd

        from perf_assets.reports.site import Part, results_page

        rows = pd.DataFrame(
            {
                "scheduled": one.plan,
                "wait per job, hours": f"{one.wait_hours_per_job:.2f}",
                "bounded slowdown": f"{one.bounded_slowdown:,.1f}",
                "saved waiting and running, hours": shown_range(one.saved_turnaround_hours),
                "saved node-hours": shown_range(one.saved_node_hours),
                "later than promised": f"{one.late_share:.1%}",
            }
            for one in self.savings
        )
        left_out = "; ".join([*(f"{count:,} {reason}" for reason, count in self.skipped.items()), *self.notes])
        title = f"Means and ranges over {self.replays} replays"
        parts = [
            Part("What would have been saved", self._headline(), [], {title: rows}),
            Part("What this assumes", " ".join(self.assumed), []),
            *([Part("What the models say", "; ".join(self.models) + ".", [])] if self.models else []),
            Part("The log", f"Left out, or to be known: {left_out or 'nothing'}.", []),
        ]
        lead = f"{self.trace}: {self.jobs:,} jobs on {self.nodes:,} nodes, load {self.load:.2f}."
        origin = "simulated log" if self.is_simulated else "measured log"
        return results_page("What predictions would have saved", origin, lead, parts, is_in_site=False)

    def _headline(self) -> str:
        """The best of what needs no perfect predictions, in a sentence."""
        before, *ours = [one for one in self.savings if "perfect" not in one.plan]
        best = max(ours, key=lambda one: one.saved_turnaround_hours.mean)
        share = 1 - best.wait_hours_per_job / before.wait_hours_per_job if before.wait_hours_per_job else 0.0
        less = f"{abs(share):.0%} {'less' if share >= 0 else 'more'}"
        models = f" {self.modelled_jobs:,} of the jobs are of an application with a model." if self.models else ""
        if self.other_machines and best.plan == MODELLED:
            models += f" The nodes of {listed(self.other_machines)} come on top: a part of the gain is theirs."
        return (
            f"Scheduled with {best.plan}, a job would have waited {best.wait_hours_per_job:.2f} hours instead of "
            f"{before.wait_hours_per_job:.2f} ({less}). Saved (or, below 0, lost) by all jobs together: "
            f"{shown_range(best.saved_turnaround_hours)} hours of waiting and running, "
            f"{shown_range(best.saved_node_hours)} node-hours.{models}"
        )


def shown_range(values: Range) -> str:
    """Mean, lowest and highest, for people."""
    mean, low, high = (f"{round(value):,}" for value in (values.mean, values.low, values.high))
    return f"{mean} ({low} to {high})"


def machine_nodes(trace: "Trace", nodes: int | None) -> int:
    """Nodes of the machine, as given or as the log says."""
    size = nodes or trace.most_nodes
    if size is None:
        raise BadInputError(f"{trace.name} does not say how many nodes the machine has: give --nodes")
    return size


def shadow(trace: "Trace", nodes: int | None, replays: int, models: "ModelledJobs | None" = None) -> Shadow:
    """Replay a log in all ways, several times with shaken submissions."""
    if not trace.has_requests():
        raise BadInputError(f"{trace.name} has no limits for most jobs: how it was scheduled cannot be replayed")
    size = machine_nodes(trace, nodes)
    fitting = trace.that_fits(size)
    if not len(fitting):
        raise BadInputError(f"no job of {trace.name} fits into {size} nodes")
    by_plan = _replayed(fitting, size, replays, models)
    return Shadow(
        trace=fitting.name,
        jobs=len(fitting),
        nodes=size,
        load=fitting.load(size),
        replays=replays,
        savings=tuple(_saving(plan, by_plan[AS_IT_WAS], metrics, size) for plan, metrics in by_plan.items()),
        skipped=dict(fitting.skipped),
        notes=fitting.notes,
        is_simulated=fitting.is_simulated,
        modelled_jobs=0 if models is None else models.count(fitting),
        models=() if models is None else models.notes,
        other_machines=() if models is None else tuple(f"{m.name} ({m.nodes:,})" for m in models.machines[1:]),
    )


def _replayed(trace: "Trace", nodes: int, replays: int, models: "ModelledJobs | None") -> "dict[str, list[Metrics]]":
    from perf_assets.scheduling.metrics import measure
    from perf_assets.scheduling.simulate import simulate, simulate_trace

    traces = [trace, *(trace.shaken(seed) for seed in range(1, replays))]
    by_plan = {
        plan: [measure(simulate_trace(one, nodes, policy, planning)) for one in traces]
        for plan, (policy, planning) in PLANS.items()
    }
    if models is not None:
        by_plan[MODELLED] = []
        for seed, one in enumerate(traces):
            jobs, learner = models.options(one, seed)
            by_plan[MODELLED].append(measure(simulate(models.machines, jobs, Policy.EASY, learner)))
    return by_plan


def _saving(plan: str, before: "list[Metrics]", after: "list[Metrics]", nodes: int) -> Saving:
    """Differences within each replay: both see the same submissions."""
    pairs = list(zip(before, after, strict=True))
    return Saving(
        plan=plan,
        wait_hours_per_job=sum(one.wait.mean for one in after) / len(after) / 3600,
        bounded_slowdown=sum(one.bounded_slowdown.mean for one in after) / len(after),
        saved_wait_hours=_range([(old.wait.mean - new.wait.mean) * new.jobs / 3600 for old, new in pairs]),
        saved_turnaround_hours=_range(
            [(old.turnaround.mean - new.turnaround.mean) * new.jobs / 3600 for old, new in pairs]
        ),
        saved_node_hours=_range([old.node_hours - new.node_hours for old, new in pairs]),
        saved_machine_hours=_range([(old.makespan_s - new.makespan_s) * nodes / 3600 for old, new in pairs]),
        late_share=sum(one.promises_broken / one.jobs for one in after) / len(after),
    )


def _range(values: list[float]) -> Range:
    return Range(sum(values) / len(values), min(values), max(values))
