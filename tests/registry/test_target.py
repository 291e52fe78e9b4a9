"""A registered target model answers as the fitted one does, for tables as people give them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import HOST, PairedSamples
from perf_assets.models.adapted import AdaptedTarget, adapt
from perf_assets.models.stored_samples import with_questions
from perf_assets.registry.runs_table import questions
from perf_assets.registry.store import load
from perf_assets.registry.target import ALIAS, register_target, registered_name
from perf_assets.registry.target_questions import SIGNATURE, answer, example_questions


@pytest.fixture(scope="module")
def adapted(fleet: PairedSamples) -> AdaptedTarget:
    """Of the machine with GPUs, which is two to programs."""
    return adapt(fleet, "elm", 0, lambda line: None)


def test_the_loaded_model_says_what_the_fitted_one_does(
    adapted: AdaptedTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    register_target(adapted, {})
    served = load(registered_name("elm"), ALIAS)
    assert served.metadata.signature == SIGNATURE
    runs = example_questions(adapted, 8)
    on_host = runs.assign(uses_gpus=False, source_machine=adapted.views[f"elm{HOST}"].source)
    asked = pd.concat([runs, on_host], ignore_index=True)
    found = served.predict(asked)
    put = questions(asked, ["elm"] * len(asked), adapted.samples)
    assert set(put.targets) == {"elm", f"elm{HOST}"}
    for name, view in adapted.views.items():
        chosen = np.array([target == name for target in put.targets])
        samples, examples = with_questions(adapted.samples, put.where(chosen))
        mean, width = view.distribution(samples, examples.row)
        assert np.log(found["predicted_seconds"].to_numpy()[chosen]) == pytest.approx(mean, rel=1e-6, abs=1e-9)
        assert np.log(found["upper_seconds"].to_numpy()[chosen]) == pytest.approx(mean + width, rel=1e-6, abs=1e-9)
    assert served.predict(asked.iloc[[3]])["predicted_seconds"].item() == pytest.approx(found["predicted_seconds"][3])


def test_what_is_left_out_of_a_question_is_unknown(adapted: AdaptedTarget) -> None:
    runs = example_questions(adapted, 4)
    bare = runs.drop(columns=["args", "uses_gpus", "load_ratio"])
    left_out = runs.assign(args=None, uses_gpus=[None, True, np.nan, True], load_ratio=np.nan)
    pd.testing.assert_frame_equal(answer(bare, adapted), answer(left_out, adapted))
    with pytest.raises(BadInputError, match="lack the column threads"):
        answer(runs.drop(columns="threads"), adapted)
    with pytest.raises(BadInputError, match="must be a number above 0"):
        answer(runs.assign(wall_seconds=[1.0, 2.0, np.nan, 1.0]), adapted)
