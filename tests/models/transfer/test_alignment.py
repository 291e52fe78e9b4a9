"""M_S, M_A and its starts on machines whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from perf_assets.features.standardise import signed_log
from perf_assets.models.common import archive
from perf_assets.models.transfer.alignment import Alignment
from perf_assets.models.transfer.alignment_starts import SourceRows, by_transport, matched
from perf_assets.models.transfer.source_net import SourceNet
from perf_assets.models.transfer.task import Source, group_sources
from tests.models.transfers import QUICK, table


@pytest.fixture(scope="module")
def source() -> Source:
    return group_sources([table("s", seed=1)], settings=QUICK)[0]


def test_the_source_model_learns_and_is_the_same_after_storing(source: Source, tmp_path: Path) -> None:
    fresh = table("s2", seed=5)
    error = np.mean((source.net.predict(fresh.counters) - fresh.target) ** 2)
    assert error < 0.1 * np.var(fresh.target)
    assert 0 < source.net.held_out_error < 0.2
    source.net.save(tmp_path)
    again = SourceNet.load(tmp_path)
    assert again.predict(fresh.counters) == pytest.approx(source.net.predict(fresh.counters))


def test_gradients_are_right(source: Source) -> None:
    inputs = np.random.default_rng(0).normal(size=(6, 12))
    value, gradient = source.net.with_gradient(inputs)
    step = np.zeros(12)
    step[4] = 1e-5
    assert (source.net.standardised(inputs + step) - value) / 1e-5 == pytest.approx(gradient[:, 4], abs=1e-4)


def test_homogeneous_tables_share_a_model_and_others_do_not() -> None:
    tables = [table("a", rows=60), table("b", rows=60, slowness=8.0), table("x", rows=60, prefix="other")]
    first, second = group_sources(tables, settings=QUICK)
    assert (first.name, second.name) == ("a+b", "x")
    assert len(first.rows.target) == 120


def test_alignment_finds_a_factor_from_few_shots(source: Source, tmp_path: Path) -> None:
    target = table("t", seed=2, slowness=20.0)
    start = matched(source.rows, target.counter_names, {name: name for name in target.counter_names})
    assert start is not None
    few, rest = slice(0, 8), slice(8, None)
    fitted = Alignment.fit(source.net, start, target.counters[few], target.target[few])
    error = np.mean((fitted.predict(target.counters[rest]) - target.target[rest]) ** 2)
    unchanged = np.mean((source.net.predict(target.counters[rest]) - target.target[rest]) ** 2)
    assert unchanged > 5
    assert error < 0.15
    archive.write(tmp_path / "alignment.npz", fitted)
    again = archive.read(tmp_path / "alignment.npz", Alignment)
    assert again.predict(target.counters) == pytest.approx(fitted.predict(target.counters))


def test_a_fixed_alignment_stays_at_its_start(source: Source) -> None:
    target = table("t", seed=2, slowness=20.0)
    start = matched(source.rows, target.counter_names, {name: name for name in target.counter_names})
    assert start is not None
    fixed = Alignment.fit(source.net, start, target.counters[:8], target.target[:8], is_fixed=True)
    assert fixed.predict(target.counters) == pytest.approx(source.net.predict(target.counters), abs=1e-6)


def test_missing_counters_are_completed_from_the_others(source: Source) -> None:
    names = source.rows.counter_names
    start = matched(source.rows, names[:9], {name: name for name in names[:9]})
    assert start is not None
    found = start.apply(signed_log(source.rows.counters[:, :9]))
    true = source.rows.scaler.transform(source.rows.counters)
    # Twelve counters follow from four quantities, so nine of them say what the others are.
    assert np.mean((found[:, 9:] - true[:, 9:]) ** 2) < 0.2
    assert matched(source.rows, names, {}) is None


def test_transport_recognises_counters_by_their_values(source: Source) -> None:
    target = table("t", seed=3)
    order = np.random.default_rng(0).permutation(12)
    start = by_transport(source.rows, target.counters[:40][:, order], target.target[:40])
    recognised = order[np.abs(start.weights).argmax(axis=1)] == np.arange(12)
    assert recognised.mean() > 0.7


def test_rows_of_a_source_are_its_own(source: Source) -> None:
    assert isinstance(source.rows, SourceRows)
    assert source.rows.counters.shape == (240, 12)
