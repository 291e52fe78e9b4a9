"""A model travels: its code and what it needs come with it, and every page of the registry is read."""

import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from perf_assets.core.catalogue import load_catalogue
from perf_assets.features.samples import PairedSamples
from perf_assets.models.target.model import PRIOR_COMPONENTS, adapt
from perf_assets.models.target.prior import refitted_priors
from perf_assets.registry.store import open_store
from perf_assets.registry.tables.target import example_questions
from perf_assets.registry.target import register_target
from perf_assets.registry.versions import all_pages, fitted_folder

_ALONE = """
import sys
sys.path[:] = [place for place in sys.path if place != {project!r}]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
try:
    import perf_assets
except ModuleNotFoundError:
    pass
else:
    sys.exit("perf_assets is installed: " + str(perf_assets.__path__))
import mlflow, pandas as pd
model = mlflow.pyfunc.load_model({model!r})
print(model.predict(pd.read_json({questions!r}, orient="split"))["predicted_seconds"].notna().all())
import perf_assets
print(list(perf_assets.__path__)[0])
"""


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MlflowClient:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return open_store()


def test_a_model_answers_where_perf_assets_is_not_installed(
    fleet: PairedSamples, own_store: MlflowClient, tmp_path: Path
) -> None:
    adapted = adapt(fleet, "elm", refitted_priors(fleet, 0, PRIOR_COMPONENTS), 0, lambda line: None)
    version = register_target(adapted, load_catalogue().resolve([], None), {}, {})
    folder = fitted_folder(version.name, version.version).parents[1]
    needed = (folder / "requirements.txt").read_text().split()
    assert all("==" in line and "+" not in line and not line.startswith("perf_assets") for line in needed)
    assert {line.partition("==")[0] for line in needed} >= {"mlflow", "torch", "scikit-learn", "xgboost-cpu"}
    questions = tmp_path / "questions.json"
    example_questions(adapted, 2).to_json(questions, orient="split")
    project = str(Path(__file__).resolve().parents[2])
    code = _ALONE.format(project=project, model=str(folder), questions=str(questions))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    answered, place = done.stdout.split()
    assert answered == "True"
    assert Path(place).is_relative_to(folder / "code")
    assert {path.name for path in Path(place).iterdir()}.isdisjoint({"cli", "defs", "demo", "serving"})


def test_all_pages_of_the_registry_are_read(own_store: MlflowClient) -> None:
    for number in range(5):
        own_store.create_registered_model(f"m{number}")
    found = [model.name for model in all_pages(own_store.search_registered_models, page_size=2)]
    assert found == [f"m{number}" for number in range(5)]
