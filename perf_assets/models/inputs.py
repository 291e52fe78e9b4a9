"""What a tree model is told about an example: parts that are fitted on training data and put side by side."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Examples, Floats, PairedSamples
from perf_assets.features.scaling import fit_scaler
from perf_assets.models.amm import AmmOptions, fit_encoder
from perf_assets.models.embeddings import make_embedding
from perf_assets.models.relative_amm import RelativeAmm

Columns = Callable[[PairedSamples, Examples], Floats]
"""Fitted part: examples x columns."""


class Part(Protocol):
    """Fits one part."""

    def __call__(self, samples: PairedSamples, seed: int) -> Columns:
        """From what can be seen in `samples`."""


def counters(samples: PairedSamples, seed: int) -> Columns:
    """Scaled counters of the run on the source machine."""
    scaler = fit_scaler(samples)

    def columns(data: PairedSamples, examples: Examples) -> Floats:
        return scaler.transform(data.counters[examples.source, examples.row])

    return columns


def one_hot(samples: PairedSamples, seed: int) -> Columns:
    """Which machine is source and which is target: all that can be said without a description of machines."""

    def columns(data: PairedSamples, examples: Examples) -> Floats:
        which = np.eye(len(data.machines))
        return np.hstack([which[examples.source], which[examples.target]])

    return columns


def specification(samples: PairedSamples, seed: int) -> Columns:
    """Data sheets of both machines and their difference."""
    if samples.specification is None:
        raise BadInputError("methods with machine specifications need --spec")

    def columns(data: PairedSamples, examples: Examples) -> Floats:
        assert data.specification is not None
        source, target = data.specification[examples.source], data.specification[examples.target]
        return np.hstack([source, target, target - source])

    return columns


def embedding(kind: str = "tabnet") -> Part:
    """Embedding of the run on the source machine, trained on its log relative times to all training machines."""

    def fit(samples: PairedSamples, seed: int) -> Columns:
        scaler = fit_scaler(samples)
        machines = samples.training_machines
        times = samples.log_seconds[machines][:, ~samples.is_benchmark]
        seen = np.isfinite(times)
        ratios = times.T[None, :, :] - times[:, :, None]
        known = np.isfinite(ratios)
        mean = np.where(known, ratios, 0.0).sum(axis=2, keepdims=True) / np.maximum(known.sum(axis=2, keepdims=True), 1)
        # A run that some machine lacks: that machine is taken to be as fast as the others are on average.
        filled = np.where(known, ratios, mean)[seen]
        runs = scaler.transform(samples.counters[machines][:, ~samples.is_benchmark][seen])
        fitted = make_embedding(kind, seed).fit(runs, filled)

        def columns(data: PairedSamples, examples: Examples) -> Floats:
            return _once_a_run(examples, lambda s, r: fitted.transform(scaler.transform(data.counters[s, r])))

        return columns

    return fit


def published_amm(options: AmmOptions | None = None) -> Part:
    """AMM of the source and AMM of the target (xAMM), from a frozen encoder of benchmark rows."""

    def fit(samples: PairedSamples, seed: int) -> Columns:
        encoder = fit_encoder(samples, options, seed=seed)

        def columns(data: PairedSamples, examples: Examples) -> Floats:
            vectors = encoder.machine_models(data)
            return np.hstack([vectors[examples.source], vectors[examples.target]])

        return columns

    return fit


def relative_amm(samples: PairedSamples, seed: int) -> Columns:
    """Principal components of the benchmark log ratios of the pair."""
    fitted = RelativeAmm.fit(samples, samples.benchmark_rows(24))

    def columns(data: PairedSamples, examples: Examples) -> Floats:
        return np.asarray(fitted.vectors(data)[examples.source, examples.target])

    return columns


def _once_a_run(examples: Examples, encode: Callable[[Floats, Floats], Floats]) -> Floats:
    """Encode each run once, though it stands in an example for every target."""
    runs, of_example = np.unique(np.stack([examples.source, examples.row]), axis=1, return_inverse=True)
    return encode(runs[0], runs[1])[of_example.ravel()]
