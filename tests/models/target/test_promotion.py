"""A new target model is taken when it is not worse; new runs that contradict the one in use are noticed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from perf_assets.features.fleet.samples import fleet_samples
from perf_assets.features.samples import PairedSamples
from perf_assets.models.target.model import PRIOR_COMPONENTS, AdaptedTarget, adapt
from perf_assets.models.target.prior import refitted_priors
from perf_assets.models.target.promotion import THRESHOLD, compare, drift, most_outside
from tests.features.fleet_tables import fleet_tables

MACHINE = "cedar"


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    return fleet_samples(fleet_tables())


def with_runs(samples: PairedSamples, count: int, factor: float = 1.0) -> PairedSamples:
    """Only the first so many runs of the machine are known; those after the sixth take `factor` times as long."""
    target = samples.machines.index(MACHINE)
    seconds = samples.log_seconds.copy()
    rows = np.flatnonzero(np.isfinite(seconds[target]) & ~samples.is_benchmark)
    rows = np.random.default_rng(0).permutation(rows)
    seconds[target, rows[6:]] += np.log(factor)
    seconds[target, rows[count:]] = np.nan
    return replace(samples, log_seconds=seconds)


def adapted(samples: PairedSamples) -> AdaptedTarget:
    return adapt(samples, MACHINE, refitted_priors(samples, 0, PRIOR_COMPONENTS), 0, lambda line: None)


@pytest.fixture(scope="module")
def champion(samples: PairedSamples) -> AdaptedTarget:
    return adapted(with_runs(samples, 6))


def spoiled(model: AdaptedTarget, factor: float) -> AdaptedTarget:
    """The same, but its held-out predictions are off by a factor."""
    views = {
        name: replace(view, held_out={key: value + np.log(factor) for key, value in view.held_out.items()})
        for name, view in model.views.items()
    }
    return replace(model, views=views)


def test_the_first_model_is_taken_if_it_beats_the_target_only_baselines(champion: AdaptedTarget) -> None:
    found = compare(champion, None)
    assert found.is_promoted
    assert (found.held_out_count, found.champion_log_rmse) == (6, None)
    assert found.log_rmse is not None
    assert found.target_only_log_rmse is not None
    assert found.log_rmse**2 <= THRESHOLD * found.target_only_log_rmse**2
    assert "best target-only baseline" in found.reason


def test_a_worse_model_stays_a_challenger(samples: PairedSamples, champion: AdaptedTarget) -> None:
    new = adapted(with_runs(samples, 16))
    good = compare(new, champion)
    assert good.is_promoted
    assert good.held_out_count == 16
    assert good.champion_log_rmse is not None
    bad = compare(spoiled(new, 3.0), champion)
    assert not bad.is_promoted
    assert "times that of the champion" in bad.reason
    assert "target-only" in bad.reason
    again = compare(champion, champion)
    assert again.log_rmse == again.champion_log_rmse, "the same runs, each predicted by a fit that did not see it"


def test_without_runs_a_model_is_taken_only_where_none_was_judged(
    samples: PairedSamples, champion: AdaptedTarget
) -> None:
    blind = adapted(with_runs(samples, 0))
    assert compare(blind, None).is_promoted
    assert "too few runs" in compare(blind, None).reason
    assert not compare(blind, champion).is_promoted


def test_runs_like_those_before_are_no_drift_and_slow_ones_are(samples: PairedSamples, champion: AdaptedTarget) -> None:
    assert drift(champion, with_runs(samples, 6)).new_runs == 0
    same = drift(champion, with_runs(samples, 26))
    assert (same.new_runs, same.has_drifted) == (20, False)
    slow = drift(champion, with_runs(samples, 26, factor=4.0))
    assert slow.has_drifted
    assert slow.outside > slow.allowed
    assert slow.worst[0][1] > 2.0
    one = drift(champion, with_runs(samples, 7, factor=4.0))
    assert not one.has_drifted, "one run may be outside by chance"


def test_a_saved_model_is_judged_as_before(samples: PairedSamples, champion: AdaptedTarget, tmp_path) -> None:
    champion.save(tmp_path)
    loaded = AdaptedTarget.load(tmp_path)
    assert compare(loaded, champion) == compare(champion, champion)


def chance_of_an_alarm(allowed: list[int], share: float) -> float:
    """Exact chance that more than allowed are outside at any number of runs, where each is with this chance."""
    still, alarmed = np.ones(1), 0.0
    for most in allowed:
        still = np.append(still * (1 - share), 0.0) + np.insert(still * share, 0, 0.0)
        alarmed += still[most + 1 :].sum()
        still = np.where(np.arange(len(still)) > most, 0.0, still)
    return alarmed


def test_chance_alone_is_no_drift_however_often_one_looks() -> None:
    allowed = [most_outside(count) for count in range(1, 601)]
    assert chance_of_an_alarm(allowed, 0.10) < 0.01
    assert chance_of_an_alarm(allowed, 0.05) < 0.001, "intervals that are too wide are none either"
    assert chance_of_an_alarm(allowed, 0.20) > 0.99
    at_one_look = [int(binom.ppf(0.99, count, 0.10)) for count in range(1, 601)]
    assert chance_of_an_alarm(at_one_look, 0.10) > 0.05, "what holds for one look does not hold for many"
    assert most_outside(0) == 0
    assert most_outside(3) == 2, "three of three are no chance"
