"""Relative-performance vectors on a made-up fleet whose law is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from perf_assets.core.errors import BadInputError
from perf_assets.features.tables.paired import Roles
from perf_assets.features.vectors import (
    VectorSamples,
    by_application,
    by_sample,
    centred,
    check_reference,
    relative,
    vector_table,
)
from perf_assets.models.vectors import blend as vector_blend
from perf_assets.models.vectors.blend import choose_weights, clearness, shrunk_weights
from perf_assets.models.vectors.evaluation import evaluate_vectors, majority_order
from perf_assets.models.vectors.methods import Majority, MeanVector, fit_method
from perf_assets.models.vectors.model import Runs, VectorModel, train_vector
from perf_assets.models.vectors.scores import Held, area_under, doubt_scores, roc, same_orders, vector_scores
from perf_assets.models.vectors.vae_dnn import SigmaVae, VaeDnn, soft_clip
from tests.models.vectors.conftest import SETTINGS, SMALL


def test_a_sample_is_a_run_with_its_own_time_and_the_numbers_of_its_key(samples: VectorSamples) -> None:
    assert samples.machines == ("a", "b", "c", "d", "e")
    assert samples.feature_names == ("bytes", "flops", "size", "seconds")
    assert len(samples) == 5 * 6 * 9 - 1
    own = samples.targets[np.arange(len(samples)), samples.source]
    seen = np.isfinite(own)
    assert np.log(samples.features[seen, -1]) == pytest.approx(own[seen])


def test_no_configuration_is_on_both_sides_of_a_split(samples: VectorSamples) -> None:
    for fold in (*by_sample(samples, 3), *by_application(samples)):
        assert not (fold.train & fold.test).any()
        train, test = samples.at(fold.train), samples.at(fold.test)
        assert not set(train.configurations) & set(test.configurations)
        assert np.isfinite(train.paired.log_seconds).sum() == len(train)
    assert by_application(samples).__next__().held_out == "dense"
    assert next(by_sample(samples, 0)).test.mean() == pytest.approx(0.2, abs=0.02)


def test_references(samples: VectorSamples) -> None:
    logs = np.log([[1.0, 2.0, np.nan], [4.0, 2.0, 8.0]])
    names = ("x", "y", "z")
    assert relative(logs, "max", names)[1] == pytest.approx([0.5, 0.25, 1.0])
    assert relative(logs, "min", names)[0][:2] == pytest.approx([1.0, 2.0])
    assert relative(logs, "y", names)[1] == pytest.approx([2.0, 1.0, 4.0])
    with pytest.raises(BadInputError, match=r"min .fastest., max .slowest. or one of x, y, z"):
        check_reference("w", names)


def test_the_level_of_a_configuration_does_not_depend_on_where_it_ran() -> None:
    logs = np.add.outer(np.arange(6.0), np.array([0.0, 1.0, 3.0]))
    logs[0, 2] = logs[4, 0] = np.nan
    found = centred(logs)
    assert np.nanstd(found, axis=0) == pytest.approx(0.0, abs=1e-6)


def test_what_is_missing_does_not_enter_the_likelihood() -> None:
    torch.manual_seed(0)
    vae = SigmaVae(3, 2, 2, 8)
    values, machine = torch.randn(4, 3), torch.zeros(4, 2)
    measured = torch.tensor([[1.0, 1.0, 0.0]] * 4)
    torch.manual_seed(1)
    whole, _ = vae.loss(values * measured, measured, machine, 0.0)
    vae.decoder[-1].bias.data[2] += 5.0  # type: ignore[operator,union-attr,index]
    torch.manual_seed(1)
    changed, _ = vae.loss(values * measured, measured, machine, 0.0)
    assert float(whole.detach()) == pytest.approx(float(changed.detach()))
    assert float(soft_clip(torch.tensor(-50.0), -6.0)) == pytest.approx(-6.0, abs=1e-6)
    assert float(soft_clip(torch.tensor(2.0), -6.0)) == pytest.approx(2.0, abs=1e-3)


@pytest.mark.slow
def test_the_net_learns_the_law_and_survives_storing(samples: VectorSamples, tmp_path: Path) -> None:
    fold = next(by_sample(samples, 0))
    train, test = samples.at(fold.train), samples.at(fold.test)
    net = VaeDnn.fit(train, SMALL)
    found = net.predict(test)
    error = np.nanmean((centred(test.log_seconds)[test.row] - found) ** 2)
    assert error < 0.05 * np.nanvar(centred(test.log_seconds))
    net.save(tmp_path)
    assert VaeDnn.load(tmp_path).predict(test) == pytest.approx(found, abs=1e-5)
    assert VaeDnn.fit(train, SMALL).predict(test) == pytest.approx(found)


@pytest.mark.parametrize("name", ["random_forest", "xgboost", "pairwise", "majority", "mean"])
def test_methods_survive_storing(samples: VectorSamples, name: str, tmp_path: Path) -> None:
    fitted = fit_method(name, samples, 0, SETTINGS)
    fitted.save(tmp_path)
    assert type(fitted).load(tmp_path).predict(samples) == pytest.approx(fitted.predict(samples), abs=1e-4)


def test_the_majority_is_the_most_frequent_order() -> None:
    times = np.log([[1.0, 2.0, 3.0], [1.0, 2.5, 3.0], [3.0, 2.0, 1.0]])
    majority = Majority(centred(times))
    everywhere, on_two = majority.typical(np.array([[True, True, True], [False, True, True]]))
    assert np.argsort(everywhere).tolist() == [0, 1, 2]
    assert on_two[1] < on_two[2]


def test_scores_of_a_perfect_and_of_a_constant_answer() -> None:
    logs = np.log([[1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [1.0, 4.0, np.nan]])
    constant = np.zeros((3, 3)) + np.array([0.0, 1.0, 2.0])
    holds = same_orders(constant, logs)
    assert holds.tolist() == [True, False, True]
    perfect = vector_scores(
        Held(logs, np.nan_to_num(logs), np.nan_to_num(logs), constant, holds), "max", ("x", "y", "z")
    )
    assert (perfect["r2"], perfect["mape"], perfect["same_order"], perfect["top1"], perfect["regret"]) == (
        1,
        0,
        1,
        1,
        0,
    )
    assert perfect["auc"] == 1.0
    poor = vector_scores(Held(logs, constant, constant, constant, holds), "max", ("x", "y", "z"))
    assert poor["same_order"] == poor["top1"] == pytest.approx(2 / 3)
    assert poor["regret"] == pytest.approx(1.0)
    assert poor["auc"] == pytest.approx(0.5)
    nowhere = logs[2:]
    assert np.isnan(vector_scores(Held(nowhere, nowhere, nowhere, nowhere, holds[2:]), "z", ("x", "y", "z"))["r2"])
    assert np.isnan(area_under(*roc(np.array([1.0, 2.0]), np.array([True, True]))))


def test_doubts_are_compared_with_what_happened() -> None:
    true = np.log([[1.0, 2.0, 4.0], [1.0, 2.0, np.nan]])
    said = np.log([[1.0, 2.1, 4.0], [1.0, 3.0, 9.0]])
    held = Held(true, said, said, said, same_orders(said, true))
    machines = ("x", "y", "z")
    found = doubt_scores(held, np.full((2, 3), 0.1), np.array([0.5, 0.7]), "x", machines)
    assert found["coverage"] == pytest.approx(4 / 5), "3 instead of 2 is outside; what did not run does not count"
    assert found["stated_order"] == pytest.approx(0.6)
    on_z = doubt_scores(held, np.full((2, 3), 0.1), np.array([0.5, 0.7]), "z", machines)
    assert on_z == {"coverage": 1.0, "stated_order": 0.5}, "only what ran on the reference"


def test_weights_go_to_what_is_right() -> None:
    true = np.random.default_rng(0).normal(size=(60, 4))
    noise = np.random.default_rng(1).normal(size=(60, 4))
    loss = lambda mixed, wanted: float(np.sum((mixed - wanted + wanted.mean(axis=1, keepdims=True)) ** 2))  # noqa: E731
    assert choose_weights({"good": true + 0.01 * noise, "bad": noise}, true, loss) == {"good": 1.0}


def test_a_blend_for_new_applications_goes_to_the_mean_vector_where_others_ask_for_it() -> None:
    generator = np.random.default_rng(0)
    apps = np.repeat(["a", "b", "c", "d"], 20)
    mean = np.broadcast_to([0.0, 1.0, 2.0], (80, 3))
    departure = np.repeat(0.3 * generator.normal(size=(4, 3)), 20, axis=0)
    true, wrong = mean + departure, mean - departure
    assert shrunk_weights({"net": wrong, "trees": wrong, "mean": mean}, true, apps) == {"mean": 1.0}
    right = shrunk_weights({"net": true, "trees": true, "mean": mean}, true, apps)
    assert right == {"net": 0.5, "trees": 0.5}
    twice = mean + 2 * departure
    half = shrunk_weights({"net": twice, "trees": twice, "mean": mean}, true, apps)
    assert half == {"mean": 0.5, "net": 0.25, "trees": 0.25}


def test_the_mean_vector_counts_applications_the_same() -> None:
    runs = {"app": ["often"] * 9 + ["once"], "size": [float(i) for i in range(10)]}
    seconds = {"fast": [1.0] * 9 + [4.0], "slow": [2.0] * 9 + [1.0]}
    tables = {name: pd.DataFrame({**runs, "bytes": runs["size"], "seconds": seconds[name]}) for name in seconds}
    samples = vector_table(tables, Roles(("app", "size"), "app", "seconds"))
    levels = MeanVector.fit(samples).predict(samples)
    assert levels.shape == (len(samples), 2)
    assert levels[0, 1] - levels[0, 0] == pytest.approx((np.log(2) - np.log(4)) / 2)


def test_the_clearness_of_an_order_is_its_smallest_step() -> None:
    ranked, spread = np.array([[0.0, 3.0, 1.0]]), np.full((3, 3), 0.5)
    assert clearness(ranked, np.array([[True, True, True]]), spread) == pytest.approx([2.0])
    assert clearness(ranked, np.array([[True, True, False]]), spread) == pytest.approx([6.0])


@pytest.mark.slow
def test_all_methods_are_scored_on_the_same_rows(samples: VectorSamples) -> None:
    found = evaluate_vectors(samples, "max", 1, SETTINGS, ("random_forest", "majority", "best"), ("sample",))
    assert set(found.scores) == {"sample"}
    best, majority = found.scores["sample"]["best"], found.scores["sample"]["majority"]
    assert float(best["r2"]) > 0.9 > float(majority["r2"])  # type: ignore[arg-type]
    assert float(best["same_order"]) > float(majority["same_order"])  # type: ignore[arg-type]
    counts = found.rows.groupby("method").size()
    assert counts.nunique() == 1
    assert found.rows.loc[found.rows["method"] == "best", "order_probability"].between(0, 1).all()
    order, share = majority_order(samples)
    assert sorted(order) == list(samples.machines)
    assert 0 < share < 1
    with pytest.raises(BadInputError, match="guess"):
        evaluate_vectors(samples, "max", 1, SETTINGS, ("guess",))


@pytest.mark.slow
def test_the_model_answers_with_intervals_and_a_ranking(samples: VectorSamples, tmp_path: Path) -> None:
    trained = train_vector(samples, "max", 0, SETTINGS)
    trained.model.save(tmp_path / "model")
    model = VectorModel.load(tmp_path / "model")
    known = samples.where(np.arange(0, len(samples), 20))
    counters = samples.paired.counters[known.source, known.row]
    apps = known.apps[known.row].tolist()
    sources = np.array(samples.machines)[known.source].tolist()
    runs = Runs(sources, apps, np.ones(len(known), bool), known.features, counters)
    found = model.predict(runs)
    assert found.log_time.max(axis=1) == pytest.approx(0.0)
    assert ((found.lower <= found.log_time) & (found.log_time <= found.upper)).all()
    true = np.log(relative(known.targets, "max", samples.machines))
    inside = (found.lower <= true) & (true <= found.upper)
    assert inside[np.isfinite(true)].mean() > 0.8
    assert np.sort(found.places, axis=1)[0].tolist() == [0, 1, 2, 3, 4]
    assert set(found.reasons) == {""}
    new = model.predict(replace(runs, apps=["never seen"] * len(known)), "c")
    assert all(reason.startswith("the application is new") for reason in new.reasons)
    assert new.log_time[:, 2] == pytest.approx(0.0)
    assert np.exp(new.upper - new.lower).mean() > np.exp(found.upper - found.lower).mean()


class _Says:
    """A method with one answer."""

    def __init__(self, answer: list[float]) -> None:
        self.answer = np.array(answer)

    def predict(self, samples: VectorSamples) -> np.ndarray:
        return np.tile(self.answer, (len(samples), 1))

    def save(self, folder: Path) -> None:
        raise NotImplementedError


def test_programs_on_hosts_that_none_ran_on_are_left_to_models_of_pairs(samples: VectorSamples) -> None:
    nets, pairs = _Says([2.0, 1.0, 0.0, -1.0, -2.0]), _Says([-2.0, -1.0, 0.0, 1.0, 2.0])
    nothing = vector_blend.HeldOutVectors(*(np.zeros((1, 5)) for _ in range(3)))
    seen = vector_blend.seen_by(samples)
    assert seen == set(samples.machines)
    for known, expected in ((seen, nets), (seen - {"c"}, pairs)):
        blend = vector_blend.VectorBlend(
            {"vae_dnn": nets, "pairwise": pairs}, {"vae_dnn": 1.0}, {"vae_dnn": 1.0}, nothing, known
        )
        assert blend.predict(samples)[0] == pytest.approx(expected.answer)
        ran = np.ones((len(samples), 5), bool)
        assert np.argsort(blend.rank(samples, ran).places[0]).tolist() == np.argsort(expected.answer).tolist()
