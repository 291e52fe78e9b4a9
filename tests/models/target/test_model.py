"""Target models of a fleet: quick answers are those of the fitted model, and the choice is made on held-out shots."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices, PairedSamples, physical
from perf_assets.models.common.questions import Questions, with_questions
from perf_assets.models.target.correction import fit_correction
from perf_assets.models.target.evaluation import shuffled_runs
from perf_assets.models.target.model import PRIOR_COMPONENTS, AdaptedTarget
from perf_assets.models.target.prior import Prior, PriorParts, fit_prior, reference_machine
from perf_assets.models.target.view import AdaptedView, adapt_view

TARGET = "birch"


@pytest.fixture(scope="module")
def samples(fleet: PairedSamples) -> PairedSamples:
    """A small fleet. One machine ran nearly everything, so that gaps are filled, and one ran two thirds."""
    source, _ = reference(fleet)
    others = [m for m in fleet.training_machines if m != source and fleet.machines[m] != TARGET]
    runs = np.flatnonzero(~fleet.is_benchmark)
    times = fleet.log_seconds.copy()
    times[others[0], runs[5:7]] = np.nan
    times[others[1], runs[::3]] = np.nan
    return replace(fleet, log_seconds=times)


@pytest.fixture(scope="module")
def prior(samples: PairedSamples) -> Prior:
    """With weight on all its components, whatever the cross-validation says."""
    found = fit_prior(samples, samples.machines.index(TARGET), 0, parts := PriorParts(0), PRIOR_COMPONENTS)
    hidden = samples.hide_machine(samples.machines.index(TARGET))
    return replace(
        found,
        components={name: parts.fit(name, hidden) for name in PRIOR_COMPONENTS},
        weights=dict.fromkeys(PRIOR_COMPONENTS, 0.5),
    )


def reference(samples: PairedSamples) -> tuple[int, str]:
    source = reference_machine(samples, samples.machines.index(TARGET))
    assert source is not None
    return source, physical(samples.machines[source])


def questions(samples: PairedSamples, rows: Indices) -> Questions:
    """About known configurations, then about the same runs as if of unknown ones, then of an unknown program."""
    source, _ = reference(samples)
    names, apps = [samples.configurations[row] for row in rows], samples.apps[rows].tolist()
    count = 3 * len(rows)
    return Questions(
        [samples.machines[source]] * count,
        [TARGET] * count,
        apps + apps + ["another"] * len(rows),
        names + [f"{name} on Sundays" for name in names] * 2,
        np.tile(samples.counters[source, rows], (3, 1)),
        np.tile(samples.log_seconds[source, rows], 3),
    )


def slowly(view: AdaptedView, samples: PairedSamples, asked: Questions) -> tuple[Floats, Floats]:
    """By putting the questions among the samples, as the model was fitted."""
    beside, examples = with_questions(samples, asked)
    return view.distribution(beside, examples.row)


@pytest.mark.parametrize("count", [0, 3, 20])
@pytest.mark.parametrize("kind", ["without_prior", "with_prior", "both"])
def test_quick_answers_are_those_of_the_model(
    count: int, kind: str, samples: PairedSamples, prior: Prior, tmp_path: Path
) -> None:
    source, target = reference(samples)[0], samples.machines.index(TARGET)
    order = shuffled_runs(samples, source, target, 0)
    priors = {"without_prior": [None], "with_prior": [prior], "both": [prior, None]}[kind]
    chosen = adapt_view(samples, source, target, order[:count], 0, None)
    view = replace(chosen, model=fit_correction(samples, source, target, order[:count], priors), shots_only=None)
    AdaptedTarget(TARGET, samples, {TARGET: view}).save(tmp_path)
    asked = questions(samples, order)
    mean, lower, upper = AdaptedTarget.load(tmp_path).predict(asked).bounds
    expected, width = slowly(view, samples, asked)
    assert mean == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert upper - mean == pytest.approx(width, rel=1e-6, abs=1e-9)
    assert mean - lower == pytest.approx(width, rel=1e-6, abs=1e-9)
    assert np.ptp(mean) > 0


def test_shots_that_pairing_cannot_explain_are_left_to_a_model_of_the_shots(
    samples: PairedSamples, prior: Prior, tmp_path: Path
) -> None:
    source, target = reference(samples)[0], samples.machines.index(TARGET)
    order = shuffled_runs(samples, source, target, 0)[:22]
    plain = adapt_view(samples, source, target, order, 0, prior)
    assert plain.chosen in ("without_prior", "with_prior", "paired")
    assert plain.shots_only is None
    # A machine whose times have nothing to do with those on the others, but follow from the counters.
    times = samples.log_seconds.copy()
    times[target] = -times[source]
    odd = replace(samples, log_seconds=np.where(samples.is_benchmark, samples.log_seconds, times))
    view = adapt_view(odd, source, target, order, 0, prior)
    assert view.chosen in ("target_ridge", "target_gp")
    errors = {score.name: score.log_rmse for score in view.candidates}
    assert errors[view.chosen] == min(error for name, error in errors.items() if name.startswith("target_"))
    AdaptedTarget(TARGET, odd, {TARGET: view}).save(tmp_path)
    rows = np.setdiff1d(shuffled_runs(odd, source, target, 0), order)
    asked = questions(odd, rows)
    mean, _, upper = AdaptedTarget.load(tmp_path).predict(asked).bounds
    expected, width = slowly(view, odd, asked)
    assert mean == pytest.approx(expected, rel=1e-6)
    assert upper - mean == pytest.approx(width, rel=1e-6)
    # It is better than the correction of the pair would have been.
    errors = [
        np.mean((found - odd.log_seconds[target, rows]) ** 2)
        for found in (mean[: len(rows)], view.model.predict(odd, rows))
    ]
    assert errors[0] < errors[1]


def test_questions_about_other_sources_and_machines_are_refused(samples: PairedSamples) -> None:
    source, target = reference(samples)[0], samples.machines.index(TARGET)
    order = shuffled_runs(samples, source, target, 0)
    model = AdaptedTarget(TARGET, samples, {TARGET: adapt_view(samples, source, target, order[:3], 0, None)})
    asked = questions(samples, order[:2])
    with pytest.raises(BadInputError, match="starts from runs on"):
        model.predict(replace(asked, sources=["nowhere"] * 6))
    with pytest.raises(BadInputError, match=f"this is the model of {TARGET}"):
        model.predict(replace(asked, targets=["nowhere"] * 6))
