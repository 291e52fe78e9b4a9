"""A model of scaling knows laws that are laws, and says how little it knows outside what was run."""

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats
from perf_assets.models.scaling.forms import FORMS
from perf_assets.models.scaling.model import Parameters, ScalingModel

WIDTHS = np.array([1, 2, 4, 8, 16, 32])


def runs(law: str, noise: float, repeats: int = 6) -> tuple[Floats, Floats]:
    """Width and problem size, and seconds."""
    random = np.random.default_rng(0)
    width, size = (axis.ravel() for axis in np.meshgrid(np.tile(WIDTHS, repeats), [100.0, 200.0]))
    shape = {"power": width**-0.7, "Amdahl": 0.2 + 0.8 / width, "Extra-P": 0.5 + 0.5 * width**0.5}[law]
    return np.column_stack([width, size]), 30 * shape * (size / 100) * np.exp(random.normal(0, noise, len(width)))


@pytest.mark.parametrize(("form", "law"), [("power law", "power"), ("Amdahl", "Amdahl"), ("Extra-P", "Extra-P")])
def test_a_form_knows_its_own_law(form: str, law: str) -> None:
    values, seconds = runs(law, 0.0)
    inside = values[:, 0] < 32
    parameters = Parameters.fit(values[inside], np.zeros(2, bool))
    predicted = FORMS[form](parameters, values[inside], seconds[inside], 0)(values[~inside])
    assert predicted == pytest.approx(seconds[~inside], rel=0.01)


def test_the_nearest_width_is_that_of_the_same_problem() -> None:
    values, seconds = runs("power", 0.0)
    inside = values[:, 0] != 8
    parameters = Parameters.fit(values[inside], np.zeros(2, bool))
    predict = FORMS["nearest width"](parameters, values[inside], seconds[inside], 0)
    assert predict(np.array([[9.0, 200.0]])) == pytest.approx(30 * 16**-0.7 * 2)


def test_intervals_hold_and_widen_outside() -> None:
    values, seconds = runs("Amdahl", 0.05)
    inside = values[:, 0] <= 8
    model = ScalingModel.fit(values[inside], seconds[inside], 0)
    asked = np.column_stack([[4.0, 16.0, 64.0, 512.0], np.full(4, 100.0)])
    times = model.predict(asked)
    width = np.log(times.upper / times.lower)
    assert (np.diff(width) > 0).all()
    assert times.seconds[0] == pytest.approx(30 * (0.2 + 0.8 / 4), rel=0.05)
    assert (times.lower[:2] < 30 * (0.2 + 0.8 / asked[:2, 0])).all()
    again = model.predict(values[inside])
    assert np.mean((again.lower <= seconds[inside]) & (seconds[inside] <= again.upper)) >= 0.85


def test_levels_are_parameters_too() -> None:
    values, seconds = runs("power", 0.02)
    level = np.arange(len(values)) % 2.0
    model = ScalingModel.fit(np.column_stack([values, level]), seconds * (1 + level), 0, np.array([False, False, True]))
    two = model.predict(np.array([[4.0, 100.0, 0.0], [4.0, 100.0, 1.0]]))
    assert two.seconds[1] / two.seconds[0] == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(
    ("values", "seconds", "message"),
    [
        ([[1.0], [2.0]], [1.0, 2.0], "too few"),
        ([[1.0], [2.0], [4.0], [-8.0]], [1.0, 2.0, 3.0, 4.0], "must be positive"),
        ([[1.0], [2.0], [4.0], [np.nan]], [1.0, 2.0, 3.0, 4.0], "missing"),
        ([[1.0], [2.0], [4.0], [8.0]], [1.0, 2.0, 3.0, 0.0], "run times must be positive"),
        ([[4.0], [4.0], [4.0], [4.0]], [1.0, 2.0, 3.0, 1.0], r"1 widths \(4\): a model of scaling needs at least 3"),
    ],
)
def test_what_cannot_be_is_said(values: list[list[float]], seconds: list[float], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        ScalingModel.fit(np.array(values), np.array(seconds), 0)
