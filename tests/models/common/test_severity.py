"""Severity and intervals."""

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.models.common.conformal import cross_conformal
from perf_assets.models.common.severity import severity
from tests.models.transfers import table


def test_severity_is_small_for_permuted_columns_and_large_for_noise() -> None:
    source, same = table("s", seed=1, rows=3000), table("t", seed=2, rows=3000)
    order = np.random.default_rng(0).permutation(12)
    near = severity(source.counters, source.target, same.counters[:, order], same.target)
    noise = np.random.default_rng(1).lognormal(size=(3000, 7))
    far = severity(source.counters, source.target, noise, same.target)
    assert near.rescaled < 0.2
    assert far.rescaled > 0.6
    assert near.floor < near.ceiling
    assert 0 <= near.severity <= 1


def test_a_table_is_no_transfer_at_all_to_itself() -> None:
    source = table("s", seed=1)
    found = severity(source.counters, source.target, source.counters, source.target)
    assert found.severity == pytest.approx(0, abs=1e-6)


def test_severity_needs_rows() -> None:
    source = table("s", rows=20)
    with pytest.raises(BadInputError, match="at least 4 rows"):
        severity(source.counters, source.target, source.counters[:3], source.target[:3])


def test_intervals_cover_what_they_say_and_widen_with_severity() -> None:
    generator = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        errors = generator.normal(size=20)
        interval = cross_conformal(np.zeros(20), errors, 0.0)
        covered.append(interval.coverage(np.zeros(100), generator.normal(size=100)))
    assert 0.87 < np.mean(covered) < 0.94
    low, high = interval.around(np.array([1.0]))
    assert high[0] - low[0] == pytest.approx(2 * interval.half_width)
    assert cross_conformal(np.zeros(20), errors, 1.0).half_width > interval.half_width
    assert cross_conformal(np.zeros(5), errors[:5], 0.0).half_width > np.abs(errors[:5]).max()
