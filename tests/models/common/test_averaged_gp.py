"""The average of processes: exact leave-one-out, a bounded price of useless sources, the same after storing."""

from pathlib import Path

import numpy as np
import pytest

from perf_assets.features.samples import Floats
from perf_assets.models.common import archive
from perf_assets.models.common.averaged_gp import (
    SOURCE_FUNCTIONS,
    SOURCE_METRIC,
    TARGET_ONLY,
    AveragedGp,
    AverageSettings,
    Inputs,
)

GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(400, 3))
TRUTH = ROWS @ [1.0, -0.5, 0.0] + 0.4 * np.sin(2 * ROWS[:, 0])
TARGET = TRUTH + 0.05 * GENERATOR.normal(size=400)


def with_source(rows: Floats, function: Floats) -> Inputs:
    return Inputs((rows, rows * [3.0, 1.5, 0.1]), function[:, None])


def error(found: Floats, rows: slice) -> float:
    return float(np.mean((found - TRUTH[rows]) ** 2))


def test_leave_one_out_is_what_fits_without_the_row_say() -> None:
    inputs, target = with_source(ROWS[:9], TRUTH[:9] ** 2), TARGET[:9]
    whole = AveragedGp.fit(inputs, target)
    for left_out in (0, 4, 8):
        others = np.delete(np.arange(9), left_out)
        again = AveragedGp.fit(inputs.at(others), target[others])
        # Kernels are scaled by the rows that are there, which is all that differs.
        assert whole.held_out[left_out] == pytest.approx(again.predict(inputs.at(np.array([left_out])))[0], abs=0.12)


def test_leave_one_out_residuals_are_as_large_as_errors_on_new_rows() -> None:
    held_out, new = [], []
    for seed in range(20):
        few, others = np.split(np.random.default_rng(seed).permutation(400), [15])
        model = AveragedGp.fit(Inputs.alone(ROWS[few]), TARGET[few])
        held_out.append(np.median((model.held_out - TARGET[few]) ** 2))
        new.append(np.median((model.predict(Inputs.alone(ROWS[others])) - TARGET[others]) ** 2))
    assert 0.7 < np.mean(held_out) / np.mean(new) < 1.5


def test_a_source_that_helps_is_used() -> None:
    source = 5.0 + TRUTH
    model = AveragedGp.fit(with_source(ROWS[:8], source[:8]), TARGET[:8])
    only = AveragedGp.fit(Inputs.alone(ROWS[:8]), TARGET[:8])
    test = slice(8, None)
    found = error(model.predict(with_source(ROWS[test], source[test])), test)
    assert found < 0.1 * error(only.predict(Inputs.alone(ROWS[test])), test)
    assert model.shares[SOURCE_FUNCTIONS] > 0.9
    assert sum(model.shares.values()) == pytest.approx(1)


def test_the_prior_of_the_target_alone_is_a_setting() -> None:
    inputs = with_source(ROWS[:4], ROWS[:4, 2])
    sure, unsure = (
        AveragedGp.fit(inputs, TARGET[:4], AverageSettings(target_only_prior=prior)).shares[TARGET_ONLY]
        for prior in (0.99, 0.01)
    )
    assert sure > 0.9
    assert unsure < sure - 0.4


def test_many_rows_are_fitted_by_the_likely_members() -> None:
    model = AveragedGp.fit(Inputs.alone(ROWS[:320]), TARGET[:320])
    assert error(model.predict(Inputs.alone(ROWS[320:])), slice(320, None)) < 0.01
    assert model.held_out.shape == (320,)
    assert set(model.shares) == {TARGET_ONLY}


def test_features_that_do_not_matter_are_told_from_those_that_do() -> None:
    """With more features no metrics are drawn; those added here do not vary, so all else is the same."""
    rows = np.random.default_rng(1).normal(size=(400, 8))
    target = np.sin(2 * rows[:, 3]) + 0.5 * rows[:, 5]
    many = np.hstack([rows, np.zeros((400, 20))])
    drawn, alike = (
        AveragedGp.fit(Inputs.alone(inputs[:40]), target[:40]).predict(Inputs.alone(inputs[40:]))
        for inputs in (rows, many)
    )
    assert np.mean((drawn - target[40:]) ** 2) < 0.7 * np.mean((alike - target[40:]) ** 2)


def test_predictions_in_drawn_metrics_do_not_depend_on_the_rows_beside() -> None:
    rows = np.random.default_rng(1).normal(size=(300, 8))
    target = np.sin(2 * rows[:, 3])
    model = AveragedGp.fit(Inputs.alone(rows[:30]), target[:30])
    assert len(model.metrics.weights)
    by_row = [model.predict(Inputs.alone(row[None]))[0] for row in rows[30:]]
    assert model.predict(Inputs.alone(rows[30:])) == pytest.approx(by_row, abs=1e-9)


def test_the_same_after_storing(tmp_path: Path) -> None:
    inputs = with_source(ROWS[:12], TRUTH[:12])
    model = AveragedGp.fit(inputs, TARGET[:12])
    archive.write(tmp_path / "average.npz", model)
    again = archive.read(tmp_path / "average.npz", AveragedGp)
    assert again.predict(inputs) == pytest.approx(model.predict(inputs), abs=1e-12)
    assert set(model.shares) == {TARGET_ONLY, SOURCE_METRIC, SOURCE_FUNCTIONS}


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        (np.zeros((6, 2)), np.arange(6.0)),
        (np.empty((6, 0)), np.arange(6.0)),
        (ROWS[:6], np.ones(6)),
        (ROWS[:2], np.array([1.0, 2.0])),
    ],
    ids=["rows alike", "no features", "targets alike", "two rows"],
)
def test_rows_that_say_little_give_about_their_mean(rows: Floats, target: Floats) -> None:
    found = AveragedGp.fit(Inputs.alone(rows), target).predict(Inputs.alone(rows))
    assert np.isfinite(found).all()
    assert found.mean() == pytest.approx(target.mean(), abs=1e-6)


def test_a_curve_is_learned_and_left_out_rows_are_near_it() -> None:
    rows = np.linspace(-2, 2, 30)[:, None]
    target = np.sin(2 * rows[:, 0])
    process = AveragedGp.fit(Inputs.alone(rows), target)
    between = rows[:-1] + 0.05
    assert np.abs(process.predict(Inputs.alone(between)) - np.sin(2 * between[:, 0])).max() < 0.05
    assert np.abs(process.held_out - target).max() < 0.3
