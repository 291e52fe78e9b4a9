"""Scores on hand-computed cases."""

import math

import pytest

from perf_assets.core.metrics import log_rmse, mape, share_within


def test_scores_of_known_errors() -> None:
    true, predicted = [1.0, 2.0, 4.0], [1.1, 1.0, 4.0]
    assert mape(true, predicted) == pytest.approx((0.1 + 0.5 + 0.0) / 3)
    assert log_rmse([1.0, 1.0], [math.e, 1 / math.e]) == pytest.approx(1.0)
    assert share_within(true, predicted, 0.25) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("true", "predicted"), [([1.0], [1.0, 2.0]), ([], []), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_what_cannot_be_scored_is_refused(true: list[float], predicted: list[float]) -> None:
    with pytest.raises(ValueError, match=r"shapes differ|no values|positive"):
        mape(true, predicted)
