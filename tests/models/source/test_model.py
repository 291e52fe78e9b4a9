from pathlib import Path
from typing import cast

import numpy as np
import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.features.samples import Examples, PairedSamples
from perf_assets.models.amm.encoder import AmmOptions, fit_encoder
from perf_assets.models.common import archive
from perf_assets.models.common.questions import Questions
from perf_assets.models.source.amm_options import train_encoder
from perf_assets.models.source.attention import AttentionSettings
from perf_assets.models.source.methods import MethodFactory
from perf_assets.models.source.model import SourceModel
from perf_assets.models.source.settings import SourceSettings
from perf_assets.models.source.stored import StoredPredictor
from perf_assets.models.source.training import TrainedSource, behaves_like, feature_masks
from perf_assets.models.source.tree_features import fit_embedding
from perf_assets.workflows.machines.describe import described_rows
from tests.features.fleet_tables import APPS, KERNELS, fleet_tables

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("source")]


def questions(fleet: PairedSamples, examples: Examples) -> Questions:
    return Questions(
        [fleet.machines[i] for i in examples.source],
        [fleet.machines[i] for i in examples.target],
        fleet.apps[examples.row].tolist(),
        [fleet.configurations[i] for i in examples.row],
        fleet.counters[examples.source, examples.row],
        fleet.log_seconds[examples.source, examples.row],
    )


@pytest.mark.parametrize(
    "name",
    [
        "raw_amm_bagging",
        "onehot_xgboost",
        "spec_xgboost",
        "embedding_xgboost",
        "raw_relative_amm_adaboost",
        "attention",
        "bilinear",
        "mixture",
        "anchored_spec_xgboost",
    ],
)
def test_every_method_survives_storage(name: str, fleet: PairedSamples, tmp_path: Path) -> None:
    factory = MethodFactory(0, attention=AttentionSettings(steps=5, members=1))
    fitted = factory.fit(name, fleet.hide_machine(2), "machine")
    cast(StoredPredictor, fitted).save(tmp_path)
    again = archive.read(tmp_path / archive.Stored.FILE, StoredPredictor)
    examples = fleet.examples()
    assert again.predict(fleet, examples) == pytest.approx(fitted.predict(fleet, examples), abs=1e-5)
    with pytest.raises(UnreadableFileError):
        archive.read(tmp_path / "nowhere", StoredPredictor)


def test_known_machines_are_answered_well_and_the_same_after_storage(
    fleet: PairedSamples, trained: TrainedSource, tmp_path: Path
) -> None:
    examples = fleet.examples().at_most(200, 0)
    asked = questions(fleet, examples)
    found = trained.model.predict(asked)
    assert found.with_amm.all()
    assert np.median(np.abs(found.log_relative_time - fleet.log_relative_time(examples))) < 0.15
    trained.model.save(tmp_path)
    again = SourceModel.load(tmp_path).predict(asked)
    assert again.log_relative_time == pytest.approx(found.log_relative_time, abs=1e-5)


def test_a_machine_without_amm_is_answered_without(fleet: PairedSamples, trained: TrainedSource) -> None:
    asked = questions(fleet, fleet.examples().at_most(4, 0))
    unknown = Questions(asked.sources, ["nowhere", *asked.targets[1:]], *list(vars(asked).values())[2:])
    found = trained.model.predict(unknown)
    assert found.with_amm.tolist() == [False, True, True, True]
    assert np.isfinite(found.log_relative_time).all()


def test_baselines_stand_beside_what_was_chosen(trained: TrainedSource) -> None:
    for unseen in ("application", "machine"):
        methods = set(trained.scores.loc[trained.scores["unseen"] == unseen, "method"])
        assert {"raw_xgboost", "onehot_xgboost", "spec_xgboost", "benchmark_mean", "raw_amm_xgboost"} <= methods
    by_method = trained.scores.groupby("method")["log_rmse"].mean()
    assert by_method[trained.chosen_without_amm] == by_method[["raw_xgboost", "raw_random_forest"]].min()
    weights = trained.scores.groupby("unseen")["blend_weight"].sum()
    assert weights.to_numpy() == pytest.approx([1.0, 1.0])


def test_a_new_machine_gets_its_amm_from_its_benchmark_alone(fleet: PairedSamples) -> None:
    tables = fleet_tables()
    encoder = fit_encoder(fleet.hide_machine(fleet.machines.index("cedar")), AmmOptions("l2"), embedding="raw")
    assert "cedar" not in encoder.machines
    cedar, elm = tables.of(["cedar"]), tables.of(["elm"])
    alone = described_rows(encoder, cedar.kernels, cedar.specs)
    assert not alone["was_in_training"].any()
    within = encoder.machine_models(fleet)[fleet.machines.index("cedar")]
    assert alone.loc[alone["is_chosen"], "value"].to_numpy() == pytest.approx(within, abs=1e-6)
    assert set(described_rows(encoder, elm.kernels, elm.specs)["seen_as"]) == {"elm", "elm (host)"}


def test_the_amm_options_are_those_with_the_smallest_error(fleet: PairedSamples) -> None:
    trained = train_encoder(fleet, 0, lambda line: None)
    options, tried = trained.encoder.options, trained.tried
    assert len(tried) == 12
    best = tried.iloc[0]
    assert (options.weighting, options.normalize) == (best["weighting"], best["normalize"])
    assert tried["log_rmse"].is_monotonic_increasing


def test_without_a_choice_the_amm_options_are_the_papers(fleet: PairedSamples) -> None:
    trained = train_encoder(fleet, 0, lambda line: None, chooses_options=False)
    assert trained.tried.empty
    assert trained.encoder.options == AmmOptions()
    assert set(trained.without) == set(fleet.physical_machines[fleet.training_machines])


def test_explanations_are_shares(fleet: PairedSamples, trained: TrainedSource) -> None:
    likeness = behaves_like(fleet, trained.model, SourceSettings.quick())
    assert set(likeness["kernel"]) == set(KERNELS)
    assert likeness.groupby(["machine", "app"])["attention_ratio"].sum().to_numpy() == pytest.approx(1.0, abs=1e-4)
    masks = feature_masks(fleet, fit_embedding(fleet, 0))
    assert set(masks["app"]) == set(APPS)
    assert masks.groupby("app")["attention_ratio"].sum().to_numpy() == pytest.approx(1.0, abs=1e-4)
