"""The encoder of machines in the registry: `perf-amm`."""

from pathlib import Path

import pandas as pd
import pytest

from perf_assets.models.source.amm_options import TrainedEncoder
from perf_assets.registry.amm import NAME, SIGNATURE, load_encoder, register_encoder, vectors
from perf_assets.registry.store import open_store
from perf_assets.registry.versions import CHAMPION, load, tags_of, versions
from perf_assets.reports.machine.card import encoder_card
from tests.described import quick_encoder
from tests.features.fleet_tables import fleet_tables


def test_the_encoder_is_registered_with_all_that_belongs_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    tables = fleet_tables()
    tried = pd.DataFrame([{"weighting": "mean", "normalize": "own_max", "log_rmse": 0.25}])
    trained = TrainedEncoder(quick_encoder(tables).encoder, {}, tried)
    made_of = {"manifests_digest": "abc", "is_simulated": "true"}
    card = encoder_card("mean own_max", trained.encoder.machines, trained.encoder.version, tried, made_of)
    early = tables.kernels[tables.kernels["machine"] != "cedar"]
    assert register_encoder(trained, early, made_of, {"model_card.md": card.encode()}).version == 1
    assert versions(NAME) == {CHAMPION: 1}
    assert tags_of(NAME, 1)["encoder_version"] == trained.encoder.version
    served = load(NAME, CHAMPION)
    assert served.metadata.signature == SIGNATURE
    assert set(served.predict(served.input_example)["seen_as"]) == {"ash"}
    late = tables.kernels[tables.kernels["machine"] == "cedar"].drop(columns=["bytes_per_rep", "flops_per_rep"])
    pd.testing.assert_frame_equal(served.predict(late), vectors(late, trained.encoder))
    client = open_store()
    run = client.get_run(client.get_model_version(NAME, "1").run_id)
    assert run.data.metrics["mean own_max log_rmse"] == 0.25
    written = Path(client.download_artifacts(run.info.run_id, "model_card.md")).read_text()
    for words in ("measurements are simulated", trained.encoder.version, "manifests_digest: abc", "own_max"):
        assert words in written
    assert register_encoder(trained, early, made_of, {}).version == 1, "the same encoder is used again"
    assert load_encoder()[1].encoder.version == trained.encoder.version
