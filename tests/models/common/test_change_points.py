"""Change points: what is promised whatever the values are, and how soon a change is seen."""

from itertools import product

import numpy as np
import pytest

from perf_assets.models.common.change_points import FEWEST, MOST, _evidence, _in_order, _memory, periods

CHANCE = 0.01


def in_places(places: tuple[int, ...]) -> np.ndarray:
    """A series of which each value after the first FEWEST comes at this place among those before it."""
    ordered: list[int] = list(range(FEWEST))
    for number, place in enumerate(places, FEWEST):
        ordered.insert(place, number)
    series = np.empty(len(ordered))
    series[ordered] = np.arange(len(ordered))
    return series


@pytest.mark.parametrize("further", [1, 2, 3])
def test_without_a_change_nothing_is_won_on_average(further: int) -> None:
    """Over all orders, which are equally likely, the mean of what the bets won is one at most, and not much less."""
    orders = product(*(range(FEWEST + number + 1) for number in range(further)))
    won = [np.exp(_evidence(in_places(places))[0][-1]) for places in orders]
    assert 0.8 < np.mean(won) <= 1.0
    assert further < 3 or max(won) > 1.1


@pytest.mark.parametrize("memory", [0.0, 0.3])
def test_the_memory_of_values_is_taken_to_be_larger_where_there_are_few(memory: float) -> None:
    random = np.random.default_rng(0)
    values = remembering(random, memory, 3000)
    assert _memory(values) == pytest.approx(memory, abs=0.05)
    few = [_memory(part) for part in values[:2000].reshape(-1, 20)]
    assert np.mean(few) > memory


def test_values_that_remember_the_one_before_are_no_change() -> None:
    """Seven of these 20 are cut where nights are taken to be independent."""
    random = np.random.default_rng(0)
    cut = [len(periods(remembering(random, 0.5, 150), CHANCE)) > 1 for _ in range(20)]
    assert sum(cut) <= 1


def remembering(random: np.random.Generator, memory: float, count: int) -> np.ndarray:
    """Autoregressive values of order one."""
    values = random.normal(size=count)
    for number in range(1, count):
        values[number] = memory * values[number - 1] + np.sqrt(1 - memory**2) * values[number]
    return values


@pytest.mark.parametrize("seed", range(3))
def test_a_change_is_seen_within_days_and_dated(seed: int) -> None:
    random = np.random.default_rng(seed)
    series = np.concatenate([random.normal(0.0, 0.02, 40), random.normal(0.1, 0.02, 10)])
    before, after = periods(series, CHANCE)
    assert (before.begin, after.end) == (0, 50)
    assert before.end == after.begin
    assert abs(after.begin - 40) <= 1
    first = next(count for count in range(41, 51) if len(periods(series[:count], CHANCE)) == 2)
    assert first <= 49


@pytest.mark.parametrize("seed", range(5))
def test_what_only_varies_is_one_period_whatever_its_distribution(seed: int) -> None:
    random = np.random.default_rng(seed)
    for series in (random.normal(size=120), random.standard_cauchy(120), random.exponential(size=120) ** 4):
        assert [(p.begin, p.end) for p in periods(series, CHANCE)] == [(0, 120)]


def test_a_clock_that_only_says_the_same_is_no_change() -> None:
    assert len(periods(np.ones(200), CHANCE)) == 1
    assert len(periods(np.repeat([1.0, 2.0], 30), CHANCE)) == 2
    assert sorted(_in_order(np.array([3.0, 1.0, 3.0, 2.0])).tolist()) == [0, 1, 2, 3]


def test_one_odd_night_or_too_few_are_no_change() -> None:
    assert periods([], CHANCE)[0].end == 0
    assert len(periods([1.0] * FEWEST + [9.0], CHANCE)) == 1
    random = np.random.default_rng(0)
    series = random.normal(size=60)
    series[30] += 50
    assert len(periods(series, CHANCE)) == 1


def test_a_change_and_its_end_are_two() -> None:
    random = np.random.default_rng(1)
    parts = [random.normal(level, 0.02, 30) for level in (0.0, 0.12, 0.0)]
    found = periods(np.concatenate(parts), CHANCE)
    assert [round(period.begin, -1) for period in found] == [0, 30, 60]
    assert found[-1].end == 90


def test_of_long_series_the_newest_count() -> None:
    random = np.random.default_rng(2)
    values = np.concatenate([random.normal(9.0, 1.0, 50), random.normal(0.0, 1.0, MOST)])
    (only,) = periods(values, CHANCE)
    assert (only.begin, only.end) == (0, len(values))
