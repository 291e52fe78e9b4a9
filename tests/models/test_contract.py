"""One contract for everything that learns: fit, predict, save, load; missing values, one row, an unknown machine."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import perf_assets.registry.pyfunc
from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.features.samples import Floats
from perf_assets.models.source import stored
from perf_assets.models.vectors import methods
from tests.installation import PROJECT, run_script
from tests.models.estimators import REGISTERED, SOURCE_METHODS, VECTOR_METHODS, save_components

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("contract")]


@pytest.fixture(scope="module")
def fitted() -> Mapping[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_THREADS", "1")
        return {name: estimator.fit() for name, estimator in REGISTERED.items()}


@pytest.fixture(scope="module")
def answers(fitted: Mapping[str, Any]) -> dict[str, Floats]:
    return {name: estimator.ask(fitted[name], estimator.questions()) for name, estimator in REGISTERED.items()}


def test_every_kind_that_is_stored_is_held_to_the_contract() -> None:
    served = {path.stem for path in Path(perf_assets.registry.pyfunc.__path__[0]).glob("[a-z]*.py")}
    assert set(REGISTERED) == served
    assert set(SOURCE_METHODS) == {kind.__name__ for kind in get_args(stored.StoredPredictor)}
    assert len(VECTOR_METHODS) == len(get_args(methods.VectorMethod))


def test_loaded_in_a_fresh_process_all_answer_the_same(
    fitted: Mapping[str, Any], answers: dict[str, Floats], tmp_path: Path
) -> None:
    for name, model in fitted.items():
        model.save(tmp_path / name)
    expected = answers | save_components(tmp_path / "components")
    suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert suffixes <= {".npz", ".csv", ".parquet"}, "no pickle"
    done = run_script(PROJECT / "tests" / "models" / "estimators.py", [str(tmp_path)], os.environ, PROJECT)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "answers.npz") as loaded:
        assert set(loaded.files) == set(expected)
        for name, values in expected.items():
            assert loaded[name] == pytest.approx(values, rel=1e-9, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("name", REGISTERED)
def test_answers_are_finite_and_inside_their_intervals(name: str, answers: dict[str, Floats]) -> None:
    assert np.isfinite(answers[name]).all()
    if name != "amm":
        predicted, lower, upper = answers[name]
        assert ((lower <= predicted) & (predicted <= upper)).all()


@pytest.mark.parametrize("name", REGISTERED)
def test_one_question_is_answered_as_among_others(
    name: str, fitted: Mapping[str, Any], answers: dict[str, Floats]
) -> None:
    estimator = REGISTERED[name]
    alone = estimator.ask(fitted[name], estimator.one(estimator.questions()))
    among = answers[name][: len(alone)] if name == "amm" else answers[name][:, :1]
    assert alone == pytest.approx(among, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", REGISTERED)
def test_what_was_not_measured_is_unknown_and_not_an_error(name: str, fitted: Mapping[str, Any]) -> None:
    estimator = REGISTERED[name]
    assert np.isfinite(estimator.ask(fitted[name], estimator.bare(estimator.questions()))).all()


@pytest.mark.parametrize("name", REGISTERED)
def test_an_unknown_machine_is_named_in_one_line(name: str, fitted: Mapping[str, Any]) -> None:
    estimator = REGISTERED[name]
    asked = estimator.unknown(estimator.questions())
    if name == "source":
        # Not an error: it answers any pair of machines from the counters alone, and says so.
        assert all(estimator.refuses in reason for reason in fitted[name].predict(asked).reasons)
        return
    with pytest.raises(BadInputError, match=estimator.refuses) as refused:
        estimator.ask(fitted[name], asked)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", REGISTERED)
def test_what_is_no_model_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError):
        REGISTERED[name].kind.load(tmp_path)
