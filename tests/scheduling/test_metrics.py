"""Metrics of a schedule that can be worked out by hand."""

import numpy as np
import pytest

from perf_assets.scheduling.choices import Policy
from perf_assets.scheduling.experiment import bars
from perf_assets.scheduling.kernels.jobs import Jobs
from perf_assets.scheduling.metrics import measure
from perf_assets.scheduling.simulate import Machine, Schedule, simulate


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    """Four nodes. A takes all until 100, B is killed after 5 of 50 seconds, C runs beside it on 2 nodes."""
    jobs = Jobs(
        np.array([0.0, 10.0, 20.0]),
        np.arange(4),
        np.zeros(3, np.int64),
        np.array([4, 2, 2]),
        np.array([100.0, 50.0, 30.0]),
        np.array([100.0, 5.0, 10.0]),
        np.array([np.inf, 5.0, np.inf]),
    )
    return simulate((Machine("box", 4),), jobs, Policy.EASY)


def test_metrics_by_hand(schedule: Schedule) -> None:
    assert schedule.outcome.start.tolist() == [0, 100, 100]
    assert schedule.outcome.end.tolist() == [100, 105, 130]
    found = measure(schedule)
    assert found.turnaround.mean == pytest.approx((100 + 95 + 110) / 3)
    assert found.wait.median == 80
    assert found.bounded_slowdown.mean == pytest.approx((1 + 95 / 10 + 110 / 30) / 3)
    assert found.makespan_s == 130
    assert found.utilisation == pytest.approx((400 + 10 + 60) / (4 * 130))
    assert found.node_hours == pytest.approx(470 / 3600)
    assert (found.killed, found.underestimated) == (1, 1)
    assert found.killed_node_hours == pytest.approx(10 / 3600)
    assert found.turnaround_with_reruns_mean_s == pytest.approx((100 + 95 + 90 + 50 + 110) / 3)


def test_bars_do_not_overlap(schedule: Schedule) -> None:
    drawn = bars(schedule, 0, 0.0, 200.0)
    assert [(bar.job, bar.first_node, bar.nodes) for bar in drawn] == [(0, 0, 4), (1, 0, 2), (2, 2, 2)]
    assert [bar.was_killed for bar in drawn] == [False, True, False]
