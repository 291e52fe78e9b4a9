"""Assets of the experiments with given scores, and the command that writes their page again."""

import json
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pandas as pd
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.addresses import noted_addresses
from perf_assets.core.errors import BadInputError
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.sources import evaluation
from perf_assets.storage.checkpoints import Checkpoints
from perf_assets.storage.lake import Lake
from tests.defs.reads import check_edges, recorded_reads
from tests.reports.tables import embeddings, scores

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("evaluated"))


@pytest.fixture(scope="module")
def results(lake: Lake) -> dg.ExecuteInProcessResult:
    """Materialise all three; what takes long is given."""
    seeds: list[int] = []

    def given_scores(
        samples: object, count: int, progress: object, kept: Checkpoints, experiments: object
    ) -> pd.DataFrame:
        kept.put("a fold", [{"mape_ratio": 0.1}])
        seeds.append(count)
        return scores().drop(columns="is_simulated")

    def given_pictures(samples: object, seed: int, progress: object, kinds: object) -> pd.DataFrame:
        return embeddings().drop(columns="is_simulated")

    resource = LakeResource(root=str(lake.root))
    resource.warehouse().rebuild()
    assets = [evaluation.eval_xamm__scores, evaluation.eval_xamm__embeddings, evaluation.eval_xamm__report]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perf_assets.features.fleet.samples.fleet_samples", lambda tables: SimpleNamespace(digest="d"))
        patch.setattr("perf_assets.models.source.experiments.run_experiments", given_scores)
        patch.setattr("perf_assets.models.source.experiments.embedding_pictures", given_pictures)
        with recorded_reads() as reads:
            done = dg.materialize(assets, resources={"lake": resource})
        check_edges(reads, "experiments")
    assert done.success
    assert seeds == [3]
    assert not list((lake.root / "unfinished").glob("*"))
    return done


def metadata_of(done: dg.ExecuteInProcessResult, asset: str) -> dict[str, object]:
    found = list(done.asset_materializations_for_node(asset))
    return {name: value.value for name, value in found[0].metadata.items()}


def test_scores_are_stored_and_shown(results: dg.ExecuteInProcessResult, lake: Lake) -> None:
    warehouse = LakeResource(root=str(lake.root)).warehouse()
    metadata = metadata_of(results, "eval_xamm__scores")
    assert metadata["dagster/row_count"] == len(scores())
    assert "raw counters (`raw_xgboost`)" in str(metadata["mape machine_descriptions lomo"])
    stored = warehouse.frame("SELECT * FROM eval_xamm__scores")
    assert len(stored) == len(scores())
    # Nothing simulated has landed in this lake.
    assert not stored["is_simulated"].any()
    assert len(warehouse.frame("SELECT * FROM eval_xamm__embeddings")) == len(embeddings())


def test_the_page_is_written_and_linked(results: dg.ExecuteInProcessResult, lake: Lake) -> None:
    metadata = metadata_of(results, "eval_xamm__report")
    assert metadata["page"] == str(lake.reports / "xamm.html")
    assert metadata["open"] == noted_addresses().report("xamm.html")
    assert metadata["data"] == "measured machines"
    assert str(metadata["unseen_machine"]).startswith("![MAPE")
    assert "xAMM experiments" in (lake.reports / "xamm.html").read_text()


def test_the_command_writes_the_page_again(
    results: dg.ExecuteInProcessResult, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(lake.root))
    (lake.reports / "xamm.html").unlink()
    done = CliRunner().invoke(cli, ["report", "xamm"], catch_exceptions=False)
    assert done.stdout.strip() == str(lake.reports / "xamm.html")
    assert (lake.reports / "xamm.html").is_file()
    document = json.loads(CliRunner().invoke(cli, ["report", "xamm", "--json"]).stdout)
    assert document["scores_count"] == len(scores())


def test_without_scores_the_command_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    done = CliRunner().invoke(cli, ["report", "xamm"])
    assert isinstance(done.exception, BadInputError)
    assert "eval_xamm__scores" in str(done.exception)
