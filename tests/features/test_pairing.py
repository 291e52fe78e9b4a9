"""Plain tables to aligned samples: what is kept, what is left out, and that it is said."""

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.folds import leave_one_application_out, leave_one_machine_out
from perf_assets.features.samples import balanced_weights
from perf_assets.features.standardise import Scaler, fit_scaler, signed_log
from perf_assets.features.tables.paired import Roles, pair_tables, with_specification

ROLES = Roles(("app", "n"), "app", "t")


def table(times: dict[tuple[str, int], float], clock: float = 1.0, **more: list[object]) -> pd.DataFrame:
    rows = [{"app": app, "n": n, "t": t, "work": 10.0 * n, "clock": clock} for (app, n), t in times.items()]
    return pd.DataFrame(rows).assign(**more)


def test_rows_are_paired_on_the_key() -> None:
    first = table({("x", 1): 1.0, ("x", 2): 2.0, ("y", 1): 4.0})
    second = table({("y", 1): 8.0, ("x", 1): 3.0, ("z", 1): 1.0})
    samples = pair_tables({"a": first, "b": second}, ROLES)
    assert samples.configurations == ("x 1", "y 1")
    examples = samples.examples()
    assert [*zip(examples.source, examples.target, examples.row, strict=True)] == [
        (0, 1, 0),
        (0, 1, 1),
        (1, 0, 0),
        (1, 0, 1),
    ]
    assert np.exp(samples.log_relative_time(examples)) == pytest.approx([3.0, 2.0, 1 / 3, 0.5])
    assert "2 configurations ran on one machine only and are left out" in samples.notes


def test_a_repeated_key_counts_once_and_is_told() -> None:
    first = pd.concat([table({("x", 1): 1.0, ("x", 2): 2.0}), table({("x", 1): 9.0})])
    samples = pair_tables({"a": first, "b": table({("x", 1): 1.0, ("x", 2): 1.0})}, ROLES)
    assert samples.log_seconds[0, 0] == 0.0
    assert "a: 1 rows repeat a key; the first row of each is used" in samples.notes


def test_keys_are_equal_whatever_number_type_they_have() -> None:
    second = table({("x", 1): 1.0, ("x", 2): 1.0}).astype({"n": float})
    assert pair_tables({"a": table({("x", 1): 1.0, ("x", 2): 1.0}), "b": second}, ROLES).configurations == (
        "x 1",
        "x 2",
    )


def test_what_does_not_vary_within_a_machine_is_no_counter() -> None:
    keys = {("x", 1): 1.0, ("x", 2): 2.0}
    first = table(keys, clock=1.0, note=["fast", "slow"], only_here=[1, 2])
    samples = pair_tables({"a": first, "b": table(keys, clock=2.0, note=["q", "r"])}, ROLES)
    assert samples.counter_names == ("work",)
    assert any("clock" in note and "do not vary" in note for note in samples.notes)
    assert any("note" in note and "hold text" in note for note in samples.notes)
    assert any("not on all machines" in note for note in samples.notes)


def test_columns_are_dropped_as_asked() -> None:
    keys = {("x", 1): 1.0, ("x", 2): 2.0}
    more = {"cycles_sm": [5, 6], "bytes": [7, 9]}
    roles = Roles(("app", "n"), "app", "t", drop=("^cycles",))
    samples = pair_tables({"a": table(keys, **more), "b": table(keys, **more)}, roles)
    assert samples.counter_names == ("work", "bytes")


def test_benchmarks_must_have_run_everywhere() -> None:
    full = {("bench", 1): 1.0, ("bench", 2): 1.0, ("x", 1): 1.0}
    part = {("bench", 1): 1.0, ("x", 1): 1.0}
    samples = pair_tables(
        {"a": table(full), "b": table(full), "c": table(part)}, Roles(("app", "n"), "app", "t", ("bench",))
    )
    assert samples.apps.tolist() == ["bench", "x"]
    assert any("1 benchmark configurations" in note for note in samples.notes)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (Roles(("nope",), "app", "t"), "no column nope"),
        (Roles(("app", "n"), "app", "app"), "holds text"),
        (Roles(("n",), "app", "t"), "does not tell applications apart"),
        (Roles(("app", "n"), "app", "t", ("nope",)), "benchmark application nope"),
        (Roles(("app", "n"), "app", "t", drop=(".",)), "nothing to learn from"),
    ],
)
def test_wrong_roles_are_refused(roles: Roles, message: str) -> None:
    keys = {("x", 1): 1.0, ("x", 2): 2.0, ("y", 1): 1.0}
    with pytest.raises(BadInputError, match=message):
        pair_tables({"a": table(keys), "b": table(keys)}, roles)


def test_specifications_are_rows_of_machines() -> None:
    keys = {("x", 1): 1.0, ("x", 2): 2.0}
    samples = pair_tables({"a": table(keys), "b": table(keys)}, ROLES)
    spec = pd.DataFrame({"machine": ["b", "a"], "cores": [8, 2], "same": [1, 1], "name": ["q", "r"]})
    found = with_specification(samples, spec, "machine").specification
    assert found is not None
    assert found[:, 0] == pytest.approx(np.log([3, 9]))
    assert found.shape == (2, 1)
    with pytest.raises(BadInputError, match="no row for a"):
        with_specification(samples, spec[:1], "machine")


def fleet_of_three() -> dict[str, pd.DataFrame]:
    keys = {(app, n): 1.0 + n for app in ("bench", "x", "y") for n in (1, 2, 3)}
    return {name: table(keys) for name in "abc"}


