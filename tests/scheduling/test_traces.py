"""What must hold of every schedule, on real traces; and what can be done with a trace."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Estimates, KillAt, Planning, Policy
from perf_assets.scheduling.events import EventKind, event_log, replay
from perf_assets.scheduling.metrics import measure
from perf_assets.scheduling.simulate import Schedule, simulate_trace
from perf_assets.scheduling.traces.draw import drawn
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.scheduling.traces.trace import Trace
from tests.scheduling.traces import drawn_trace

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator

PLANS = {
    "user": Planning(),
    "oracle": Planning(Estimates.ORACLE),
    "predicted": Planning(Estimates.PREDICTED),
    "bound": Planning(Estimates.BOUND, KillAt.BOUND),
}


@cache
def real_trace(file: Path) -> Trace:
    return read_trace(file, "America/Denver" if file.suffix == ".csv" else None)


def holds(trace: Trace, schedule: Schedule) -> None:
    """No machine is oversubscribed, nothing starts before it comes, every job ends as long after as it should."""
    free = replay(event_log(schedule), schedule.machines)
    assert free.min() >= 0
    assert free[-1].tolist() == [machine.nodes for machine in schedule.machines]
    assert (schedule.outcome.start >= trace.submit).all()
    full = np.where(schedule.was_killed, schedule.jobs.limit, trace.run)
    assert schedule.seconds == pytest.approx(full, abs=1e-6)
    assert (schedule.seconds <= trace.run + 1e-6).all()


LOGS = {
    "KTH-SP2": ("swf/KTH-SP2-1996-2.1-cln.swf.gz", None),
    "NASA": ("swf/NASA-iPSC-1993-3.1-cln.swf.gz", None),
    "Eagle": ("jobs/eagle_1000_jobs.csv", None),
    "drawn from a window of KTH-SP2": ("swf/KTH-SP2-1996-2.1-cln.swf.gz", "4000..6000"),
}
"""Files, and the window that jobs are drawn from."""


@pytest.mark.slow
@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", LOGS)
def test_invariants_hold_on_real_traces(shared_data: Path, name: str, plan: str, policy: Policy) -> None:
    file, window = LOGS[name]
    trace = real_trace(shared_data / file)
    trace = trace if window is None else drawn(trace.window(window), 1)
    nodes = trace.most_nodes or int(trace.nodes.max())
    if plan == "user" and not trace.has_requests():
        with pytest.raises(BadInputError, match="does not say how long"):
            simulate_trace(trace, nodes, policy, PLANS[plan])
        return
    schedule = simulate_trace(trace, nodes, policy, PLANS[plan])
    holds(trace, schedule)
    if plan != "predicted":
        assert measure(schedule).promises_broken == 0, "no job is longer than planned: promises must be kept"
    if policy is Policy.FCFS:
        assert (np.diff(schedule.outcome.start) >= 0).all()


@pytest.mark.slow
def test_predictions_lower_slowdown_and_the_bound_is_kept(shared_data: Path) -> None:
    trace = real_trace(shared_data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    found = {name: measure(simulate_trace(trace, 100, Policy.EASY, plan)) for name, plan in PLANS.items()}
    assert found["predicted"].bounded_slowdown.mean < 0.85 * found["user"].bounded_slowdown.mean
    assert found["predicted"].killed == found["user"].killed == 0
    assert 0.005 < found["bound"].killed / len(trace) <= 0.0105
    assert found["bound"].turnaround_with_reruns_mean_s > found["bound"].turnaround.mean


@pytest.mark.parametrize("target", [0.01, 0.05])
@pytest.mark.parametrize("seed", [0, 1])
def test_kills_are_as_many_as_wanted(target: float, seed: int) -> None:
    trace = drawn_trace(6000, 64, seed)
    plan = Planning(Estimates.PREDICTED, KillAt.BOUND, target)
    schedule = simulate_trace(trace, 64, Policy.EASY, plan)
    assert schedule.was_killed.mean() == pytest.approx(target, rel=0.25)


def test_estimates_do_not_look_ahead() -> None:
    """Whatever happens to jobs that end later, what was planned for earlier ones stays the same."""
    trace = drawn_trace(800, 64, 0)
    plan = Planning(Estimates.BOUND, KillAt.NEVER, 0.1)
    before = simulate_trace(trace, 64, Policy.FCFS, plan)
    cut = float(np.quantile(trace.submit, 0.6))
    late = before.outcome.end > cut
    run = np.where(late, trace.run * 3, trace.run)
    after = simulate_trace(trace_with_runs(trace, run), 64, Policy.FCFS, plan)
    early = trace.submit <= cut
    assert (after.jobs.estimate[early] == before.jobs.estimate[early]).all()
    assert (after.jobs.estimate != before.jobs.estimate).any()


def trace_with_runs(trace: Trace, run: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Trace:
    from dataclasses import replace

    return replace(trace, run=run)


def test_the_same_trace_gives_the_same_log() -> None:
    trace = drawn_trace(500, 32, 3)
    logs = [event_log(simulate_trace(trace, 32, Policy.CONSERVATIVE, PLANS["predicted"])) for _ in range(2)]
    assert (logs[0].time == logs[1].time).all()
    assert (logs[0].kind == EventKind.KILL).sum() == 0


def test_a_log_that_cannot_be_is_refused() -> None:
    trace = drawn_trace(50, 8, 0)
    schedule = simulate_trace(trace, 8, Policy.EASY, Planning())
    log = event_log(schedule)
    with pytest.raises(BadInputError, match="more nodes"):
        replay(log, (type(schedule.machines[0])("small", 4),))
    log.time[log.kind == EventKind.START] = -1.0
    with pytest.raises(BadInputError, match="before it was submitted"):
        replay(log, schedule.machines)


def test_load_and_shaking_and_repeating() -> None:
    trace = drawn_trace(400, 32, 0)
    assert trace.at_load(1.3, 32).load(32) == pytest.approx(1.3)
    shaken = trace.shaken(1)
    assert sorted(shaken.run) == sorted(trace.run)
    assert (np.diff(shaken.submit) >= 0).all()
    assert 0 < np.abs(np.sort(shaken.submit) - trace.submit).max() <= 40
    twice = trace.repeated(2)
    assert twice.load(32) == pytest.approx(trace.load(32), rel=0.01)
    assert set(twice.user[:400]).isdisjoint(twice.user[400:])
    assert trace.that_fits(4).skipped == {"jobs of more than 4 nodes": int((trace.nodes > 4).sum())}


def test_impossible_jobs_are_refused() -> None:
    trace = drawn_trace(100, 32, 0)
    with pytest.raises(BadInputError, match="more nodes"):
        simulate_trace(trace, 2, Policy.EASY, Planning())
    with pytest.raises(BadInputError, match="bound"):
        Planning(Estimates.USER, KillAt.BOUND)
