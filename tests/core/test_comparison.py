"""Which machines can be put into an order, by intervals made by hand; what becomes of intervals in means and sums."""

import itertools
import math
import random

import pytest

from perf_assets.core.comparison import (
    ComparedApplication,
    ComparedMachine,
    Comparison,
    Estimate,
    Evidence,
    ranked,
    total,
    typical,
)


def compared(by_time: dict[str, Estimate], by_price: dict[str, Estimate] | None = None) -> Comparison:
    """Machines with one application and these times; node-hours are all alike."""
    times, prices = ranked(by_time), ranked(by_price or {})
    same = ranked(dict.fromkeys(by_time, Estimate(100, 90, 110)))
    counts = Evidence(0, 3, 1)
    return Comparison(
        "today",
        "price" if by_price else "relative_time",
        tuple(
            ComparedMachine(
                (prices or times)[name].place, name, times[name], same[name], None, prices.get(name), counts, True, ()
            )
            for name in by_time
        ),
        tuple(
            ComparedApplication(name, "Kripke", 1.0, counts, one.times(10), one, one.times(100))
            for name, one in by_time.items()
        ),
        (),
    )


def test_places_are_ranges_where_intervals_overlap() -> None:
    found = ranked(
        {
            "a": Estimate(1.0, 0.9, 1.1),
            "b": Estimate(1.15, 1.05, 1.25),
            "c": Estimate(1.3, 1.2, 1.4),
            "far": Estimate(3.0, 2.0, 4.0),
        }
    )
    assert {name: one.place for name, one in found.items()} == {"a": "1 to 2", "b": "1 to 3", "c": "2 to 3", "far": "4"}
    assert found["b"].not_told_from == ("a", "c")
    assert found["a"].not_told_from == ("b",)
    assert found["far"].not_told_from == ()


def test_an_unsure_machine_is_not_put_before_a_sure_one() -> None:
    found = ranked(
        {"best": Estimate(0.3, 0.29, 0.31), "sure": Estimate(0.7, 0.69, 0.71), "wide": Estimate(0.8, 0.4, 2)}
    )
    assert (found["sure"].place, found["wide"].place) == ("2 to 3", "2 to 3")


def test_intervals_that_touch_overlap() -> None:
    found = ranked({"a": Estimate(1, 0.5, 1.5), "b": Estimate(2, 1.5, 2.5)})
    assert [one.place for one in found.values()] == ["1 to 2", "1 to 2"]


def test_places_are_those_that_some_choice_of_values_gives() -> None:
    generator = random.Random(3)
    for _ in range(30):
        ends = [sorted(generator.sample(range(12), 2)) for _ in range(4)]
        estimates = {str(i): Estimate((low + high) / 2 + 1, low + 1, high + 1) for i, (low, high) in enumerate(ends)}
        found = ranked(estimates)
        orders = [
            order
            for order in itertools.permutations(estimates)
            if not any(
                estimates[later].upper < estimates[earlier].lower for earlier, later in itertools.combinations(order, 2)
            )
        ]
        for name, one in found.items():
            places = {order.index(name) + 1 for order in orders}
            assert places == set(range(one.best_place, one.worst_place + 1))
            for other in one.not_told_from:
                assert one.best_place <= found[other].worst_place
                assert found[other].best_place <= one.worst_place


def test_errors_of_predictions_go_together_and_those_of_measurements_do_not() -> None:
    one, two = Estimate(1.0, 0.5, 2.0), Estimate(4.0, 2.0, 8.0)
    predicted = typical([one, two])
    assert (predicted.value, predicted.lower, predicted.upper) == pytest.approx((2.0, 1.0, 4.0))
    measured = typical([], [one] * 16)
    assert (measured.value, measured.upper) == pytest.approx((1.0, 2 ** (1 / 4)))
    mixed = typical([one, two], [one, two])
    half = math.hypot(2 * math.log(2), math.log(2), math.log(2)) / 4
    assert (mixed.value, mixed.lower, mixed.upper) == pytest.approx((2.0, 2 * math.exp(-half), 2 * math.exp(half)))
    lopsided = typical([Estimate(1.0, 0.9, 3.0)])
    assert (lopsided.lower, lopsided.upper) == pytest.approx((0.9, 3.0))
    summed = total([one, two.times(0.5)])
    assert (summed.value, summed.lower, summed.upper) == (3.0, 1.5, 6.0)


def test_findings_say_what_is_sure_and_what_is_not() -> None:
    apart = compared({"a": Estimate(1, 0.9, 1.1), "b": Estimate(2, 1.9, 2.1)})
    assert apart.findings() == [
        "By time a needs least: its whole interval lies below all others.",
        "By node-hours no order can be given: the intervals of a and b overlap.",
    ]
    chain = compared(
        {"c": Estimate(1.3, 1.2, 1.4), "a": Estimate(1, 0.9, 1.1), "b": Estimate(1.15, 1.05, 1.25)},
        {"c": Estimate(1, 0.9, 1.1), "a": Estimate(3, 2, 4), "b": Estimate(3.5, 2, 4)},
    )
    assert chain.findings()[:2] == [
        "By price c needs least: its whole interval lies below all others. Cannot be told apart: a and b.",
        "By time no machine is surely better than a or b. Cannot be told apart: a and b; b and c.",
    ]
    assert compared({"alone": Estimate(1, 0.9, 1.1)}).findings() == []


def test_the_table_has_machines_and_applications() -> None:
    found = compared({"a": Estimate(1, 0.9, 1.1), "b": Estimate(1.05, 1.0, 1.1)})
    frame = found.to_frame()
    assert list(frame["app"]) == ["", "", "Kripke", "Kripke"]
    assert list(frame["place"][:2]) == ["1 to 2", "1 to 2"]
    assert frame.loc[0, "relative_time_not_told_from"] == "b"
    assert list(frame["seconds_value"][2:]) == [10, 10.5]
    assert "price_value" not in frame
    assert found.to_dict()["machines"][0]["relative_time"]["worst_place"] == 2
    assert str(Evidence(0, 3, 1)) == "3 champion, 1 prior"
