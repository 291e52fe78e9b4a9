"""The xAMM experiments on a made-up fleet."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.tables.models import XAMM_EMBEDDINGS, XAMM_SCORES
from perf_assets.features.samples import Examples, PairedSamples
from perf_assets.models.source import experiments
from perf_assets.models.source.evaluation import scenario_of, scenario_scores
from perf_assets.models.source.methods import MethodFactory, check_method, default_methods
from perf_assets.models.source.tree_features import OTHER_AMM_OPTIONS, PublishedAmm
from tests.models.fleets import fleet

pytestmark = pytest.mark.slow

FEW = {
    "loao": {
        "raw_vs_embedding_vs_amm": ("raw_xgboost", "raw_bagging"),
        "embeddings": ("raw_xgboost", "embedding_ae_xgboost"),
        "machine_descriptions": ("raw_xgboost", "onehot_xgboost", "spec_xgboost", "benchmark_mean"),
    },
    "lomo": {"machine_descriptions": ("raw_xgboost", "benchmark_mean", "mixture")},
}
"""None that takes long."""


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    """Machine e is a's host, so a has GPUs."""
    return replace(fleet(rows=6), machines=("a", "b", "c", "d", "a (host)"))


@pytest.fixture(scope="module")
def scores(samples: PairedSamples) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_THREADS", "1")
        lines: list[str] = []
        found = experiments.run_experiments(samples, 2, lines.append, experiments=FEW)
        # Two pieces for the dear methods are left out where none of them is asked for.
        assert len(lines) == 2 * (4 + 4)
        assert "lomo without a, seed 1" in "\n".join(lines)
    return found


def test_scores_are_rows_of_the_table(scores: pd.DataFrame) -> None:
    wanted = set(XAMM_SCORES.column_names()) - {"is_simulated"}
    assert set(scores.columns) == wanted
    assert not scores.duplicated(list(XAMM_SCORES.key)).any()
    assert np.isfinite(scores.select_dtypes("number")).all(axis=None)
    assert set(scores["held_out"]) == {"solver", "fft", "molecules", "dense", "a", "b", "c", "d"}


def test_every_method_of_an_experiment_is_scored_on_the_same_rows(scores: pd.DataFrame) -> None:
    places = ["experiment", "protocol", "held_out", "scenario"]
    assert (scores.groupby(places)["examples_count"].nunique() == 1).all()
    for (experiment, protocol), found in scores.groupby(["experiment", "protocol"]):
        # There are no specifications, so methods with them are left out.
        methods = [name for name in FEW[str(protocol)][str(experiment)] if not name.startswith("spec")]
        assert list(dict.fromkeys(found["method"])) == methods
        assert (found.groupby("method").size() == len(found) / len(methods)).all()


def test_a_method_has_the_same_score_in_all_experiments(scores: pd.DataFrame) -> None:
    keys = ["protocol", "method", "scenario", "held_out", "seed"]
    assert (scores.groupby(keys)["mape_ratio"].nunique() == 1).all()


def test_machine_descriptions_help_on_this_fleet(scores: pd.DataFrame) -> None:
    lomo = scores[(scores["protocol"] == "lomo") & (scores["scenario"] == "all")]
    means = lomo.groupby("method")["mape_ratio"].mean()
    assert means["mixture"] < means["raw_xgboost"]


def test_scenarios_say_from_which_kind_to_which(samples: PairedSamples) -> None:
    examples = Examples(np.array([0, 1, 1, 4]), np.array([1, 0, 2, 0]), np.array([0, 0, 0, 0]))
    assert scenario_of(samples, examples).tolist() == ["GPU->CPU", "CPU->GPU", "CPU->CPU", "CPU->GPU"]


def test_scores_are_means_over_pairs(samples: PairedSamples) -> None:
    rows = np.flatnonzero(~samples.is_benchmark)[:4]
    examples = Examples(np.array([1, 1, 1, 2]), np.array([2, 2, 2, 3]), rows)
    # Three runs of the first pair are 10% too large, the only one of the second twice as large.
    predicted = samples.log_relative_time(examples) + np.log([1.1, 1.1, 1.1, 2.0])
    score = next(found for found in scenario_scores(samples, examples, predicted) if found["scenario"] == "all")
    assert score["mape_ratio"] == pytest.approx((0.1 + 1.0) / 2)
    assert score["median_ape_ratio"] == pytest.approx(0.1)
    assert score["within_25_ratio"] == pytest.approx(0.5)
    assert score["log_rmse"] == pytest.approx((np.log(1.1) + np.log(2.0)) / 2)
    assert score["examples_count"] == 4


def test_the_real_experiments_name_known_methods(samples: PairedSamples) -> None:
    described = replace(samples, specification=np.ones((5, 2)))
    for by_experiment in experiments.EXPERIMENTS.values():
        for name in {name for names in by_experiment.values() for name in names}:
            check_method(name, described)
    assert not {"embedding_vae_xgboost", "raw_amm_none_xgboost"} & set(default_methods(described))


def test_dear_methods_are_done_once_with_all_folds(samples: PairedSamples) -> None:
    planned = list(experiments._plan(samples, 3, experiments.EXPERIMENTS))
    with_best = [work for work in planned if "best" in work.methods]
    assert [(work.protocol, work.seed, len(work.folds)) for work in with_best] == [("lomo", 0, 4), ("loao", 0, 4)]
    attention = [(w.protocol, w.seed, fold) for w in planned if "attention" in w.methods for fold in w.folds]
    assert len(attention) == len(set(attention)) == 3 * (4 + 4)


def test_other_amm_options_share_the_encoder(samples: PairedSamples) -> None:
    factory = MethodFactory()
    plain = factory._part("published_amm", samples)
    other = factory._part("published_amm_fleet_max", samples)
    assert isinstance(plain, PublishedAmm)
    assert isinstance(other, PublishedAmm)
    assert other.encoder.embedding is plain.encoder.embedding
    assert other.encoder.options == OTHER_AMM_OPTIONS["fleet_max"]
    assert other.encoder.machine_models(samples)[samples.encoder_machines].max() == pytest.approx(0.0)


def test_pictures_have_a_point_for_every_run(samples: PairedSamples) -> None:
    found = experiments.embedding_pictures(samples, 0, kinds=("raw", "ae"))
    assert set(found.columns) == set(XAMM_EMBEDDINGS.column_names()) - {"is_simulated"}
    assert not found.duplicated(list(XAMM_EMBEDDINGS.key)).any()
    assert len(found) == 2 * np.isfinite(samples.log_seconds[:, ~samples.is_benchmark]).sum()
    assert np.isfinite(found[["x", "y"]]).all(axis=None)
