"""Windows of a log, and jobs that are drawn from one: alike in what they are, and no more than that."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.traces.draw import HOURS, drawn, hours_of, likeness, simulated_trace
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.scheduling.traces.trace import Trace


@pytest.fixture(scope="module")
def log() -> Trace:
    return simulated_trace()


def test_the_log_that_ships_says_what_it_is(log: Trace) -> None:
    assert log.is_simulated
    assert (len(log), log.most_nodes, log.zone) == (3000, 128, "UTC")
    assert log.skipped == {}


def test_windows_are_by_date_or_number(log: Trace) -> None:
    days = log.window("2024-12-31..2025-01-02")
    local = days.local_times()
    assert local is not None
    assert {str(day) for day in local.date} == {"2024-12-31", "2025-01-01", "2025-01-02"}
    assert days.submit[0] == 0
    few = log.window("100..150")
    assert few.number.tolist() == log.number[100:150].tolist()
    assert log.window("2990..").number.tolist() == log.number[2990:].tolist()


@pytest.mark.parametrize("text", ["5", "..", "a..b", "2030-01-01..2031-01-01", "5..5", "2024-01-01..nan"])
def test_windows_that_cannot_be_are_refused(log: Trace, text: str) -> None:
    with pytest.raises(BadInputError, match="window"):
        log.window(text)
    if text == "a..b":
        with pytest.raises(BadInputError, match="numbers of jobs"):
            replace(log, epoch=None).window(text)


def test_hours_are_local(log: Trace) -> None:
    """Second 0 is Monday at midnight in UTC: in Auckland it is Monday at 13 o'clock, in Honolulu still Sunday."""
    first = log.window("0..1")
    names = [HOURS[hours_of(replace(first, zone=zone))[0]] for zone in ("UTC", "Pacific/Auckland", "Pacific/Honolulu")]
    assert names == ["off hours", "working hours", "weekend"]
    assert set(hours_of(replace(log, epoch=None))) == {0}


def test_drawn_jobs_are_like_those_of_the_window(log: Trace) -> None:
    jobs = drawn(log, 1)
    assert (jobs.submit == log.submit).all()
    assert set(zip(jobs.nodes, jobs.run, strict=True)) <= set(zip(log.nodes, log.run, strict=True))
    assert (jobs.request >= jobs.run).all()
    assert all(one.is_alike for one in likeness(log, jobs).values())
    assert (drawn(log, 1).run == jobs.run).all()
    assert (drawn(log, 2).run != jobs.run).any()


def test_a_draw_that_is_not_alike_is_seen(log: Trace) -> None:
    jobs = drawn(log, 1)
    compared = likeness(log, replace(jobs, run=jobs.run * 1.5))
    assert {name.split(",")[0] for name, one in compared.items() if not one.is_alike} >= {"run", "node_seconds"}
    with pytest.raises(BadInputError, match="as many"):
        likeness(log, jobs.window("0..5"))


@pytest.mark.slow
def test_limits_follow_durations_and_hours_of_a_real_log(shared_data: Path) -> None:
    log = read_trace(shared_data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    for seed in range(3):
        jobs = drawn(log, seed)
        compared = likeness(log, jobs)
        assert len(compared) == 12
        assert [name for name, one in compared.items() if not one.is_alike] == []
        ranks = [np.argsort(np.argsort(values)) for values in (jobs.run, jobs.request)]
        assert np.corrcoef(*ranks)[0, 1] > 0.5
