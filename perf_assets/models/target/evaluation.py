"""Paired adaptation beside its baselines: error on a new machine over the number of shots, on the same rows for all."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.core.metrics import log_rmse, mape
from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.target.causes import Expectation
from perf_assets.models.target.correction import fit_correction, starts
from perf_assets.models.target.prior import Prior, PriorParts, expectation_unchanged, possible_prior
from perf_assets.models.target.shots_only import SHOTS_ONLY, ShotsOnly

Progress = Callable[[str], None]
Row = dict[str, str | int | float]

METHODS = ("source_unchanged", "constant_ratio", "without_prior", "with_prior", "paired", *SHOTS_ONLY)
"""The last learn log seconds on the target from counters on the source, from the shots alone."""

_Predicted = tuple[Floats, Floats | None]
"""Log seconds, and their standard deviations where a method gives them."""


def evaluate_paired(
    samples: PairedSamples,
    sources: Sequence[int],
    targets: Sequence[int],
    shot_counts: Sequence[int],
    seeds: Iterable[int],
    methods: Sequence[str] = METHODS,
    progress: Progress = lambda _: None,
    priors: Mapping[int, Prior | None] | None = None,
) -> list[Row]:
    """One row for each target, source, seed, number of shots and method.

    Each seed draws an order of the application configurations that ran on both machines: the first are the shots, those
    after the largest number of shots are the test rows of all. `mape` is a ratio over the test rows; `coverage_90` is
    the share of them in the 90% interval, where the method has one. Methods without anything to go by at a number of
    shots are left out there. A target whose prior is not among `priors` gets one for each source, of seed 0, for all
    seeds; without benchmark rows or a third machine there is none, and nothing is said of `with_prior`.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise BadInputError(f"no method {', '.join(unknown)}; there are {', '.join(METHODS)}")
    parts, known = PriorParts(seed=0), priors or {}
    seeds, rows = list(seeds), []
    for target in targets:
        for source in sources:
            if source == target:
                continue
            prior = known[target] if target in known else possible_prior(samples, target, source, parts=parts)
            expected = prior.expected_unchanged if prior else expectation_unchanged(samples, source, target)
            for seed in seeds:
                rows += _evaluate_order(samples, source, target, shot_counts, seed, methods, prior, expected)
        progress(f"{samples.machines[target]} as target: {len(rows)} scores so far")
    return rows


def shuffled_runs(samples: PairedSamples, source: int, target: int, seed: int) -> Indices:
    """Application configurations that ran on both machines, in random order: shots come first, test rows last."""
    on_both = np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark
    return np.random.default_rng(seed).permutation(np.flatnonzero(on_both))


def _evaluate_order(
    samples: PairedSamples,
    source: int,
    target: int,
    shot_counts: Sequence[int],
    seed: int,
    methods: Sequence[str],
    prior: Prior | None,
    expected: Expectation,
) -> list[Row]:
    order = shuffled_runs(samples, source, target, seed)
    most = max(shot_counts)
    if len(order) <= most:
        names = f"{samples.machines[source]} and {samples.machines[target]}"
        raise BadInputError(f"{most} shots leave no test rows: {len(order)} configurations ran on {names}")
    test, rows = order[most:], []
    for count in shot_counts:
        for method in methods:
            predicted_shots = predict_shots(method, samples, source, target, order[:count], test, prior, expected)
            if predicted_shots is not None:
                score = score_runs(samples.log_seconds[target, test], *predicted_shots)
                where: Row = {"target": samples.machines[target], "source": samples.machines[source]}
                rows.append({**where, "shots": count, "seed": seed, "method": method, **score})
    return rows


def predict_shots(
    method: str,
    samples: PairedSamples,
    source: int,
    target: int,
    shots: Indices,
    test: Indices,
    prior: Prior | None,
    expected: Expectation | None = None,
) -> _Predicted | None:
    """Predictions of a method, fitted to the shots, for the test rows; None where it has no data.

    `expected` is what is expected of corrections of the source's time, see `fit_correction`.
    """
    if method == "source_unchanged":
        return samples.log_seconds[source, test], None
    if method.startswith("target_"):
        if len(shots) < 2:
            return None
        return ShotsOnly.fit(method, samples, source, target, shots).predict(samples.counters[source, test]), None
    if (method == "with_prior" and prior is None) or (method == "constant_ratio" and not len(shots)):
        return None
    priors = {"paired": starts(prior, shots), "with_prior": [prior]}.get(method, [None])
    candidates = None if method == "paired" else [method]
    return fit_correction(samples, source, target, shots, priors, expected, candidates).distribution(samples, test)


def score_runs(true: Floats, predicted: Floats, spread: Floats | None) -> Row:
    """`mape`, `log_rmse`, and `coverage_90` where a spread is given; of log seconds."""
    # A baseline may extrapolate to e^500 seconds; its error is then as good as infinite, and stays a number.
    clipped = np.clip(predicted, true - 20, true + 20)
    score: Row = {"mape": mape(np.exp(true), np.exp(clipped)), "log_rmse": log_rmse(np.exp(true), np.exp(clipped))}
    if spread is not None:
        score["coverage_90"] = float(np.mean(np.abs(predicted - true) <= NINETY_PERCENT * spread))
    return score
