"""How far answers are off: learned from errors of held-out folds, by the distance of the machines."""

import numpy as np
import pytest

from perf_assets.models.source.error_size import ErrorSize


def test_errors_that_grow_with_the_distance_are_learned_and_intervals_hold_near_and_far() -> None:
    generator = np.random.default_rng(0)
    distances = [generator.choice([0.0, 1.0], 4000) for _ in range(3)]
    errors = [np.where(far > 0, 0.6, 0.1) * generator.standard_normal(len(far)) for far in distances]
    size = ErrorSize.fit(errors, distances)
    assert (size.at(0.0), size.at(1.0)) == (pytest.approx(0.1, rel=0.1), pytest.approx(0.6, rel=0.1))
    for far in (0.0, 1.0):
        inside = np.abs(np.concatenate(errors)[np.concatenate(distances) == far]) < 1.645 * size.at(far)
        assert inside.mean() == pytest.approx(0.9, abs=0.03)


def test_errors_that_do_not_grow_are_alike_everywhere_and_each_fold_counts_the_same() -> None:
    size = ErrorSize.fit([np.full(10, 0.3), np.full(1000, 0.1)], [np.zeros(10), np.zeros(1000)])
    assert size == ErrorSize(pytest.approx(np.sqrt((0.09 + 0.01) / 2)), 0.0)
    assert ErrorSize.fit([np.zeros(5)], [np.ones(5)]).at(1.0) == pytest.approx(0.0)
