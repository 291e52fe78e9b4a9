"""ModelX's table: what a row says follows from the scores, and made-up transfers come out as they were made."""

import math

import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.shots import Shots
from perf_assets.features.tables.unpaired import transfer_table
from perf_assets.models.transfer.evaluation import TransferEvaluation, evaluate_transfer
from perf_assets.models.transfer.modelx_table import Dataset, ModelxTable, modelx_row, modelx_rows, modelx_table
from perf_assets.models.transfer.task import TransferTask
from tests.models.transfers import QUICK, machine, table


def evaluation(**errors: list[float]) -> TransferEvaluation:
    """Two seeds of squared log errors by method; MAPE is a tenth of them."""
    return TransferEvaluation(
        shots=10,
        seeds=[0, 1],
        scores={name: {"log_mse": found, "mape": [one / 10 for one in found]} for name, found in errors.items()},
        absent={},
        chosen=["target_only", "source_functions", "source_functions"],
        coverage=[0.8, 1.0],
        severity=[0.2, 0.3, 0.9],
        adapt_seconds=0.1,
        predict_seconds_per_row=0.001,
        products=[],
    )


FOUND = {
    "product": [0.3, 0.1], "source_zero_shot": [2.0, 2.0], "linear_probe": [0.7, 0.9], "fine_tune": [0.1, 1.9],
    "target_gp": [0.5, 0.5], "target_ridge": [0.1, 0.7], "oracle_100x": [0.1, 0.2], "oracle_all": [0.01, 0.01],
}  # fmt: skip


TIED = transfer_table(
    "tied",
    pd.DataFrame({"size": range(60), "ranks": [1, 2, 4, 8] * 15, "seconds": [1.0] * 54 + [2.0, 3.0, 5.0] * 2}),
    "seconds",
)


def test_a_row_says_what_the_scores_say() -> None:
    row = modelx_row(("a", "b"), "shared", "c", evaluation(**FOUND))
    assert (row.product, row.zero_shot, row.linear_probe, row.fine_tune) == pytest.approx((0.2, 2.0, 0.8, 1.0))
    # The best use of a source is the same for all seeds: linear probing, by its mean.
    assert row.improvement == pytest.approx(100 * (1 - 0.2 / 0.8))
    assert (row.target_best, row.target_best_method) == (pytest.approx(0.4), "target_ridge")
    assert row.ratio == pytest.approx(0.5)
    assert row.winner == "product"
    assert (row.oracle_100x, row.oracle_100x_spread) == pytest.approx((0.15, 0.1 / math.sqrt(2)))
    assert row.matches_oracle
    assert (row.mape, row.coverage_90, row.severity) == pytest.approx((0.02, 0.9, 0.3))
    assert row.chosen == "source_functions"
    assert row.to_dict()["sources"] == ["a", "b"]


def test_a_product_that_is_worse_has_a_negative_improvement_and_does_not_win() -> None:
    row = modelx_row(("a",), "shared", "c", evaluation(**FOUND | {"source_zero_shot": [0.1, 0.1]}))
    assert row.improvement == pytest.approx(-100)
    assert row.winner == "zero_shot"
    assert not modelx_row(("a",), "shared", "c", evaluation(**FOUND | {"oracle_100x": [0.1, 0.1]})).matches_oracle


def test_what_cannot_be_is_none_and_missing() -> None:
    few = {name: found for name, found in FOUND.items() if name not in ("source_zero_shot", "linear_probe")}
    row = modelx_row(("a",), "not shared", "c", evaluation(**few | {"fine_tune": [math.inf, 1.0]}))
    assert (row.zero_shot, row.linear_probe, row.fine_tune, row.improvement) == (None, None, None, None)
    frame = ModelxTable((row,)).to_frame()
    assert frame[["zero_shot", "linear_probe", "fine_tune", "improvement"]].isna().all(axis=None)
    assert frame["sources"].tolist() == ["a"]


