"""Frames to counters and target."""

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.standardise import signed_log
from perf_assets.features.tables.unpaired import (
    encoded_rows,
    kind_notes,
    same_counters,
    scaled_rows,
    shot_scaler,
    standardised_logs,
    transfer_table,
    varies,
)


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "cycles": [1.0, 2.0, 3.0, 4.0],
            "loads": [5.0, np.nan, 7.0, 8.0],
            "constant": [1.0] * 4,
            "host": ["a", "b", "c", "d"],
            "time": [1.0, 2.0, np.nan, -1.0],
        }
    )


def test_counters_are_numeric_columns_that_vary() -> None:
    table = transfer_table("t", frame(), "time", is_log=False)
    assert table.counter_names == ("cycles", "loads")
    assert len(table) == 3
    assert np.isnan(table.counters[1, 1])
    assert any("host" in note for note in table.notes)
    assert any("constant" in note for note in table.notes)


def test_a_log_target_must_be_positive() -> None:
    table = transfer_table("t", frame(), "time", drop=["^loads$"])
    assert table.counter_names == ("cycles",)
    assert table.target == pytest.approx(np.log([1.0, 2.0]))
    assert table.rows.tolist() == [True, True, False, False]
    assert any("2 rows without a positive value" in note for note in table.notes)


@pytest.mark.parametrize(
    ("column", "message"), [("nope", "no column 'nope'"), ("host", "holds text"), ("cycles", "is left that varies")]
)
def test_wrong_tables_are_one_clear_line(column: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        transfer_table("t", frame(), column, drop=["loads", "time"])


def test_words_in_one_table_and_numbers_in_the_other_are_told() -> None:
    words = pd.DataFrame({"solver": ["cg", "gmres"] * 6, "size": range(12), "time": range(1, 13)})
    first, second = transfer_table("old", words, "time"), transfer_table("new", words.assign(solver=range(12)), "time")
    assert same_counters(first.counter_names, second.counter_names) == {"size": "size"}
    line = "1 columns hold words in old and numbers in new and are not matched: solver"
    assert kind_notes(first, second) == kind_notes(second, first) == [line]
    assert kind_notes(first, first) == []


def test_same_counters_by_name_then_case_then_catalogue() -> None:
    source = ["PAPI_TOT_INS", "Loads", "other"]
    target = ["perf::INSTRUCTIONS", "loads", "other"]
    assert same_counters(source, target) == {"loads": "Loads", "other": "other"}
    assert same_counters(source, target, load_catalogue())["perf::INSTRUCTIONS"] == "PAPI_TOT_INS"


def test_what_the_shots_say_nothing_about_is_ignored() -> None:
    shots = np.array([[1.0, 5.0], [100.0, 5.0], [10.0, np.nan]])
    scaler = shot_scaler(shots)
    assert varies(scaler).tolist() == [True, False]
    asked = standardised_logs(scaler, signed_log(np.array([[np.nan, 1e9], [1e30, 2.0]])))
    assert asked.shape == (2, 1)
    assert asked[0, 0] == 0.0
    assert asked[1, 0] == 6.0
    assert scaled_rows(shots).mean(axis=0) == pytest.approx([0.0])


def test_words_with_few_levels_are_indicators() -> None:
    words = ["spread", "packed", None, "packed", "spread", "packed", "spread"]
    table = transfer_table("t", pd.DataFrame({"placement": words, "run": list("abcdefg"), "s": range(1, 8)}), "s")
    assert table.counter_names == ("placement=packed", "placement=spread")
    assert table.counters[:, 0].tolist()[:2] == [0.0, 1.0]
    assert np.isnan(table.counters[2]).all()
    assert table.is_level.all()
    assert any("run" in note and "ids" in note for note in table.notes)
    asked = pd.DataFrame({"placement": ["spread", "random"]})
    assert encoded_rows(asked, table.counter_names, table.level_columns).tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert np.isnan(encoded_rows(asked[[]], table.counter_names, table.level_columns)).all()


def test_numbers_with_some_text_are_numbers() -> None:
    cells = [*map(str, range(20)), "?"]
    table = transfer_table("t", pd.DataFrame({"age": cells, "s": np.arange(1, 22)}), "s")
    assert table.counter_names == ("age",)
    assert np.isnan(table.counters[-1, 0])
    assert any("count as missing" in note for note in table.notes)


def test_levels_are_equally_far_apart_however_rare() -> None:
    shots = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    rows = standardised_logs(shot_scaler(shots, np.array([True, True])), signed_log(shots))
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(2.0)


def test_a_target_of_one_value_is_refused() -> None:
    with pytest.raises(BadInputError, match="nothing to predict"):
        transfer_table("t", pd.DataFrame({"a": [1.0, 2.0], "s": [3.0, 3.0]}), "s")
