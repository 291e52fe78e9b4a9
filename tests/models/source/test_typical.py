"""Typical times: levels of runs over all machines, and effects of machines."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.source.typical import TypicalTimes

NOWHERE = np.nan


def samples_of(log_seconds: Floats, apps: list[str], benchmark: int = 0) -> PairedSamples:
    """Machines m0, m1, … and runs, of which the last ones are the benchmark."""
    machines, runs = log_seconds.shape
    return PairedSamples(
        machines=tuple(f"m{i}" for i in range(machines)),
        counter_names=("counter",),
        configurations=tuple(f"run {i}" for i in range(runs)),
        apps=np.array(apps),
        is_benchmark=np.arange(runs) >= runs - benchmark,
        counters=np.zeros((machines, runs, 1)),
        log_seconds=log_seconds,
    )


def ask(source: int, target: int, row: int) -> Examples:
    return Examples(*(np.array([value]) for value in (source, target, row)))


@pytest.fixture
def additive() -> PairedSamples:
    """Runs with levels 1 to 6 of three applications, and machines with effects -1, 0 and 1."""
    times = np.array([-1.0, 0.0, 1.0])[:, None] + np.arange(1.0, 7.0)[None]
    return samples_of(times, ["a", "a", "b", "b", "c", "c"])


def test_where_times_add_up_a_known_machine_is_predicted_exactly(additive: PairedSamples) -> None:
    gaps = additive.log_seconds.copy()
    gaps[2, 0] = gaps[0, 3] = NOWHERE
    model = TypicalTimes.fit(replace(additive, log_seconds=gaps))
    assert model.predict(additive, ask(0, 2, 0)) == pytest.approx([2.0])
    assert model.predict(additive, ask(2, 0, 3)) == pytest.approx([-2.0])


def test_a_machine_of_which_nothing_is_known_is_as_the_average_machine(additive: PairedSamples) -> None:
    hidden = additive.hide_machine(2)
    model = TypicalTimes.fit(hidden)
    # The run took 1 less on m0 than on m1: on another machine the mean of the two is expected.
    assert model.predict(additive, ask(0, 2, 0)) == pytest.approx([0.5])
    assert model.predict(additive, ask(1, 2, 0)) == pytest.approx([-0.5])


def test_a_machine_that_is_known_by_its_benchmark_is_as_fast_as_that_says(additive: PairedSamples) -> None:
    with_benchmark = samples_of(
        np.column_stack([additive.log_seconds, [0.0, 1.0, 2.0]]), [*additive.apps.tolist(), "triad"], benchmark=1
    )
    model = TypicalTimes.fit(with_benchmark.hide_machine(2))
    assert model.predict(with_benchmark, ask(0, 2, 0)) == pytest.approx([2.0])


def test_effects_that_applications_do_not_agree_on_are_not_trusted() -> None:
    times = np.zeros((2, 4))
    times[1] = [2.0, -2.0, 2.0, -1.9]
    new = ask(0, 1, 0)
    unsure = TypicalTimes.fit(samples_of(times, ["a", "b", "c", "d"]))
    assert abs(unsure.predict(samples_of(np.zeros((2, 1)), ["new"]), new)[0]) < 0.01
    times[1] = [2.0, 1.9, 2.1, 2.0]
    sure = TypicalTimes.fit(samples_of(times, ["a", "b", "c", "d"]))
    assert sure.predict(samples_of(np.zeros((2, 1)), ["new"]), new)[0] == pytest.approx(2.0, abs=0.01)


def test_what_one_application_alone_shows_of_a_machine_is_not_taken_for_the_machine() -> None:
    times = np.zeros((3, 4))
    times[1] = 1.0
    times[2] = [5.0, NOWHERE, NOWHERE, NOWHERE]
    model = TypicalTimes.fit(samples_of(times, ["a", "b", "c", "d"]))
    unseen = samples_of(np.zeros((3, 1)), ["new"])
    assert model.predict(replace(unseen, configurations=("new run",)), ask(0, 1, 0)) == pytest.approx([1.0], abs=0.05)
    assert abs(model.predict(replace(unseen, configurations=("new run",)), ask(0, 2, 0))[0]) < 1.0


def test_every_application_counts_the_same() -> None:
    times = np.array([[0.0] * 10, [1.0] * 9 + [2.0]])
    model = TypicalTimes.fit(samples_of(times, ["often"] * 9 + ["once"]))
    unseen = samples_of(np.zeros((2, 1)), ["new"])
    assert 1.2 < model.predict(unseen, ask(0, 1, 0))[0] <= 1.5


def test_a_stored_model_answers_the_same(additive: PairedSamples, tmp_path: Path) -> None:
    model = TypicalTimes.fit(additive.hide_machine(2))
    model.save(tmp_path)
    asked = additive.examples()
    assert TypicalTimes.load(tmp_path).predict(additive, asked) == pytest.approx(model.predict(additive, asked))
