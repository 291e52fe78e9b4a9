"""Methods by name, the blend, and scores: on a made-up fleet whose law is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import leave_one_application_out, leave_one_machine_out
from perf_assets.features.samples import PairedSamples
from perf_assets.infra.threads import thread_budget
from perf_assets.models.common import archive
from perf_assets.models.common.regressors import DOWNSTREAM, fit_regressor
from perf_assets.models.source.anchored_trees import AnchoredTrees
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.blend import HeldOutFold, choose_weights, fit_blend
from perf_assets.models.source.evaluation import evaluate_relative, mean_over_pairs
from perf_assets.models.source.methods import MethodFactory, best_components, default_methods
from perf_assets.models.source.mixture import ElsewhereSettings, KernelMixture, MachineMixture
from perf_assets.models.source.tree_features import Rates
from tests.models.fleets import SPEEDS, fleet


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    return fleet()


def with_data_sheets(samples: PairedSamples) -> PairedSamples:
    return replace(samples, specification=np.log(np.array([SPEEDS[name] for name in samples.machines])))


@pytest.mark.parametrize("name", DOWNSTREAM)
def test_downstream_models_learn_and_repeat(name: str) -> None:
    generator = np.random.default_rng(0)
    features = generator.standard_normal((400, 4))
    target = features[:, 0] * 2
    found = fit_regressor(name, features, target, 0, np.ones(400)).predict(features)
    assert np.corrcoef(found, target)[0, 1] > 0.9
    assert fit_regressor(name, features, target, 0, np.ones(400)).predict(features) == pytest.approx(found)


def test_unknown_downstream_models_are_refused() -> None:
    with pytest.raises(BadInputError, match="use one of xgboost"):
        fit_regressor("svm", np.zeros((2, 1)), np.zeros(2), 0)


@pytest.mark.parametrize(("model", "share"), [(BilinearModel, 0.5), (AnchoredTrees, 0.8)])
def test_machine_models_beat_the_mean_ratio(
    model: type[BilinearModel | AnchoredTrees], share: float, samples: PairedSamples
) -> None:
    fold = next(iter(leave_one_machine_out(samples)))
    true = samples.log_relative_time(fold.test)
    mean = MethodFactory().fit("benchmark_mean", fold.train, "machine").predict(samples, fold.test)
    found = model.fit(fold.train).predict(samples, fold.test)
    assert np.abs(found - true).mean() < share * np.abs(mean - true).mean()


@pytest.mark.slow
def test_every_default_method_predicts_something_finite(samples: PairedSamples) -> None:
    described = with_data_sheets(samples)
    names = default_methods(described, DOWNSTREAM)
    assert {"raw_xgboost", "onehot_xgboost", "spec_xgboost", "embedding_xgboost", "embedding_amm_xgboost"} <= {*names}
    assert {"raw_relative_amm_xgboost", "attention", "best", "raw_adaboost", "embedding_amm_bagging"} <= {*names}
    fold = next(iter(leave_one_machine_out(described)))
    factory = MethodFactory()
    for name in names:
        if name != "best":
            found = factory.fit(name, fold.train, fold.unseen).predict(described, fold.test)
            assert found.shape == (len(fold.test),), name
            assert np.isfinite(found).all(), name


def test_without_a_benchmark_only_baselines_are_left(samples: PairedSamples) -> None:
    bare = replace(samples, is_benchmark=np.zeros_like(samples.is_benchmark))
    assert default_methods(bare) == ["raw_xgboost", "onehot_xgboost", "embedding_xgboost", "best"]
    assert best_components(bare, "machine") == ["raw_xgboost", "onehot_xgboost", "unchanged", "typical"]
    assert best_components(bare, "application") == ["rates_xgboost", "pair_median", "typical"]
    names = best_components(bare, "application")
    blend = fit_blend(bare, "application", names, lambda name, data: MethodFactory().fit(name, data, "application"))
    assert [*blend.weights.values()] == pytest.approx([1 / 3] * 3)
    with pytest.raises(BadInputError, match="needs benchmark rows"):
        MethodFactory().fit("attention", bare, "machine")


@pytest.mark.parametrize("name", ["nonsense", "raw_svm", "spec_xgboost", ""])
def test_methods_that_cannot_be_are_refused(name: str, samples: PairedSamples) -> None:
    with pytest.raises(BadInputError, match=f"method {name}"):
        MethodFactory().fit(name, samples, "machine")


def test_weights_go_to_what_is_right() -> None:
    true = np.linspace(-1, 1, 50)
    near = np.zeros(50)
    weights, caution = choose_weights([HeldOutFold(np.stack([true + 0.5, true, -true]), true, near)], 3)
    assert weights == pytest.approx([0, 1, 0])
    assert caution == 0
    assert choose_weights([HeldOutFold(np.stack([true, true]), true, near)], 2)[0] == pytest.approx(
        [0.5, 0.5], abs=0.101
    )
    assert choose_weights([], 2)[0] == pytest.approx([0.5, 0.5])


def test_a_blend_steps_aside_for_a_plain_answer_that_it_does_not_beat_on_other_folds() -> None:
    """One component is right on one fold by chance: weights chosen with that fold fail on the others."""
    noise = np.random.default_rng(1).standard_normal((6, 40))
    folds = [
        HeldOutFold(np.stack([own + 3 * (-1) ** i, np.full(40, 0.1)]), own, np.zeros(40))
        for i, own in enumerate(0.1 * noise)
    ]
    assert choose_weights(folds, 2, plain=[1])[0].tolist() == [0, 1]
    useful = [HeldOutFold(np.stack([fold.true, np.full(40, 0.1)]), fold.true, np.zeros(40)) for fold in folds]
    assert choose_weights(useful, 2, plain=[1])[0].tolist() == [1, 0]


def test_caution_is_learned_where_machines_differ_much() -> None:
    true = np.random.default_rng(0).standard_normal(2000) * 0.5
    held_out = HeldOutFold(np.zeros((1, 2000)), true, np.ones(2000))
    assert choose_weights([held_out], 1)[1] == pytest.approx(0.2, abs=0.101)


def test_a_run_is_a_mixture_of_kernels(samples: PairedSamples) -> None:
    fold = next(iter(leave_one_machine_out(samples)))
    fitted = KernelMixture.fit(fold.train)
    wrong = np.abs(fitted.predict(samples, fold.test) - samples.log_relative_time(fold.test)).mean()
    mean = MethodFactory().fit("benchmark_mean", fold.train, "machine").predict(samples, fold.test)
    assert wrong < np.abs(mean - samples.log_relative_time(fold.test)).mean()


def test_rates_are_those_of_a_run_of_twice_the_length_and_need_counters(samples: PairedSamples, tmp_path: Path) -> None:
    examples = samples.examples()
    rates = Rates.fit(samples, 0)
    longer = replace(samples, counters=2 * samples.counters, log_seconds=samples.log_seconds + np.log(2))
    assert rates.columns(longer, examples) == pytest.approx(rates.columns(samples, examples))
    archive.write(tmp_path / "rates.npz", rates)
    again = archive.read(tmp_path / "rates.npz", Rates)
    assert np.array_equal(again.columns(samples, examples), rates.columns(samples, examples))
    arguments = replace(samples, counters=np.broadcast_to(samples.counters[:1], samples.counters.shape))
    with pytest.raises(BadInputError, match="rates_xgboost: needs counters"):
        MethodFactory().fit("rates_xgboost", arguments, "application")


def test_times_of_parts_add_up_and_no_part_is_negative(samples: PairedSamples) -> None:
    """A run that is the sum of two kernels is found on a new machine, though there are more kernels than machines."""
    fitted = KernelMixture.fit(samples.hide_machine(0), ElsewhereSettings(tried=(1e-4,)))
    stream, gemm = (samples.log_seconds[:, samples.apps == name][:, 5] for name in ("stream", "gemm"))
    both = np.logaddexp(stream, gemm)
    machines = np.arange(len(fitted.machines))
    known = both[[samples.machines.index(name) for name in fitted.machines]]
    assert fitted.expected(samples, 0, machines, known[None]) == pytest.approx(both[:1], abs=0.03)
    faster = known - 3.0
    assert fitted.expected(samples, 0, machines, faster[None]) == pytest.approx(both[:1] - 3.0, abs=0.03)
    slower_than_all_parts = known + np.array([0.0, 0.0, 0.0, 9.0])
    assert np.isfinite(fitted.expected(samples, 0, machines, slower_than_all_parts[None])).all()


def test_the_level_of_a_mixture_is_not_shrunk_by_a_strong_penalty(samples: PairedSamples) -> None:
    slower = samples.log_seconds.copy()
    slower[0] = slower[1] + 4.0
    shifted = replace(samples, log_seconds=slower)
    fitted = MachineMixture.fit(shifted.hide_machine(0))
    fitted = replace(fitted, setting=max(MachineMixture.DEFAULTS.tried))
    times = slower[1:2][:, ~samples.is_benchmark].T
    assert fitted.expected(shifted, 0, np.array([0]), times)[:, None] == pytest.approx(times + 4.0, abs=0.05)


def test_a_mixture_takes_one_of_the_penalties_that_it_is_given(samples: PairedSamples) -> None:
    known = samples.hide_machine(0)
    assert MachineMixture.fit(known, ElsewhereSettings(tried=(0.3,))).setting == 0.3
    assert MachineMixture.fit(known).setting in MachineMixture.DEFAULTS.tried


def test_a_new_machine_is_a_mixture_of_known_ones(samples: PairedSamples) -> None:
    fold = list(leave_one_machine_out(samples))[3]
    fitted = MachineMixture.fit(fold.train)
    weights, _ = fitted.weights(samples, 3, np.arange(4))
    assert weights.sum() == pytest.approx(1.0)
    error = np.abs(fitted.predict(samples, fold.test) - samples.log_relative_time(fold.test))
    assert error.mean() < 0.03
    assert fitted.weights(samples, 1, np.arange(4))[0] == pytest.approx([0, 1, 0, 0])
    unknown = fold.train.hide_application("fft")
    test = fold.test.where(samples.apps[fold.test.row] == "fft")
    imputed = MachineMixture.fit(unknown).predict(samples, test)
    assert np.abs(imputed - samples.log_relative_time(test)).mean() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("split", [leave_one_application_out, leave_one_machine_out])
def test_best_does_not_look_at_what_is_held_out(split: object, samples: PairedSamples) -> None:
    """Other times, and for a machine other counters too, of what is held out: the same predictions."""
    disturbed = samples.log_seconds.copy()
    fold = next(iter(split(samples)))  # type: ignore[operator]
    cells = np.isnan(fold.train.log_seconds)
    disturbed[cells] = np.random.default_rng(1).permutation(disturbed[cells]) + 3.0
    other = replace(samples, log_seconds=disturbed)
    again = next(iter(split(other)))  # type: ignore[operator]
    names = ["anchored_xgboost", "bilinear"]
    predictions = []
    for data, one in ((samples, fold), (other, again)):
        factory = MethodFactory()
        blend = fit_blend(one.train, one.unseen, names, lambda name, seen, w=factory: w.fit(name, seen, "machine"))
        predictions.append(blend.predict(data, one.test))
    assert predictions[0] == pytest.approx(predictions[1], abs=0)


@pytest.mark.slow
def test_no_method_looks_at_times_of_the_runs_it_predicts(samples: PairedSamples) -> None:
    fold = next(iter(leave_one_application_out(samples)))
    blind = replace(samples, log_seconds=np.where(samples.is_benchmark, samples.log_seconds, np.nan))
    factory = MethodFactory()
    for name in default_methods(samples):
        if name != "best":
            predictor = factory.fit(name, fold.train, fold.unseen)
            assert predictor.predict(blind, fold.test) == pytest.approx(predictor.predict(samples, fold.test)), name


def test_scores_stand_beside_each_other(samples: PairedSamples) -> None:
    said: list[str] = []
    found = evaluate_relative(samples, ["benchmark_mean", "bilinear"], ("lomo",), seeds=2, progress=said.append)
    scores = found["lomo"]
    assert scores["bilinear"]["mape"] < 0.1 < scores["benchmark_mean"]["mape"]  # type: ignore[operator]
    assert scores["benchmark_mean"]["mape_std"] == 0
    assert set(scores["bilinear"]) == {
        *("mape", "mape_std", "mape_median", "log_rmse", "within_10", "within_25", "mape_by_fold")
    }
    assert list(scores["bilinear"]["mape_by_fold"]) == list(samples.machines)  # type: ignore[call-overload]
    assert sum("models fitted" in line for line in said) == sum("bilinear" in line for line in said) == 10


@pytest.mark.slow
def test_pieces_that_folds_share_give_the_blend_that_is_fitted_fold_by_fold(samples: PairedSamples) -> None:
    samples = replace(samples, is_benchmark=np.zeros(len(samples.apps), bool))
    components = best_components(samples, "machine")
    found = evaluate_relative(samples, ["best"], ("lomo",))["lomo"]["best"]["mape_by_fold"]
    fold = next(iter(leave_one_machine_out(samples)))
    factory = MethodFactory()
    blend = fit_blend(fold.train, fold.unseen, components, lambda name, seen: factory.fit(name, seen, "machine"))
    expected = mean_over_pairs(samples, fold.test, blend.predict(samples, fold.test))["mape_ratio"]
    assert found[fold.held_out] == pytest.approx(expected)  # type: ignore[index]


def test_unknown_methods_are_found_before_anything_is_computed(samples: PairedSamples) -> None:
    with pytest.raises(BadInputError, match="method nope"):
        evaluate_relative(samples, ["bilinear", "nope"])


def test_the_thread_budget_comes_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERF_ASSETS_THREADS", raising=False)
    assert 1 <= thread_budget() <= 2
    monkeypatch.setenv("PERF_ASSETS_THREADS", "5")
    assert thread_budget() == 5
    monkeypatch.setenv("PERF_ASSETS_THREADS", "none")
    with pytest.raises(BadInputError, match="whole number"):
        thread_budget()