def test_draws_whose_shots_are_all_alike_are_left_out() -> None:
    """Nine tenths of the rows have one value: four shots are often alike, and then say nothing."""
    said: list[str] = []
    found = evaluate_transfer(TransferTask.of([TIED], TIED), 4, 6, methods=(), progress=said.append)
    assert 0 < len(found.seeds) < 6
    assert len(found.scores["product"]["mape"]) == len(found.coverage) == len(found.chosen) == len(found.seeds)
    assert sum("is left out: its 4 shots all have the same value" in line for line in said) == 6 - len(found.seeds)


def test_rows_without_any_draw_that_says_something_are_left_out() -> None:
    """One draw is asked for, and its shots are alike."""
    said: list[str] = []
    assert modelx_rows([TIED], TIED, [4], 1, settings=QUICK, progress=said.append) == []
    assert said[-1] == "left out: tied: the 4 shots of each of 1 draws have the same value: give more shots"


@pytest.mark.slow
def test_a_slower_machine_is_off_by_its_level_until_shots_are_seen() -> None:
    slower = table("new", rows=120, seed=2, slowness=20.0)
    (row,) = modelx_rows([table("old", seed=1)], slower, [12], 1, settings=QUICK)
    assert row.features == "shared"
    assert row.zero_shot == pytest.approx(math.log(20) ** 2, rel=0.2)
    assert row.product < row.zero_shot / 20
    assert row.linear_probe is not None
    assert row.fine_tune is not None
    assert row.improvement == pytest.approx(100 * (1 - row.product / min(row.linear_probe, row.fine_tune)))
    assert row.winner != "zero_shot"


@pytest.mark.slow
def test_without_a_shared_feature_there_is_no_zero_shot() -> None:
    (row,) = modelx_rows([table("old", seed=1)], table("new", rows=60, seed=2, prefix="d"), [8], 1, settings=QUICK)
    assert (row.features, row.zero_shot) == ("not shared", None)
    assert row.linear_probe is not None


@pytest.mark.slow
def test_features_may_be_shared_in_part() -> None:
    frame = machine("new", rows=60, seed=2).rename(columns={"c3": "other"})
    (row,) = modelx_rows([table("old", seed=1)], transfer_table("new", frame, "seconds"), [8], 1, settings=QUICK)
    assert row.features == "partly shared"


def dataset(name: str, **settings: object) -> Dataset:
    return Dataset(name, machine(name, rows=40, **settings), "seconds")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("datasets", "shots", "targets", "message"),
    [
        ([dataset("a")], "5%", (), "at least two"),
        ([dataset("a"), dataset("b"), dataset("a")], "5%", (), "two datasets are called 'a'"),
        ([dataset("a"), dataset("b")], "5%", ("c",), "'c' is no dataset; there are a, b"),
        ([dataset("a"), dataset("b")], "3", (), "3 shots are too few"),
        ([dataset("a"), dataset("b")], "60%", (), "a: 24 shots are more than half of its 40 rows"),
        ([dataset("a"), Dataset("b", machine("b"), "nope")], "5%", (), "b: no column 'nope'"),
        (
            [dataset("a"), Dataset("b", pd.DataFrame({"seconds": [1.0, 2.0], "c": [1, 1]}), "seconds")],
            "5%",
            (),
            "b: no column beside seconds is left",
        ),
    ],
)
def test_wrong_input_is_said_before_anything_is_fitted(
    datasets: list[Dataset], shots: str, targets: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        modelx_table(datasets, [Shots.parse(shots)], targets=targets)


@pytest.mark.parametrize(("text", "count"), [("50", 50), ("5%", 10), ("1%", 8), ("0", 0), ("12.5%", 25)])
def test_shots_are_rows_or_a_share_of_them(text: str, count: int) -> None:
    assert Shots.parse(text).count(200) == count


@pytest.mark.parametrize("text", ["", "many", "1.5", "-1", "0%", "101%", "nan", "inf", "nan%", "%"])
def test_other_words_are_no_shots(text: str) -> None:
    with pytest.raises(BadInputError, match="give a number of rows or a share"):
        Shots.parse(text)