def test_an_application_held_out_cannot_be_seen_in_training() -> None:
    samples = pair_tables(fleet_of_three(), Roles(("app", "n"), "app", "t", ("bench",)))
    folds = list(leave_one_application_out(samples))
    assert [fold.held_out for fold in folds] == ["x", "y"]
    for fold in folds:
        held_out = samples.apps == fold.held_out
        assert set(samples.apps[fold.test.row]) == {fold.held_out}
        assert np.isnan(fold.train.log_seconds[:, held_out]).all()
        assert np.isnan(fold.train.counters[:, held_out]).all()
        assert not held_out[fold.train.examples(with_benchmark=True).row].any()
        assert len(fold.test) == 3 * 2 * 3


def test_a_machine_held_out_shows_its_benchmark_only_and_is_in_no_pair() -> None:
    samples = pair_tables(fleet_of_three(), Roles(("app", "n"), "app", "t", ("bench",)))
    for machine, fold in enumerate(leave_one_machine_out(samples)):
        assert set(fold.test.target) == {machine}
        assert machine not in fold.test.source
        assert (np.isfinite(fold.train.log_seconds[machine]) == samples.is_benchmark).all()
        seen = fold.train.examples(with_benchmark=True)
        assert machine not in seen.source
        assert machine not in seen.target


def test_a_choice_is_made_on_some_of_many_examples() -> None:
    samples = pair_tables(fleet_of_three(), Roles(("app", "n"), "app", "t", ("bench",)))
    fold = next(iter(leave_one_application_out(samples)))
    assert fold.some_of_test() is fold.test
    every, some = (
        set(zip(found.source.tolist(), found.target.tolist(), found.row.tolist(), strict=True))
        for found in (fold.test, fold.some_of_test(7))
    )
    assert len(some) == 7
    assert some < every


def test_too_little_to_hold_out_is_said() -> None:
    keys = {("x", 1): 1.0, ("x", 2): 2.0}
    samples = pair_tables({"a": table(keys), "b": table(keys)}, ROLES)
    with pytest.raises(BadInputError, match="needs 2 applications"):
        list(leave_one_application_out(samples))
    with pytest.raises(BadInputError, match="needs 3 machines"):
        list(leave_one_machine_out(samples))


def test_scalers_see_training_rows_only() -> None:
    samples = pair_tables(fleet_of_three(), Roles(("app", "n"), "app", "t", ("bench",)))
    samples.counters[:, samples.apps == "y"] = 1e9
    fold = next(f for f in leave_one_application_out(samples) if f.held_out == "y")
    assert fit_scaler(fold.train).mean == pytest.approx(signed_log(np.array([10.0, 20.0, 30.0])).mean())


def test_what_is_missing_becomes_the_mean() -> None:
    scaler = Scaler.fit(np.array([[0.0, np.nan], [np.e - 1, 1.0], [np.nan, np.nan]]))
    assert scaler.mean == pytest.approx([0.5, np.log(2)])
    assert scaler.transform(np.array([[np.nan, 1.0]])) == pytest.approx(np.zeros((1, 2)))
    assert signed_log(np.array([-1.0])) == pytest.approx([-np.log(2)])


def test_weights_make_applications_equal() -> None:
    keys = {("x", 1): 1.0, ("x", 2): 2.0, ("x", 3): 2.0, ("y", 1): 1.0}
    samples = pair_tables({"a": table(keys), "b": table(keys)}, ROLES)
    examples = samples.examples()
    weights = balanced_weights(samples, examples)
    assert weights.mean() == pytest.approx(1.0)
    assert weights[samples.apps[examples.row] == "x"].sum() == pytest.approx(len(examples) / 2)


def test_hiding_in_any_order_is_the_same_data() -> None:
    samples = pair_tables(fleet_of_three(), ROLES)
    one = samples.hide_application("x").hide_application("y").digest
    assert one == samples.hide_application("y").hide_application("x").digest
    assert one != samples.digest


def test_workloads_without_counters_are_told_by_arguments_and_ranks() -> None:
    args = ["-n 1 -fast", "-n 2", "-n 3 -fast"]
    first = pd.DataFrame({"app": "x", "args": args, "ranks": [1, 2, 4], "t": [1.0, 2.0, 3.0]})
    roles = Roles(("app", "args", "ranks"), "app", "t")
    samples = pair_tables({"a": first, "b": first, "c": first[:2]}, roles)
    assert samples.counter_names == ("x fast=given", "x n", "ranks")
    np.testing.assert_allclose(samples.counters[0], [[1, np.log(2), 1], [0, np.log(3), 2], [1, np.log(4), 4]])
    assert np.isnan(samples.counters[2, 2]).all()
    assert "3 columns say how workloads were run (there are no counters)" in samples.notes[-1]


def test_arguments_stand_beside_counters() -> None:
    table = pd.DataFrame({"app": "x", "args": ["-n 1", "-n 2"], "ranks": [1, 2], "t": [1.0, 2.0], "loads": [5.0, 6.0]})
    samples = pair_tables({"a": table, "b": table}, Roles(("app", "args", "ranks"), "app", "t"))
    assert samples.counter_names == ("loads", "x n")
    same = table[["app", "t"]].assign(args="-n 1", ranks=[1, 1])[:1]
    with pytest.raises(BadInputError, match="nothing to learn from"):
        pair_tables({"a": same, "b": same}, Roles(("app", "args", "ranks"), "app", "t"))
