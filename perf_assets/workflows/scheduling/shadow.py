"""Shadow mode: a centre's own log replayed as it was, then with predictions, and what these would have saved."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Estimates, Planning, Policy

if TYPE_CHECKING:
    from perf_assets.scheduling.metrics import Metrics
    from perf_assets.scheduling.traces.trace import Trace

AS_IT_WAS = "as it was: users' limits"
PLANS = {
    AS_IT_WAS: (Policy.EASY, Planning()),
    "user statistics": (Policy.EASY, Planning(Estimates.PREDICTED)),
    "user statistics, shortest first": (Policy.EASY_SJBF, Planning(Estimates.PREDICTED)),
    "perfect predictions, shortest first": (Policy.EASY_SJBF, Planning(Estimates.ORACLE)),
}
"""What is compared; the last one is beyond what any predictor can do, and says what there is to gain."""
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
    saved_node_hours: Range
    """Node-hours of the machine until the last job has ended."""
    late_share: float
    """Share of jobs that start later than the scheduler had first promised."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """What predictions would have been worth to a centre."""

    trace: str
    jobs: int
    nodes: int
    load: float
    replays: int
    savings: tuple[Saving, ...]
    skipped: dict[str, int]
    notes: tuple[str, ...]
    is_simulated: bool

    def to_dict(self) -> dict[str, Any]:
        """Report as a JSON object."""
        return {**asdict(self), "assumed": list(ASSUMED)}

    def page(self) -> str:
        """Report as a page for people who decide."""
        import pandas as pd

        from perf_assets.reports.site import Part, results_page

        rows = pd.DataFrame(
            {
                "scheduled": one.plan,
                "wait per job, hours": one.wait_hours_per_job,
                "bounded slowdown": one.bounded_slowdown,
                "saved waiting, hours": one.saved_wait_hours.mean,
                "from": one.saved_wait_hours.low,
                "to": one.saved_wait_hours.high,
                "saved node-hours": one.saved_node_hours.mean,
                "later than promised": f"{one.late_share:.1%}",
            }
            for one in self.savings
        )
        left_out = "; ".join([*(f"{count:,} {reason}" for reason, count in self.skipped.items()), *self.notes])
        parts = [
            Part("What would have been saved", "", [], {f"Means and ranges over {self.replays} replays": rows}),
            Part("What this assumes", " ".join(ASSUMED), []),
            Part("The log", f"Left out, or to be known: {left_out or 'nothing'}.", []),
        ]
        lead = f"{self.trace}: {self.jobs:,} jobs on {self.nodes:,} nodes, load {self.load:.2f}."
        origin = "simulated log" if self.is_simulated else "measured log"
        return results_page("What predictions would have saved", origin, lead, parts, is_in_site=False)


def shadow(trace: "Trace", nodes: int | None, replays: int) -> Shadow:
    """Replay a log in all ways, several times with shaken submissions."""
    if not trace.has_requests():
        raise BadInputError(f"{trace.name} has no limits for most jobs: how it was scheduled cannot be replayed")
    size = nodes or trace.most_nodes
    if size is None:
        raise BadInputError(f"{trace.name} does not say how many nodes the machine has: give --nodes")
    fitting = trace.that_fits(size)
    if not len(fitting):
        raise BadInputError(f"no job of {trace.name} fits into {size} nodes")
    by_plan = _replayed(fitting, size, replays)
    return Shadow(
        trace=fitting.name,
        jobs=len(fitting),
        nodes=size,
        load=fitting.load(size),
        replays=replays,
        savings=tuple(_saving(plan, by_plan[AS_IT_WAS], found, size) for plan, found in by_plan.items()),
        skipped=dict(fitting.skipped),
        notes=fitting.notes,
        is_simulated=fitting.is_simulated,
    )


def _replayed(trace: "Trace", nodes: int, replays: int) -> "dict[str, list[Metrics]]":
    from perf_assets.scheduling.metrics import measure
    from perf_assets.scheduling.simulate import simulate_trace

    traces = [trace, *(trace.shaken(seed) for seed in range(1, replays))]
    return {
        plan: [measure(simulate_trace(one, nodes, policy, planning)) for one in traces]
        for plan, (policy, planning) in PLANS.items()
    }


def _saving(plan: str, before: "list[Metrics]", after: "list[Metrics]", nodes: int) -> Saving:
    """Differences within each replay: both see the same submissions."""
    pairs = list(zip(before, after, strict=True))
    return Saving(
        plan=plan,
        wait_hours_per_job=sum(one.wait.mean for one in after) / len(after) / 3600,
        bounded_slowdown=sum(one.bounded_slowdown.mean for one in after) / len(after),
        saved_wait_hours=_range([(old.wait.mean - new.wait.mean) * new.jobs / 3600 for old, new in pairs]),
        saved_node_hours=_range([(old.makespan_s - new.makespan_s) * nodes / 3600 for old, new in pairs]),
        late_share=sum(one.promises_broken / one.jobs for one in after) / len(after),
    )


def _range(values: list[float]) -> Range:
    return Range(sum(values) / len(values), min(values), max(values))
