"""Dispatch of jobs to several clusters: against the slow scheduler, and what tables of speeds become."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.dispatch import (
    IDEAL,
    RANDOM,
    WAIT_ONLY,
    DispatchExperiment,
    Rule,
    SpeedTable,
    compare,
    dispatched,
    shares_kept,
)
from perf_assets.scheduling.events import event_log, replay
from perf_assets.scheduling.simulate import Machine
from perf_assets.scheduling.traces.trace import Trace
from tests.scheduling.reference import DispatchReference, Job, Option
from tests.scheduling.test_reference import EXAMPLES, events_of, flat, reference_events

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[Job], dict[Option, int]]:
    """Clusters, jobs whose limits suffice, and what the dispatcher expects of each option."""
    clusters = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    gaps = draw(st.lists(st.integers(0, 5), min_size=1, max_size=12))
    jobs, expected, submit = [], {}, 0
    for number, gap in enumerate(gaps):
        submit += gap
        options = []
        for _ in range(draw(st.integers(1, 3))):
            machine, run = draw(st.integers(0, len(clusters) - 1)), draw(st.integers(1, 12))
            limit = run * draw(st.sampled_from([1, 1, 2, 5]))
            options.append(Option(machine, draw(st.integers(1, clusters[machine])), run, limit, limit))
            expected.setdefault(options[-1], draw(st.one_of(st.just(run), st.integers(1, 15))))
        jobs.append(Job(number, submit, options))
    return clusters, jobs, expected


@pytest.mark.slow
@pytest.mark.parametrize("rule", Rule)
def test_every_event_agrees_with_the_slow_dispatcher(rule: Rule) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(cases())
    def agrees(case: tuple[list[int], list[Job], dict[Option, int]]) -> None:
        clusters, jobs, expected = case
        seconds = np.array([expected[option] for job in jobs for option in job.options], float)
        machines = tuple(Machine(f"c{i}", nodes) for i, nodes in enumerate(clusters))
        schedule = dispatched(machines, flat(jobs), seconds, rule)
        slow = DispatchReference(clusters, "easy", jobs, rule=rule.name.lower(), expected=expected)
        slow.simulate()
        assert events_of(schedule) == reference_events(jobs)
        promised = schedule.outcome.promised
        assert {job: promised[job] for job in np.flatnonzero(np.isfinite(promised))} == slow.promised

    agrees()


@pytest.fixture
def log() -> Trace:
    """Two hundred jobs of 1 to 6 nodes that come every minute."""
    random = np.random.default_rng(7)
    count = 200
    run = random.uniform(60, 900, count).round()
    return Trace(
        "made", np.arange(count), np.arange(count) * 60.0, run, random.integers(1, 7, count), run * 2,
        np.zeros(count, np.int64), np.full(count, -1),
    )  # fmt: skip


@pytest.fixture
def speeds() -> pd.DataFrame:
    """Workloads that are quick on one cluster and slow on the other; the last one has nowhere to run."""
    return pd.DataFrame(
        {
            "app": ["a", "b", "c", "d"],
            "wide": [1.0, 2.0, 1.0, np.nan],
            "small-cpu": [4.0, 0.5, np.nan, np.nan],
            "small-gpu": [8.0, np.nan, np.nan, np.nan],
            "elsewhere": [1.0, 1.0, 1.0, 1.0],
        }
    )


CLUSTERS = Machine("wide", 16), Machine("small", 4)


def test_a_cluster_may_have_two_ways_and_a_workload_only_some(speeds: pd.DataFrame) -> None:
    table = SpeedTable.of(speeds, CLUSTERS)
    assert table.ways == ("wide", "small-cpu", "small-gpu")
    assert table.cluster.tolist() == [0, 1, 1]
    assert table.rows.tolist() == [0, 1, 2]
    assert table.notes == ("1 workloads that run on none of these clusters are left out",)
    only = SpeedTable.of(speeds, CLUSTERS, gpu_only=["a"])
    assert np.isfinite(only.speed[0]).tolist() == [False, False, True]
    assert np.isfinite(only.speed[1]).tolist() == [True, True, False]


def test_jobs_fit_where_they_may_go_and_limits_suffice(log: Trace, speeds: pd.DataFrame) -> None:
    experiment = DispatchExperiment(SpeedTable.of(speeds, CLUSTERS), log, CLUSTERS)
    drawn = experiment.draw(0.8, 3)
    sizes = np.array([16, 4])
    assert (drawn.jobs.nodes <= sizes[drawn.jobs.machine]).all()
    assert (drawn.jobs.limit >= drawn.jobs.run).all()
    ratio = drawn.jobs.limit / (2 * drawn.seconds_at_one)
    assert np.allclose(np.log2(ratio), np.round(np.log2(ratio)))  # asked for, doubled until it suffices
    assert len(drawn.jobs.submit) == len(log)
    busy = np.bincount(
        np.repeat(np.arange(len(log)), np.diff(drawn.jobs.first)), drawn.jobs.run * drawn.jobs.nodes
    ) / np.diff(drawn.jobs.first)
    assert busy.sum() / (20 * drawn.jobs.submit[-1]) == pytest.approx(0.8)
    assert np.array_equal(drawn.expected(experiment.table.speed), drawn.jobs.run)


def test_true_predictions_gain_and_constant_ones_do_not(log: Trace, speeds: pd.DataFrame) -> None:
    experiment = DispatchExperiment(SpeedTable.of(speeds, CLUSTERS), log, CLUSTERS)
    jobs = experiment.draw(0.9, 1)
    constant = np.where(np.isfinite(experiment.table.speed), 1.0, np.nan)
    found = compare(jobs, {"constant": constant}, 0)
    assert set(found) == {(RANDOM, Rule.WAIT), (WAIT_ONLY, Rule.WAIT)} | {
        (name, rule) for name in (IDEAL, "constant") for rule in (Rule.TURNAROUND, Rule.RELATIVE)
    }
    mean = {key: metrics.turnaround.mean for key, metrics in found.items()}
    assert mean[IDEAL, Rule.TURNAROUND] < mean[WAIT_ONLY, Rule.WAIT] < mean[RANDOM, Rule.WAIT]
    by_name = {WAIT_ONLY: 100.0, IDEAL: 60.0, "ours": 70.0, "bad": 120.0}
    assert shares_kept(by_name) == pytest.approx({WAIT_ONLY: 0.0, IDEAL: 1.0, "ours": 0.75, "bad": -0.5})
    assert shares_kept({WAIT_ONLY: 50.0, IDEAL: 50.0}) == {}
    for rule in Rule:
        schedule = jobs.schedule(rule, jobs.expected(constant))
        replay(event_log(schedule), schedule.machines)
        assert not schedule.was_killed.any()
        assert (schedule.outcome.start >= jobs.jobs.submit).all()


def test_what_no_table_can_answer_is_refused(log: Trace, speeds: pd.DataFrame) -> None:
    with pytest.raises(BadInputError, match="no column narrow"):
        SpeedTable.of(speeds, (Machine("narrow", 4),))
    with pytest.raises(BadInputError, match="no application z"):
        SpeedTable.of(speeds, CLUSTERS, gpu_only=["z"])
    with pytest.raises(BadInputError, match="no row of the table of speeds has a positive speed"):
        SpeedTable.of(speeds.assign(wide=-1.0), CLUSTERS[:1])
    table = SpeedTable.of(speeds, CLUSTERS)
    with pytest.raises(BadInputError, match="no job of made fits into a cluster"):
        DispatchExperiment(table, replace(log, nodes=log.nodes + 100), CLUSTERS).draw(1.0, 0)
    with pytest.raises(BadInputError, match="come at once"):
        DispatchExperiment(table, replace(log, submit=log.submit * 0), CLUSTERS).draw(1.0, 0)
    jobs = DispatchExperiment(table, log, CLUSTERS).draw(1.0, 0)
    with pytest.raises(BadInputError, match="a positive number of seconds for every option"):
        jobs.schedule(Rule.TURNAROUND, jobs.expected(np.full_like(table.speed, np.nan)))


def test_a_job_that_outlives_what_was_expected_is_expected_to_take_twice_as_long() -> None:
    """After 3 s of an expected second, its end is taken for 4 s; the other cluster would end the next job at 6 s."""
    runs = [Job(0, 0, [Option(0, 1, 10, 50, 50)]), Job(1, 3, [Option(0, 1, 1, 1, 1), Option(1, 1, 3, 3, 3)])]
    machines = Machine("first", 1), Machine("second", 1)
    schedule = dispatched(machines, flat(runs), np.array([1.0, 1.0, 3.0]), Rule.TURNAROUND)
    assert schedule.machine.tolist() == [0, 0]
    assert schedule.outcome.start.tolist() == [0.0, 10.0]
