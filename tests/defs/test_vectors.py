"""From landed files of a small simulated fleet to the registered vector model and its scores, through the assets."""

from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster._core.storage.defs_state.base import set_defs_state_storage

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.vectors import ALL_APPS, VECTOR_GROWTH, VECTOR_SCORES
from perf_assets.defs.vectors.assets import VECTOR
from perf_assets.demo.fleet import fleet_bundles
from perf_assets.models.vectors import blend as vector_blend
from perf_assets.models.vectors import evaluation as vector_evaluation
from perf_assets.models.vectors.vae_dnn import VaeDnn, VaeDnnSettings
from perf_assets.registry.versions import load
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.results import stored
from tests.defs.test_training import metadata, run

FLEET = ("lassen", "quartz", "ruby")
SMALL = VaeDnnSettings(8, 16, 16, 1, 2, 2, 3, 3)
FEW = ("vae_dnn", "random_forest")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_landed_files_to_vectors(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with pytest.MonkeyPatch.context() as patch, dg.instance_for_test() as instance:
        patch.setenv("PERF_ASSETS_LAKE", str(lake.root))
        patch.setenv("PERF_ASSETS_THREADS", "1")
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setattr(VaeDnn.__init__, "__defaults__", (SMALL, 0))
        patch.setattr(vector_blend, "COMPONENTS", FEW)
        usual = vector_evaluation.evaluate_vectors.__defaults__
        assert usual is not None
        fewer = (1, (*FEW, "majority", "best"), ("sample",), *usual[3:])
        patch.setattr(vector_evaluation.evaluate_vectors, "__defaults__", fewer)
        for bundle in fleet_bundles(0.12, 0, list(FLEET)):
            land(lake, bundle.facts, bundle.name, bundle.write)
        instance.add_dynamic_partitions("machines", list(FLEET))
        run(instance, lake, "ingest_machine", FLEET)
        run(instance, lake, "train_vector_job")
        run(instance, lake, "score_vectors_job")
        shown = metadata(instance, VECTOR)
        assert shown["mlflow_uri"] == "models:/perf-relative-vector/1"
        assert shown["is_simulated"] == "true"
        served = load("perf-relative-vector", "champion")
        assert set(served.predict(served.input_example)["machine"]) == set(FLEET)
        a_machine_joins(instance, lake)
    scores = stored(lake, VECTOR_SCORES, "")
    assert set(scores["protocol"]) == {"sample"}
    assert set(scores["method"]) == {*FEW, "majority", "best"}
    assert (scores["app"] == ALL_APPS).sum() == 4
    assert scores["is_simulated"].all()
    assert set(stored(lake, VECTOR_GROWTH, "")["method"]) == {"head", "constant", "from_nothing", "retrained"}
    assert (lake.reports / "vectors.html").read_text().count("<figure>") == 5


def a_machine_joins(instance: dg.DagsterInstance, lake: Lake) -> None:
    for bundle in fleet_bundles(0.12, 0, ["dane"]):
        land(lake, bundle.facts, bundle.name, bundle.write)
    instance.add_dynamic_partitions("machines", ["dane"])
    run(instance, lake, "ingest_machine", ("dane",))
    # Runs leave Dagster with state storage of an instance that may be gone by now.
    with set_defs_state_storage(None):
        done = CliRunner().invoke(cli, ["vectors", "--add", "dane"])
    assert done.exit_code == 0, done.output
    assert done.stdout == "models:/perf-relative-vector@champion  (version 2)\n"
    shown = metadata(instance, VECTOR)
    assert shown["mlflow_uri"] == "models:/perf-relative-vector/2"
    shots = shown["shots_count"]
    assert isinstance(shots, int)
    assert shots >= 3
    assert str(shown["weights_of_known_machines"]).count("ruby") == 2
    served = load("perf-relative-vector", "champion")
    answers = served.predict(served.input_example, params={"relative_to": "dane"})
    assert set(answers["machine"]) == {*FLEET, "dane"}
    assert (answers.loc[answers["machine"] == "dane", "relative_time"] == 1.0).all()
    with pytest.raises(BadInputError, match="runs on 'dane' are not known to this model, only those on lassen, quartz"):
        served.predict(served.input_example.assign(source_machine="dane"))


def test_options_of_training_do_not_go_with_a_machine_that_joins() -> None:
    for option in (["--seed", "1"], ["--evaluate", "1"], ["--relative-to", "min"]):
        done = CliRunner().invoke(cli, ["vectors", "--add", "dane", *option])
        assert isinstance(done.exception, BadInputError)
        assert "--add takes the model in use as it is" in str(done.exception)


def test_a_machine_that_is_not_there_does_not_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    for machine in ("", "nowhere"):
        done = CliRunner().invoke(cli, ["vectors", "--add", machine])
        assert isinstance(done.exception, BadInputError)
