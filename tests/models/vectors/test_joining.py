"""A machine joins a fleet of machines that are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.growth import grow
from perf_assets.models.vectors.head import Head
from perf_assets.models.vectors.model import Runs, VectorModel, join, train_vector
from tests.models.vectors.conftest import SETTINGS, SMALL


def test_a_head_finds_the_machine_that_the_new_one_behaves_like() -> None:
    generator = np.random.default_rng(0)
    known, source = generator.normal(size=(30, 3)), generator.integers(0, 3, 30)
    own, configurations = known[np.arange(30), source], np.arange(30) // 3
    noise = 0.01 * generator.normal(size=30)
    like_second = Head.fit(known, known[:, 1] + 0.5 + noise - own, source, configurations)
    assert like_second.weights == pytest.approx([0.0, 1.0, 0.0], abs=0.01)
    assert like_second.predict(known) == pytest.approx(known[:, 1] + 0.5, abs=0.02)
    assert like_second.spread == pytest.approx(0.01, rel=0.5)
    like_none = Head.fit(known, known.mean(axis=1) - 0.2 + noise - own, source, configurations)
    assert like_none.weights == pytest.approx([0.0, 0.0, 0.0], abs=0.01)
    assert like_none.predict(known) == pytest.approx(known.mean(axis=1) - 0.2, abs=0.02)


def test_a_head_of_two_configurations_is_refused() -> None:
    with pytest.raises(BadInputError, match="2 configurations to learn from, and 3 are needed"):
        Head.fit(np.zeros((4, 2)), np.zeros(4), np.zeros(4, int), np.array([0, 0, 1, 1]))


def test_the_place_of_a_new_machine_is_as_sure_as_its_neighbours_are_far() -> None:
    head = Head(np.array([0.0, 0.0]), 0.0, 0.1, 50)
    near, far, first = head.stays(np.array([[-0.01, 0.01], [-9.0, 9.0], [0.25, 0.75]]))
    assert near < 0.1
    assert far == pytest.approx(1.0)
    assert first == pytest.approx(1 - near, abs=0.5)


@pytest.mark.slow
def test_a_machine_joins_with_a_few_runs(samples: VectorSamples) -> None:
    rows = grow(samples, 1, SMALL, trees=20)
    assert set(rows["machine"]) == set(samples.machines)
    medians = rows.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median")
    assert set(medians.columns) == {5, 10, 20}
    assert medians.loc["head", 20] < medians.loc["constant", 20]


@pytest.mark.slow
def test_a_machine_joins_a_trained_model(samples: VectorSamples, tmp_path: Path) -> None:
    new = samples.machines.index("c")
    others = replace(_without_column(samples, new), paired=samples.paired.hide_machine(new))
    model = train_vector(others, "max", 0, SETTINGS).model
    configurations = np.flatnonzero(np.isfinite(samples.log_seconds).all(axis=1))
    few = samples.where(np.isin(samples.row, configurations[::5]))
    joined = join(model, few, "c")
    assert joined.machines == ("a", "b", "d", "e", "c")
    assert joined.heads["c"]["configuration"].shots_count == len(configurations[::5])
    joined.save(tmp_path)
    tested = samples.where(np.isin(samples.row, configurations[1::5]) & (samples.source == 0))
    asked = Runs(
        ["a"] * len(tested),
        tested.apps[tested.row].tolist(),
        np.ones(len(tested), bool),
        tested.features,
        samples.paired.counters[
            0, [samples.paired.configurations.index(samples.configurations[r]) for r in tested.row]
        ],
    )
    answers = VectorModel.load(tmp_path).predict(asked, "a")
    true = tested.targets[:, new] - tested.targets[:, 0]
    assert np.median(np.abs(np.expm1(answers.log_time[:, -1] - true))) < 0.25
    inside = (answers.lower[:, -1] <= true) & (true <= answers.upper[:, -1])
    assert inside.mean() > 0.7
    assert answers.places.shape == (len(tested), 5)
    assert ((answers.probability >= 0) & (answers.probability <= 1)).all()
    of_new = joined.predict(asked, "c")
    assert of_new.log_time[:, -1] == pytest.approx(0.0)
    assert of_new.upper[:, -1] == pytest.approx(0.0)
    assert (of_new.upper[:, 0] > of_new.log_time[:, 0]).all()


def test_who_cannot_join(samples: VectorSamples) -> None:
    model = VectorModel(samples.machines, (), (), "max", {}, samples.paired)
    with pytest.raises(BadInputError, match="a is among the machines that the model was trained with"):
        join(model, samples, "a")
    with pytest.raises(BadInputError, match="0 configurations ran on z and on machines of the model, and 3 are needed"):
        join(model, samples, "z")


def _without_column(samples: VectorSamples, machine: int) -> VectorSamples:
    """The samples of a fleet that does not have a machine."""
    kept = samples.where(samples.source != machine)
    return replace(
        kept,
        machines=tuple(name for place, name in enumerate(kept.machines) if place != machine),
        log_seconds=np.delete(kept.log_seconds, machine, axis=1),
        source=kept.source - (kept.source > machine),
        views=np.delete(kept.views, machine, axis=1),
    )
