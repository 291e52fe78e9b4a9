"""The planner picks runs that say most about the others, for their price."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.planned_runs import ENOUGH_RUNS, WORTH_IT, worth
from perf_assets.features.samples import Indices, PairedSamples
from perf_assets.models.target.causes import without_profile
from perf_assets.models.target.correction import PairedModel, fit_correction
from perf_assets.models.target.planner import node_hours, plan
from tests.models.fleets import fleet

SOURCE, TARGET = 0, 3


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    return fleet(rows=8)


@pytest.fixture(scope="module")
def candidates(samples: PairedSamples) -> Indices:
    return np.flatnonzero(~samples.is_benchmark)


@pytest.fixture(scope="module")
def model(samples: PairedSamples, candidates: Indices) -> PairedModel:
    return fit_correction(samples, SOURCE, TARGET, candidates[:2], [None])


def test_plans_spread_over_applications(samples: PairedSamples, candidates: Indices, model: PairedModel) -> None:
    found = plan(model, samples, candidates, budget=4)
    assert len({run.row for run in found}) == 4
    assert {"fft", "molecules"} <= {run.app for run in found}
    errors = [found[0].error_before, *(run.error_after for run in found)]
    assert errors == sorted(errors, reverse=True)
    assert [run.error_before for run in found[1:]] == pytest.approx([run.error_after for run in found[:-1]])
    assert not {run.configuration for run in found} & set(model.shots)
    assert {run.node_hours for run in found} == {None}


def test_expected_error_is_what_a_process_with_that_run_expects(
    samples: PairedSamples, candidates: Indices, model: PairedModel
) -> None:
    """With the hyperparameters held: conditioned on the planned run as well, it has the variance that was foretold."""
    process = without_profile(model.processes[0])
    single = replace(model, processes=[process], shares=np.ones(1), has_prior=model.has_prior[:1])
    run = plan(single, samples, candidates, budget=1)[0]
    shots = np.append(candidates[:2], run.row)
    after = replace(process, runs=single.view.of(samples, SOURCE, shots), residual=np.zeros(3))
    variance = after.variance(single.view.of(samples, SOURCE, candidates)) + process.noise**2
    assert run.error_after == pytest.approx(np.sqrt(2 / np.pi) * np.sqrt(variance).mean(), rel=1e-3)


def test_prices_count(samples: PairedSamples, candidates: Indices, model: PairedModel) -> None:
    free = plan(model, samples, candidates, budget=1)[0]
    prices = np.where(candidates == free.row, 1000.0, 1.0)
    priced = plan(model, samples, candidates, budget=2, cost=prices)
    assert free.row not in [run.row for run in priced]
    assert [run.node_hours for run in priced] == [1.0, 1.0]
    hours = node_hours(model, samples, candidates, np.full(len(candidates), 2.0))
    assert hours == pytest.approx(2 * np.exp(model.predict(samples, candidates)) / 3600)


def test_what_cannot_be_planned_is_refused(samples: PairedSamples, candidates: Indices, model: PairedModel) -> None:
    with pytest.raises(BadInputError, match="budget of 0"):
        plan(model, samples, candidates, budget=0)
    with pytest.raises(BadInputError, match="no candidate"):
        plan(model, samples, candidates[:2], budget=1)
    with pytest.raises(BadInputError, match="above 0 node-hours"):
        plan(model, samples, candidates, budget=1, cost=np.zeros(len(candidates)))
    elsewhere = samples.hide_machine(SOURCE)
    with pytest.raises(BadInputError, match="did not run on a"):
        plan(model, elsewhere, candidates, budget=1, population=candidates)


def test_runs_that_hardly_lower_the_error_are_not_worth_it(samples: PairedSamples, candidates: Indices) -> None:
    """Those that are worth it come first, whatever the others cost."""
    many = fit_correction(samples, SOURCE, TARGET, candidates[:ENOUGH_RUNS], [None])
    runs = plan(many, samples, candidates, budget=len(candidates), cost=np.arange(1.0, len(candidates) + 1))
    gains = [1 - run.error_after / run.error_before for run in runs]
    chosen = [run.is_worth_it for run in runs]
    assert all(gain >= WORTH_IT for gain, is_worth_it in zip(gains, chosen, strict=True) if is_worth_it)
    assert chosen == sorted(chosen, reverse=True)
    assert not all(chosen)
    noise = np.array([0.001, 0.001, 0.001, 0.001, 0.5])
    noisy = [replace(one, amplitudes=noise) for one in many.processes]
    useless = plan(replace(many, processes=noisy), samples, candidates, budget=3)
    head, reason = worth("newbox", [asdict(run) | {"error_before_ratio": run.error_before} for run in useless])
    assert head == "newbox: no further run is worth it."
    assert "ten runs as useful as the best one would lower it by less than 2% of it" in reason


def test_with_few_runs_every_run_is_worth_it(samples: PairedSamples, candidates: Indices, model: PairedModel) -> None:
    """What is noise to two runs is learned from twenty."""
    runs = plan(model, samples, candidates, budget=3)
    assert [run.is_worth_it for run in runs] == [True] * 3
    told = [
        asdict(run) | {"error_before_ratio": run.error_before, "error_after_ratio": run.error_after, "shots": 2}
        for run in runs
    ]
    head, rough = worth("newbox", told)
    assert head == "newbox: the next 3 runs are expected to tell most; not all of their prices are known."
    assert "With 2 runs so far it is not well known how much they gain" in rough


def test_of_many_candidates_some_are_looked_at(samples: PairedSamples, candidates: Indices, model: PairedModel) -> None:
    prices = np.arange(1.0, len(candidates) + 1)
    price_of = dict(zip(candidates.tolist(), prices.tolist(), strict=True))
    found = plan(model, samples, candidates, budget=len(candidates), cost=prices, most=5)
    assert len(found) == 5
    assert [run.node_hours for run in found] == [price_of[run.row] for run in found]
