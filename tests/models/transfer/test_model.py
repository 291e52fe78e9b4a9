"""The product: better than what it is compared with, and the same after storing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats
from perf_assets.features.tables.unpaired import TransferTable, encoded_rows, transfer_table
from perf_assets.models.common.averaged_gp import SOURCE_FUNCTIONS
from perf_assets.models.transfer.alignment_table import alignment_tables
from perf_assets.models.transfer.baselines import TARGET_CHOICE, supervised, target_baselines
from perf_assets.models.transfer.evaluation import ZERO_SHOT, evaluate_transfer
from perf_assets.models.transfer.model import TransferAverage, fit_product
from perf_assets.models.transfer.source_functions import SmoothFunction
from perf_assets.models.transfer.task import TransferTask
from tests.models.transfers import QUICK, machine, table


@pytest.fixture(scope="module")
def task() -> TransferTask:
    return TransferTask.of([table("s", seed=1)], table("t", seed=2, slowness=20.0), settings=QUICK)


@pytest.fixture(scope="module")
def alien() -> TransferTask:
    """A target that shares no name with its source."""
    return TransferTask.of([table("s", seed=1)], table("t", seed=2, slowness=20.0, prefix="x"), settings=QUICK)


SHOTS = np.random.default_rng(0).permutation(240)[:12]
REST = np.setdiff1d(np.arange(240), SHOTS)
MANY = np.random.default_rng(0).permutation(240)[:40]


def nested(seed: int, level: float) -> pd.DataFrame:
    """A table in which nearly all that there is to know is in a word."""
    generator = np.random.default_rng(seed)
    nesting = generator.choice(["DGZ", "DZG", "GDZ", "ZGD"], 200)
    size = generator.integers(1, 9, 200)
    effect = pd.Series(nesting).map({"DGZ": 0.0, "DZG": 1.5, "GDZ": 0.4, "ZGD": -0.8}).to_numpy()
    return pd.DataFrame({"nesting": nesting, "size": size, "seconds": np.exp(level + effect + 0.1 * size)})


def squared_error(predicted: Floats, true: Floats) -> float:
    return float(np.mean((predicted - true) ** 2))


@pytest.mark.slow
def test_transfer_beats_the_shots_alone(task: TransferTask) -> None:
    found = evaluate_transfer(task, 10, 2, methods=ZERO_SHOT)
    assert found.ratio() < 0.5
    assert found.target_best is not None
    assert len(found.coverage) == 2
    assert found.chosen == [SOURCE_FUNCTIONS] * 2
    assert {row["name"] for row in found.candidates} == {"target_only", "source_metric", "source_functions"}


@pytest.mark.slow
def test_every_method_is_scored_on_the_same_rows(task: TransferTask) -> None:
    found = evaluate_transfer(task, 24, 1)
    expected = {"product", "source_zero_shot", "linear_probe", "fine_tune", "ma", "oracle_100x", "oracle_all"}
    expected |= {f"target_{name}" for name in ("mean", "ridge", "gp", "knn", "extra_trees")}
    assert set(found.scores) >= expected
    assert not set(found.scores) & set(found.absent)
    errors = {name: scores["log_mse"][0] for name, scores in found.scores.items()}
    assert errors["oracle_all"] < 0.2 * errors["target_mean"]


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(4, 8), pytest.param((50,), marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("kind", ["noise", "permuted", "level", "sign", "unrelated"])
def test_useless_sources_cost_at_most_five_percent(kind: str, counts: tuple[int, ...]) -> None:
    """Mean over draws, relative to the choice that never sees a source; nobody says what is wrong with the source."""
    frame = machine("s", rows=160, seed=1)
    generator = np.random.default_rng(5)
    frame["seconds"] = {
        "noise": np.exp(generator.normal(size=160)),
        "permuted": generator.permutation(frame["seconds"]),
        "level": 10 * frame["seconds"],
        "sign": 1 / frame["seconds"],
        "unrelated": frame["c0"] ** 0.3,
    }[kind]
    if kind == "unrelated":
        # It knows itself, and shares no name with the target: all that is left is an alignment.
        frame = frame.rename(columns={f"c{i}": f"x{i}" for i in range(12)})
    target = table("t", seed=2)
    task = TransferTask.of([transfer_table("s", frame, "seconds")], target, settings=QUICK)
    for shots in counts:
        ours, alone = [], []
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(240)
            few, test = order[:shots], order[120:]
            ours.append(squared_error(fit_product(task, few, seed).predict_rows(test), target.target[test]))
            only = target_baselines(target)[TARGET_CHOICE](few, seed)
            alone.append(squared_error(only(test), target.target[test]))
        assert np.mean(ours) <= 1.05 * np.mean(alone), shots


@pytest.mark.slow
def test_several_sources_keep_their_own_level(task: TransferTask) -> None:
    tables = [table("a", seed=1), table("b", seed=3, slowness=500.0), table("n", prefix="x")]
    several = TransferTask.of(tables, task.target, settings=QUICK)
    assert [source.name for source in several.sources] == ["a+b", "n"]
    assert [group.functions[0].source for group in several.groups] == ["a"]
    assert {one.source for one in several.groups[0].functions} == {"a", "b"}
    product = fit_product(several, SHOTS)
    true = task.target.target[REST]
    assert squared_error(product.predict_rows(REST), true) < 0.05 * np.var(true)
    aligned = several.fit_alignment("matched", SHOTS)
    assert [part.source for part in aligned.parts] == [several.sources[0].net]
    assert aligned.weights.sum() == pytest.approx(1)


def test_a_source_that_does_not_know_itself_is_left_out() -> None:
    frame = machine("s", seed=1)
    frame["seconds"] = np.exp(np.random.default_rng(5).normal(size=len(frame)))
    task = TransferTask.of([transfer_table("s", frame, "seconds")], table("t", seed=2))
    assert task.groups == ()
    assert task.expected.shape == (240, 0)
    assert {one.name for one in fit_product(task, SHOTS).candidates} == {"target_only"}


@pytest.mark.parametrize("name", ["task", "alien"])
def test_the_model_is_the_same_after_storing(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    task: TransferTask = request.getfixturevalue(name)
    product = fit_product(task, MANY)
    assert product.model is not None
    product.model.save(tmp_path)
    again = TransferAverage.load(tmp_path)
    counters = task.target.counters
    assert again.predict(counters) == pytest.approx(product.model.predict(counters), abs=1e-6)
    assert again.predict(counters) == pytest.approx(product.predict_rows(np.arange(240)), abs=1e-6)
    assert again.grounds["candidates"][0]["error"] <= again.grounds["candidates"][-1]["error"]
    assert again.interval == product.interval
    assert again.counter_names == task.target.counter_names
    assert (again.features.aligned is None) == (name == "task")


def test_names_are_not_needed_with_enough_shots(alien: TransferTask) -> None:
    assert not any(alien.same)
    assert alien.groups == ()
    assert alien.start_kind == "transport"
    few, many = fit_product(alien, SHOTS), fit_product(alien, MANY)
    assert {one.name for one in few.candidates} == {"target_only"}
    assert {one.name for one in many.candidates} == {"target_only", "alignment"}
    rest = np.setdiff1d(np.arange(240), MANY)
    assert squared_error(many.predict_rows(rest), alien.target.target[rest]) < 0.1 * np.var(alien.target.target)


def test_words_are_features() -> None:
    """A level that the model has never seen is no error."""
    target = transfer_table("t", nested(2, 3.0), "seconds")
    task = TransferTask.of([transfer_table("s", nested(1, 0.0), "seconds")], target)
    assert "nesting=DZG" in task.same[0]
    product = fit_product(task, np.arange(8))
    rest = np.arange(8, 200)
    assert squared_error(product.predict_rows(rest), target.target[rest]) < 0.02
    assert product.model is not None
    asked = pd.DataFrame({"nesting": ["DZG", "never seen"], "size": [3, 3]})
    found = product.model.predict(encoded_rows(asked, product.model.counter_names, product.model.level_columns))
    assert found[0] == pytest.approx(3.0 + 1.5 + 0.3, abs=0.2)
    assert np.isfinite(found).all()


@pytest.mark.slow
def test_supervised_is_the_best_of_its_kinds(task: TransferTask) -> None:
    rows = np.arange(160)
    true = task.target.target[160:]
    found = squared_error(supervised(task.target, rows, 0)(np.arange(160, 240)), true)
    assert found < 0.05 * np.var(true)


def test_functions_know_their_own_error(task: TransferTask) -> None:
    (group,) = task.groups
    assert [type(one.model) is SmoothFunction for one in group.functions] == [True, False]
    assert all(one.error < 0.5 * np.var(task.sources[0].rows.target) for one in group.functions)


def test_too_few_shots_are_refused(task: TransferTask) -> None:
    with pytest.raises(BadInputError, match="at least 4"):
        fit_product(task, SHOTS[:3])
    with pytest.raises(BadInputError, match="more than half"):
        evaluate_transfer(task, 200, 1)
    with pytest.raises(BadInputError, match="at least one source"):
        TransferTask.of([], task.target)


def test_shots_of_one_value_are_refused_and_alike_ones_are_known_to_say_little(task: TransferTask) -> None:
    flat = replace(task.target, target=np.where(np.isin(np.arange(240), SHOTS), 1.0, task.target.target))
    with pytest.raises(BadInputError, match=r"^t: all 12 shots have the same value: .* give more of them$"):
        fit_product(replace(task, target=flat), SHOTS)
    counters = task.target.counters.copy()
    counters[SHOTS] = counters[0]
    alike = replace(task.target, counters=counters)
    product = fit_product(replace(task, target=alike), SHOTS)
    assert product.interval.coverage(product.predict_rows(REST), alike.target[REST]) > 0.85


def test_words_are_in_the_alignment_table() -> None:
    tables = [transfer_table(name, nested(seed, level), "seconds") for name, seed, level in (("s", 1, 0), ("t", 2, 3))]
    (found,) = alignment_tables(TransferTask.of(tables[:1], tables[1], settings=QUICK), np.arange(40))
    by_name = {row.source_counter: row.target_counter for row in found.rows}
    assert by_name["nesting=DZG"] == "nesting=DZG"


def test_fifty_shots_of_two_hundred_counters_are_enough() -> None:
    generator = np.random.default_rng(0)

    def wide(name: str, level: float) -> TransferTable:
        hidden = generator.normal(size=(120, 5))
        counters = np.exp(hidden @ np.random.default_rng(1).normal(size=(5, 200)) + 10)
        frame = pd.DataFrame(counters, columns=[f"c{i}" for i in range(200)])
        return transfer_table(name, frame.assign(seconds=np.exp(level + hidden[:, 0] + 0.5 * hidden[:, 1])), "seconds")

    task = TransferTask.of([wide("s", 0.0)], wide("t", 2.0))
    assert task.groups
    product = fit_product(task, np.arange(50))
    rest = np.arange(50, 120)
    assert squared_error(product.predict_rows(rest), task.target.target[rest]) < 0.1


def test_the_alignment_can_be_read(task: TransferTask) -> None:
    (found,) = alignment_tables(task, SHOTS)
    assert found.weights.shape == (12, 12)
    right = [row for row in found.rows if row.source_counter == row.target_counter]
    assert len(right) >= 9
    assert all(row.stability > 0.5 for row in right)
    assert found.rows[0].importance >= found.rows[-1].importance


@pytest.mark.slow
def test_gpus_gain_from_another_family(shared_data: Path) -> None:
    drop = ("(?i)cycle|throughput|utilization|ipc|activity", "^(Unnamed: 0|AppId|Device|Context|Stream|Kernel)$")
    files = {gpu: shared_data / "nvprof_gpus" / f"{gpu}.csv" for gpu in ("TitanBlack", "GTX-680")}
    frames = {gpu: pd.read_csv(file, low_memory=False) for gpu, file in files.items()}
    tables = [transfer_table(gpu, frame, "Duration", drop=drop) for gpu, frame in frames.items()]
    found = evaluate_transfer(TransferTask.of(tables[:1], tables[1]), 10, 4, methods=ZERO_SHOT)
    assert found.ratio() < 0.6
