"""Known machines play the target: what they teach, and that nothing of the target's runs is looked at."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.target.causes import (
    CONSTANT_RATIO,
    EVERY_CAUSE,
    UNCHANGED,
    Expectation,
    RunInputs,
    Spreads,
    fit_processes,
)
from perf_assets.models.target.correction import fit_correction, fit_paired
from perf_assets.models.target.evaluation import shuffled_runs
from perf_assets.models.target.prior import Prior, expectation_unchanged, fit_prior
from perf_assets.models.target.trials import (
    Trial,
    beats_no_change,
    benchmark_distance,
    blend_weights,
    half_widths,
    learn_expectation,
    play_trials,
)
from perf_assets.models.target.view import adapt_view
from tests.models.fleets import fleet

SOURCE, TARGET = 0, 3
FAST = ("bilinear", "mixture")


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    return fleet(rows=8)


class Perfect:
    """A component that knows the answer."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        return TIMES.log_relative_time(examples)


class Wrong:
    """A component that takes the target for twice as slow as it is."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        return TIMES.log_relative_time(examples) + np.log(2)


TIMES = fleet(rows=8)


def trials_of(samples: PairedSamples, *components: object) -> list[Trial]:
    names = [str(position) for position in range(len(components))]
    return play_trials(samples, SOURCE, TARGET, names, lambda name, _: components[int(name)])  # type: ignore[return-value]


def test_each_known_machine_plays_once_and_the_target_never(samples: PairedSamples) -> None:
    trials = trials_of(samples, Perfect())
    known = [machine for machine in range(len(samples.machines)) if machine != TARGET]
    assert [trial.target for trial in trials] == known
    assert all(trial.source not in (TARGET, trial.target) for trial in trials)
    for trial in trials:
        assert len(trial.true) == len(trial.runs) == trial.predicted.shape[1] == trial.predicted_alone.shape[1]


def test_a_playing_machine_is_hidden_from_what_is_fitted(samples: PairedSamples) -> None:
    seen: list[PairedSamples] = []

    def fit(name: str, data: PairedSamples) -> Perfect:
        seen.append(data)
        return Perfect()

    trials = play_trials(samples, SOURCE, TARGET, ["one"], fit)
    for data, trial in zip(seen, trials, strict=True):
        assert np.isnan(data.log_seconds[[trial.target, TARGET]][:, ~data.is_benchmark]).all()


@pytest.mark.slow
def test_runs_of_the_target_teach_nothing(samples: PairedSamples) -> None:
    times = samples.log_seconds.copy()
    times[TARGET, ~samples.is_benchmark] += 3.0
    other = replace(samples, log_seconds=times)
    first, second = (fit_prior(data, TARGET, 0, None, FAST) for data in (samples, other))
    assert first.weights == second.weights
    assert first.half_widths == second.half_widths
    for name, values in vars(first.expected).items():
        assert values == pytest.approx(getattr(second.expected, name))


def test_weights_go_to_what_was_right_and_to_no_change_where_nothing_was(samples: PairedSamples) -> None:
    assert blend_weights(trials_of(samples, Perfect(), Wrong()), 2).tolist() == [1.0, 0.0]
    near = replace(samples, log_seconds=np.where(samples.is_benchmark, samples.log_seconds, samples.log_seconds[:1]))
    unlike = [replace(trial, true=np.zeros(len(trial.true))) for trial in trials_of(near, Wrong())]
    assert blend_weights(unlike, 1).tolist() == [0.0]
    assert blend_weights([], 2).tolist() == [0.0, 0.0], "what was never tried is not trusted"


def test_trials_count_by_how_like_the_real_pair_they_are(samples: PairedSamples) -> None:
    """A trial of machines that are much farther apart hardly counts, whatever it says."""
    trials = trials_of(samples, Perfect(), Wrong())
    wanted = benchmark_distance(samples, SOURCE, TARGET)
    for trial in trials:
        factor = np.log(wanted / benchmark_distance(samples, trial.source, trial.target))
        assert trial.likeness == pytest.approx(np.exp(-0.5 * (factor / 0.7) ** 2))
        assert trial.stretch == pytest.approx(np.exp(0.5 * factor))
    near, far = (replace(trials[0], likeness=likeness) for likeness in (1.0, 1e-6))
    misled = replace(far, predicted=far.predicted[::-1])
    assert blend_weights([near, misled], 2).tolist() == [1.0, 0.0]
    assert blend_weights([replace(near, likeness=1e-6), replace(misled, likeness=1.0)], 2).tolist() == [0.0, 1.0]
    harmful = [replace(trial, predicted=-2 * trial.predicted, likeness=1e-6) for trial in trials[1:]]
    weights = np.array([1.0, 0.0])
    assert beats_no_change([*trials[:2], *harmful], weights)
    assert not beats_no_change([*trials[:2], *(replace(trial, likeness=1.0) for trial in harmful)], weights)


def test_errors_of_trials_are_stretched_to_the_distance_of_the_real_pair(samples: PairedSamples) -> None:
    trials, weights = trials_of(samples, Wrong()), np.ones(1)
    farther = [replace(trial, stretch=1.5 * trial.stretch) for trial in trials]
    small = Spreads(1e-3, 1e-3)
    before, after = half_widths(trials, weights, small), half_widths(farther, weights, small)
    assert before is not None
    assert after == pytest.approx((1.5 * before[0], 1.5 * before[1]))


def test_a_machine_unlike_all_that_are_known_counts_like_one_more_trial(samples: PairedSamples) -> None:
    right, weights = trials_of(samples, Perfect()), np.ones(1)
    widths = [half_widths(right[:count], weights, Spreads(0.3, 0.2)) for count in (1, 2, 4)]
    narrow = [pair[0] for pair in widths if pair is not None]
    assert len(narrow) == 3
    assert narrow == sorted(narrow, reverse=True), "the more machines are known, the less it counts"
    # Of errors of which half are 0, nine tenths are below the level that four fifths of the others are below.
    assert narrow[0] == pytest.approx(1.2816 * np.hypot(0.3, 0.2), rel=0.02)


def test_expectations_follow_the_size_of_errors(samples: PairedSamples) -> None:
    right, wrong = trials_of(samples, Perfect()), trials_of(samples, Wrong())
    weights = np.ones(1)
    small, large = learn_expectation(right, weights), learn_expectation(wrong, weights)
    assert small.amplitudes[0] < 0.5 * large.amplitudes[0]
    assert large.amplitudes[0] == pytest.approx(np.log(2), rel=0.5)
    assert small.kind_shares.sum() == pytest.approx(1.0)
    assert large.kind_shares[1] > large.kind_shares[0], "twice as slow is a constant ratio and not no change"
    none = learn_expectation([], weights, Spreads(0.4, 0.1))
    assert none.amplitudes == pytest.approx(Spreads(0.4, 0.1).by_cause())
    narrow, wide = half_widths([replace(trial, stretch=1.0) for trial in wrong], weights) or (0.0, 0.0)
    assert narrow == pytest.approx(np.log(2)) == wide
    assert half_widths([], weights) is None


def inputs(count: int, seed: int) -> RunInputs:
    generator = np.random.default_rng(seed)
    apps = np.array(["x", "y"])[generator.integers(0, 2, count)]
    return RunInputs(generator.standard_normal((count, 3)) / np.sqrt(3), generator.standard_normal((count, 2)), apps)


@pytest.mark.parametrize(("causes", "known"), [(UNCHANGED, 0.0), (CONSTANT_RATIO, 0.4)])
def test_corrections_of_few_causes_are_constants(causes: tuple[int, ...], known: float) -> None:
    runs, asked = inputs(30, 0), inputs(5, 1)
    residual = 0.4 + 0.01 * np.random.default_rng(2).standard_normal(len(runs))
    (process,) = fit_processes(runs, residual, Spreads(0.3, 0.2), causes)
    assert process.mean(asked) == pytest.approx(np.full(5, known), abs=0.02)


def test_evidence_prefers_the_simplest_that_explains() -> None:
    runs = inputs(30, 0)
    noise = 0.1 * np.random.default_rng(3).standard_normal(len(runs))

    def best(residual: Floats) -> tuple[int, ...]:
        found = {
            causes: max(process.evidence for process in fit_processes(runs, residual, Spreads(0.3, 0.2), causes))
            for causes in (UNCHANGED, CONSTANT_RATIO, EVERY_CAUSE)
        }
        return max(found, key=lambda causes: found[causes])

    assert best(noise) == UNCHANGED
    assert best(noise + 0.5) == CONSTANT_RATIO
    assert best(noise + 0.5 * (runs.apps == "x")) == EVERY_CAUSE


def test_each_from_the_others_is_what_a_fit_without_it_says() -> None:
    runs = inputs(12, 0)
    residual = 0.3 + 0.2 * (runs.apps == "x") + 0.1 * runs.profile[:, 0]
    process = fit_processes(runs, residual, Spreads(0.3, 0.2))[1]
    means, spreads = process.without_each(runs)
    for left_out in range(len(runs)):
        others = np.delete(np.arange(len(runs)), left_out)
        again = replace(process, runs=runs.at(others), residual=residual[others])
        here = runs.at(np.array([left_out]))
        assert means[left_out] == pytest.approx(again.mean(here)[0], abs=1e-6)
        assert spreads[left_out] == pytest.approx(np.sqrt(again.variance(here)[0] + again.noise**2), abs=1e-6)


def test_a_run_that_nobody_else_did_is_less_certain() -> None:
    runs = inputs(12, 0)
    process = fit_processes(runs, 0.3 * runs.profile[:, 0], Spreads(0.3, 0.2))[0]
    known = RunInputs(runs.counters[:1], np.zeros((1, 2)), runs.apps[:1], np.zeros(1))
    blind = replace(known, blind=np.ones(1))
    assert process.variance(blind)[0] > process.variance(known)[0] + 0.5 * process.amplitudes[3] ** 2


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 10, 20])
def test_useless_priors_cost_little(samples: PairedSamples, count: int) -> None:
    """Over seeds, with a prior that is off by a factor of 8, the mean error is within 5% of that without a prior."""
    good = fit_prior(samples, TARGET, 0, None, FAST, SOURCE)

    class Off:
        def predict(self, data: PairedSamples, examples: Examples) -> Floats:
            return np.log(8) * (1 + (data.apps[examples.row] == "dense"))

        def save(self, folder: object) -> None:
            raise NotImplementedError

    off = replace(good, components={"bilinear": Off()}, weights={"bilinear": 1.0})
    errors: list[tuple[float, float]] = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(np.flatnonzero(~samples.is_benchmark))
        shots, test = order[:count], order[20:]
        true = samples.log_seconds[TARGET, test]
        with_off = fit_correction(samples, SOURCE, TARGET, shots, [off, None])
        without = fit_correction(samples, SOURCE, TARGET, shots, [None], good.expected_unchanged)
        errors.append(tuple(float(np.abs(m.predict(samples, test) - true).mean()) for m in (with_off, without)))  # type: ignore[arg-type]
    ours, alone = np.mean(errors, axis=0)
    assert ours <= 1.05 * alone


def test_no_candidate_is_exempt(samples: PairedSamples) -> None:
    """Where nothing changes, "unchanged" has a share; where all is twice as slow, it loses it to corrections."""
    prior = fit_prior(samples, TARGET, 0, None, FAST, SOURCE)
    order = np.random.default_rng(0).permutation(np.flatnonzero(~samples.is_benchmark))[:15]
    noise = 0.05 * np.random.default_rng(1).standard_normal(len(samples.apps))

    def shares(factor: float) -> dict[str, float]:
        times = samples.log_seconds.copy()
        times[TARGET] = np.where(samples.is_benchmark, times[TARGET], times[SOURCE] + np.log(factor) + noise)
        data = replace(samples, log_seconds=times)
        model = fit_correction(data, SOURCE, TARGET, order, [prior, None], keeps_all=True)
        names = np.array(model.candidates)
        return {name: float(model.shares[names == name].sum()) for name in model.candidates}

    assert set(shares(1.0)) == {
        *("source_unchanged", "constant_ratio", "without_prior"),
        *("prior_unchanged", "prior_constant_ratio", "with_prior"),
    }
    same, slower = shares(1.0), shares(2.0)
    assert same["source_unchanged"] > 100 * slower["source_unchanged"]
    assert slower["source_unchanged"] < 0.01
    assert slower["constant_ratio"] > 100 * slower["source_unchanged"]


def test_two_machines_without_benchmark_have_candidates_too(samples: PairedSamples) -> None:
    apps = ~samples.is_benchmark
    pair = replace(
        samples,
        machines=samples.machines[:2],
        configurations=tuple(np.array(samples.configurations)[apps].tolist()),
        apps=samples.apps[apps],
        is_benchmark=samples.is_benchmark[apps],
        counters=samples.counters[:2, apps],
        log_seconds=samples.log_seconds[:2, apps],
        specification=None,
    )
    rows = np.arange(len(pair.apps))
    assert expectation_unchanged(pair, 0, 1).amplitudes == pytest.approx(Expectation.of(Spreads(0.3, 0.2)).amplitudes)
    view = adapt_view(pair, 0, 1, rows[:0], 0, None)
    assert view.chosen == "source_unchanged"
    assert not view.uses_prior
    assert view.distribution(pair, rows)[0] == pytest.approx(pair.log_seconds[0])
    model = fit_paired(pair, 0, 1, rows[::3])
    off = model.predict(pair, rows) - pair.log_seconds[1]
    assert np.abs(off).mean() < np.abs(pair.log_seconds[0] - pair.log_seconds[1]).mean()


def test_before_any_shot_a_prior_answers_only_where_it_was_better_beyond_chance(samples: PairedSamples) -> None:
    weights, right = np.ones(1), trials_of(samples, Perfect())
    assert beats_no_change(right, weights)
    same = [replace(trial, predicted=np.zeros_like(trial.predicted)) for trial in right]
    assert not beats_no_change(same, weights)
    lucky = [
        replace(one, predicted=one.predicted if place == 0 else one.predicted * 2.2) for place, one in enumerate(right)
    ]
    assert not beats_no_change(lucky, weights), "better on one machine, worse on the others"
    assert beats_no_change(right[:1], weights), "one machine has no standard error"
    assert not beats_no_change([], weights)


def test_a_prior_that_is_not_better_leaves_the_answer_to_the_time_on_the_source(
    samples: PairedSamples, tmp_path: Path
) -> None:
    rows = shuffled_runs(samples, SOURCE, TARGET, 0)
    prior = replace(fit_prior(samples, TARGET, 0, None, ("bilinear",), SOURCE), weights={"bilinear": 1.0})
    prior = replace(prior, components={"bilinear": BilinearModel.fit(samples.hide_machine(TARGET))})
    unsure = replace(prior, beats_no_change=False)
    unsure.save(tmp_path)
    assert not Prior.load(tmp_path).beats_no_change
    before = samples.log_seconds[SOURCE, rows]
    sure_view, view = (adapt_view(samples, SOURCE, TARGET, rows[:0], 0, one) for one in (prior, unsure))
    assert (sure_view.chosen, view.chosen) == ("with_prior", "source_unchanged")
    assert view.distribution(samples, rows)[0] == pytest.approx(before)
    assert np.abs(sure_view.distribution(samples, rows)[0] - before).max() > 0.01
    assert not view.uses_prior
    assert fit_paired(samples, SOURCE, TARGET, rows[:0], prior=unsure).predict(samples, rows) == pytest.approx(before)
    few, same = (adapt_view(samples, SOURCE, TARGET, rows[:6], 0, one) for one in (unsure, prior))
    assert few.distribution(samples, rows)[0] == pytest.approx(same.distribution(samples, rows)[0]), "shots judge both"
