"""A model travels: its code and what it needs come with it, and every page of the registry is read."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
import venv
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
from tests.installation import wait_for

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
def own_store(own_registry: Path) -> MlflowClient:
    return open_store()


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.skipif(
    "PERF_ASSETS_INSTALL" not in os.environ,
    reason="it installs 2 GB: set PERF_ASSETS_INSTALL=1",
)
@pytest.mark.timeout(1200)
def test_mlflow_serves_a_model_in_a_virtual_environment(
    fleet: PairedSamples, own_store: MlflowClient, tmp_path: Path
) -> None:
    """Its requirements are installed from the index as they stand; perf_assets is not there but with the model."""
    adapted = adapt(fleet, "elm", refitted_priors(fleet, 0, PRIOR_COMPONENTS), 0, lambda line: None)
    version = register_target(adapted, load_catalogue().resolve([], None), {}, {})
    folder = fitted_folder(version.name, version.version).parents[1]
    place = tmp_path / "environment"
    venv.create(place, with_pip=True)
    wanted = ["-r", str(folder / "requirements.txt")]
    subprocess.run([place / "bin" / "pip", "install", "-q", *wanted], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    found = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "MLFLOW_DISABLE_TELEMETRY": "true"}
    command = ["mlflow", "models", "serve", "-m", str(folder), "--env-manager", "local", "-p", port]
    server = subprocess.Popen(
        [str(place / "bin" / command[0]), *command[1:]], env=found, cwd=tmp_path, start_new_session=True
    )
    try:
        wait_for(lambda: _answers(f"http://127.0.0.1:{port}/ping"), "the model", 120)
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations",
            (folder / "serving_input_example.json").read_bytes(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            predictions = json.load(answer)["predictions"]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
    assert predictions
    assert all(row["predicted_seconds"] > 0 for row in predictions)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_all_pages_of_the_registry_are_read(own_store: MlflowClient) -> None:
    for number in range(5):
        own_store.create_registered_model(f"m{number}")
    found = [model.name for model in all_pages(own_store.search_registered_models, page_size=2)]
    assert found == [f"m{number}" for number in range(5)]
