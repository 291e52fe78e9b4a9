import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import PairedSamples
from perf_assets.models.source.training import TrainedSource
from perf_assets.registry.source import NAME, register_source
from perf_assets.registry.store import open_store
from perf_assets.registry.tables.source import SIGNATURE, example_questions
from perf_assets.registry.versions import load, promote, roll_back, versions

pytestmark = pytest.mark.xdist_group("source")  # one worker makes what they share


@pytest.mark.slow
def test_both_are_registered_with_all_that_belongs_to_them(
    fleet: PairedSamples, trained: TrainedSource, own_registry: Path
) -> None:
    for with_amm in (False, True):
        version = register_source(trained, fleet, {"manifests_digest": "abc"}, with_amm=with_amm)
        assert version.version not in versions(NAME).values(), "an alias moves once the model is known to be good"
        promote(NAME, version.version)
    assert versions(NAME) == {"without-amm": 1, "with-amm": 2}
    served = load(NAME, "with-amm")
    assert served.metadata.signature == SIGNATURE
    asked = example_questions(fleet, 5)
    asked.loc[0, "target_machine"] = "nowhere"
    found = served.predict(asked)
    assert found["model"].tolist() == ["without-amm", *["with-amm"] * 4]
    assert found["note"].iloc[0].startswith("no AMM of nowhere")
    assert (found["predicted_seconds"] / asked["wall_seconds"]).tolist() == pytest.approx(
        found["relative_time"].tolist()
    )
    without = load(NAME, "without-amm").predict(asked)
    assert set(without["model"]) == {"without-amm"}
    client = open_store()
    version = client.get_model_version_by_alias(NAME, "with-amm")
    run = client.get_run(version.run_id)
    assert run.data.tags["manifests_digest"] == "abc"
    assert any("raw_xgboost" in name for name in run.data.metrics)
    assert "cross_validation.csv" in {file.path for file in client.list_artifacts(version.run_id)}
    _answers_in_a_fresh_process(own_registry, asked, found)


def _answers_in_a_fresh_process(store: Path, asked: pd.DataFrame, found: pd.DataFrame) -> None:
    asked.to_parquet(store / "asked.parquet")
    script = (
        "import pandas, mlflow; mlflow.set_tracking_uri('sqlite:///mlflow/mlflow.db');"
        "served = mlflow.pyfunc.load_model('models:/perf-source@with-amm');"
        "served.predict(pandas.read_parquet('asked.parquet')).to_parquet('found.parquet')"
    )
    subprocess.run([sys.executable, "-c", script], cwd=store, check=True, capture_output=True)
    pd.testing.assert_frame_equal(pd.read_parquet(store / "found.parquet"), found, check_exact=False, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("own_registry")
def test_an_alias_moves_to_the_new_version(fleet: PairedSamples, trained: TrainedSource) -> None:
    for _ in range(2):
        promote(NAME, register_source(trained, fleet, {}, with_amm=True).version)
    assert versions(NAME) == {"with-amm": 2}
    assert roll_back(NAME, "with-amm") == (1, 2)
    assert versions(NAME) == {"with-amm": 1}


@pytest.mark.slow
@pytest.mark.usefixtures("own_registry")
def test_what_is_not_registered_is_said() -> None:
    assert versions(NAME) == {}
    with pytest.raises(BadInputError, match=r"no model perf-source@with-amm .*train one"):
        load(NAME, "with-amm")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [({"wall_seconds": 0.0}, "must be a number above 0")],
)
def test_wrong_questions_are_refused(
    change: dict[str, float], reason: str, fleet: PairedSamples, trained: TrainedSource
) -> None:
    from perf_assets.registry.tables.source import answer

    with pytest.raises(BadInputError, match=reason):
        answer(example_questions(fleet).assign(**change), trained.model)
    with pytest.raises(BadInputError, match="lack the column ranks"):
        answer(example_questions(fleet).drop(columns="ranks"), trained.model)
