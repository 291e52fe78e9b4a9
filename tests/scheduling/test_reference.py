"""The compiled scheduler and the slow one of `reference` agree on every event of random small traces.

`PERF_ASSETS_FUZZ_EXAMPLES` sets the number of traces for each policy (a hundred by default).
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perf_assets.scheduling.choices import Policy
from perf_assets.scheduling.events import EventKind, event_log, replay
from perf_assets.scheduling.kernels.jobs import Jobs
from perf_assets.scheduling.simulate import Machine, Schedule, simulate
from tests.scheduling.reference import Job, Option, Reference

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator

EXAMPLES = int(os.environ.get("PERF_ASSETS_FUZZ_EXAMPLES", "100"))


@st.composite
def options(draw: st.DrawFn, machines: list[int]) -> Option:
    machine = draw(st.integers(0, len(machines) - 1))
    run = draw(st.integers(1, 12))
    return Option(
        machine,
        draw(st.integers(1, machines[machine])),
        run,
        draw(st.one_of(st.just(run), st.integers(1, 15))),
        draw(st.sampled_from([run, 3, 9, 1000])),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[Job]]:
    machines = draw(st.lists(st.integers(1, 6), min_size=1, max_size=2))
    gaps = draw(st.lists(st.integers(0, 5), min_size=1, max_size=12))
    jobs = []
    submit = 0
    for number, gap in enumerate(gaps):
        submit += gap
        jobs.append(Job(number, submit, draw(st.lists(options(machines), min_size=1, max_size=3))))
    return machines, jobs


def flat(jobs: list[Job]) -> Jobs:
    """What the compiled scheduler takes."""
    every = [option for job in jobs for option in job.options]
    return Jobs(
        np.array([job.submit for job in jobs], float),
        np.cumsum([0, *(len(job.options) for job in jobs)]).astype(np.int64),
        np.array([option.machine for option in every], np.int64),
        np.array([option.nodes for option in every], np.int64),
        np.array([option.run for option in every], float),
        np.array([option.estimate for option in every], float),
        np.array([option.limit for option in every], float),
    )


def compiled_schedule(machines: list[int], jobs: list[Job], policy: Policy) -> Schedule:
    return simulate(tuple(Machine(f"m{i}", nodes) for i, nodes in enumerate(machines)), flat(jobs), policy)


def events_of(schedule: Schedule) -> list[tuple[float, int, int, int, int]]:
    log = event_log(schedule)
    replay(log, schedule.machines)
    return [tuple(row) for row in zip(log.time, log.kind, log.job, log.machine, log.nodes, strict=True)]


def reference_events(jobs: list[Job]) -> list[tuple[float, int, int, int, int]]:
    events = []
    for job in jobs:
        assert job.start is not None
        assert job.taken is not None
        where = job.taken.machine, job.taken.nodes
        ends = EventKind.KILL if job.taken.run > job.taken.limit else EventKind.END
        events += [(job.submit, EventKind.SUBMIT, job.number, -1, 0), (job.start, EventKind.START, job.number, *where)]
        events.append((job.end, ends, job.number, *where))
    return sorted(events)


@pytest.mark.slow
@pytest.mark.parametrize("policy", Policy)
def test_every_event_agrees(policy: Policy) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(cases())
    def agrees(case: tuple[list[int], list[Job]]) -> None:
        machines, jobs = case
        schedule = compiled_schedule(machines, jobs, policy)
        slow = Reference(machines, policy.value, jobs)
        slow.simulate()
        assert events_of(schedule) == reference_events(jobs)
        promised = schedule.outcome.promised
        assert {job: promised[job] for job in np.flatnonzero(np.isfinite(promised))} == slow.promised

    agrees()


def test_a_machine_that_plans_leave_idle_is_not_the_end() -> None:
    """Job 1 is killed before it was expected to end; job 3 moves first, and keeps a start when nothing else runs."""
    shapes = [(1, 1, 1, 1), (1, 5, 5, 3), (1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (1, 1, 1, 1)]
    jobs = [Job(number, 0, [Option(0, *shape)]) for number, shape in enumerate(shapes)]
    schedule = compiled_schedule([2], jobs, Policy.CONSERVATIVE)
    Reference([2], "conservative", jobs).simulate()
    assert events_of(schedule) == reference_events(jobs)
