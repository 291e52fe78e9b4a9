"""What shadow mode simulates: user statistics, narrower ways and other machines, held against the slow scheduler."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perf_assets.scheduling.choices import Estimates, Planning, Policy
from perf_assets.scheduling.other_ways import ModelledJobs, Way
from perf_assets.scheduling.simulate import Machine, simulate, simulate_trace
from perf_assets.scheduling.traces.trace import Trace
from tests.scheduling.reference import HistoryReference, Job, Option
from tests.scheduling.test_reference import EXAMPLES, events_of, reference_events

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("scheduling")]  # one worker compiles the simulator

UNIT = 8
"""Seconds: medians of times, and a quarter of them, are whole."""
NODES = (4, 3)
RATIOS = (0.5, 1.0, 2.0)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Few enough jobs that none is forgotten."""
    count = draw(st.integers(1, 8))

    def whole(least: int, most: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)))

    return Trace(
        "made", np.arange(count), np.cumsum(whole(0, 3)) * 4.0, UNIT * whole(1, 4).astype(float), whole(1, NODES[0]),
        UNIT * whole(1, 3).astype(float), whole(0, 1), whole(-1, 1), ("wave", "other"),
    )  # fmt: skip


def about(trace: Trace) -> list[tuple[int, int, int, int]]:
    """What says which jobs are alike."""
    columns = (trace.user, trace.application, trace.nodes, trace.request)
    return [(int(u), int(a), int(n), int(q)) for u, a, n, q in zip(*columns, strict=True)]


@pytest.mark.parametrize("policy", [Policy.EASY, Policy.EASY_SJBF])
def test_user_statistics_are_those_of_the_slow_scheduler(policy: Policy) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(traces())
    def agrees(trace: Trace) -> None:
        schedule = simulate_trace(trace, NODES[0], policy, Planning(Estimates.PREDICTED))
        jobs = [
            Job(number, int(came), [Option(0, int(nodes), int(run), 0, int(asked))])
            for number, (came, nodes, run, asked) in enumerate(
                zip(trace.submit, trace.nodes, trace.run, trace.request, strict=True)
            )
        ]
        slow = HistoryReference([NODES[0]], policy.value, jobs, about=about(trace), ratios=[[1.0]] * len(jobs))
        slow.simulate()
        assert events_of(schedule) == reference_events(jobs)

    agrees()


@st.composite
def modelled(draw: st.DrawFn) -> tuple[Trace, float, list[Way]]:
    """A log, how long its application takes on half the nodes, and ways on another machine."""
    elsewhere = draw(st.lists(st.sampled_from(RATIOS), max_size=1))
    return draw(traces()), draw(st.sampled_from(RATIOS)), [Way(1, 0, ratio, 0.0) for ratio in elsewhere]


def test_widths_and_machines_are_those_of_the_slow_scheduler() -> None:
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(modelled())
    def agrees(case: tuple[Trace, float, list[Way]]) -> None:
        trace, half, elsewhere = case

        def ways(nodes: int) -> list[Way]:
            here = [Way(0, nodes // 2, half, 0.0)] if nodes > 1 else []
            return here + [Way(1, nodes, way.ratio, 0.0) for way in elsewhere if nodes <= NODES[1]]

        machines = tuple(Machine(f"m{place}", nodes) for place, nodes in enumerate(NODES))
        jobs, learner = ModelledJobs(machines, {"wave": ways}, ()).options(trace, 0)
        schedule = simulate(machines, jobs, Policy.EASY, learner)
        slow_jobs, ratios = [], []
        for number, (came, nodes, run, asked, code) in enumerate(
            zip(trace.submit, trace.nodes, trace.run, trace.request, trace.application, strict=True)
        ):
            found = [Way(0, int(nodes), 1.0, 0.0), *(ways(int(nodes)) if code == 0 else [])]
            options = [
                Option(way.machine, way.nodes, int(run * way.ratio), 0, int(asked * max(1.0, way.ratio)))
                for way in found
            ]
            slow_jobs.append(Job(number, int(came), options))
            ratios.append([way.ratio for way in found])
        slow = HistoryReference(list(NODES), "easy", slow_jobs, about=about(trace), ratios=ratios)
        slow.simulate()
        assert events_of(schedule) == reference_events(slow_jobs)

    agrees()
