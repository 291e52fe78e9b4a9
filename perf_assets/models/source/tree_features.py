"""Inputs of a tree model for an example: parts that are fitted on training data and put side by side."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.embeddings import Embedding
from perf_assets.models.amm.encoder import AmmEncoder, AmmOptions, fit_encoder
from perf_assets.models.amm.relative import RelativeAmm
from perf_assets.models.common.archive import Stored


@dataclass(frozen=True)
class Counters:
    """Scaled counters of the run on the source machine."""

    scaler: Scaler

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x counters."""
        return self.scaler.transform(samples.counters[examples.source, examples.row])


@dataclass(frozen=True)
class Rates:
    """Scaled counters per second of the run on the source machine: how it used the machine, whatever its size."""

    scaler: Scaler

    @classmethod
    def fit(cls, samples: PairedSamples, seed: int) -> "Rates":
        """Fit the scaler to the runs of the training machines."""
        machines, rows = np.nonzero(np.isfinite(samples.log_seconds) & ~samples.is_benchmark)
        return cls(Scaler.fit(_per_second(samples, machines, rows)))

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x counters."""
        return self.scaler.transform(_per_second(samples, examples.source, examples.row))


def _per_second(samples: PairedSamples, machines: Indices, rows: Indices) -> Floats:
    return np.asarray(samples.counters[machines, rows] * np.exp(-samples.log_seconds[machines, rows])[:, None])


@dataclass(frozen=True)
class OneHot:
    """Indicators of the source and the target machine: the only features without a description of machines."""

    machines: tuple[str, ...]

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x twice the machines; all zeros for one that was not in training."""
        which = np.array([[name == known for known in self.machines] for name in samples.machines], float)
        return np.hstack([which[examples.source], which[examples.target]])


@dataclass(frozen=True)
class Specification:
    """Data sheets of both machines and their difference."""

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x three times the properties."""
        if samples.specification is None:
            raise BadInputError("methods with machine specifications need --spec")
        source, target = samples.specification[examples.source], samples.specification[examples.target]
        return np.hstack([source, target, target - source])


@dataclass(frozen=True)
class Embedded(Stored):
    """Embedding of the run on the source machine, trained on its log relative times to all training machines."""

    scaler: Scaler
    embedding: Embedding

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x width; each run is embedded once, though it stands in an example for every target."""
        runs, of_example = np.unique(np.stack([examples.source, examples.row]), axis=1, return_inverse=True)
        return self.embedding.transform(self.scaler.transform(samples.counters[runs[0], runs[1]]))[of_example.ravel()]


@dataclass(frozen=True)
class PublishedAmm:
    """AMM of the source and AMM of the target (xAMM), from a frozen encoder of benchmark rows."""

    encoder: AmmEncoder

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x twice the width of an AMM."""
        vectors = self.encoder.machine_models(samples)
        return np.hstack([vectors[examples.source], vectors[examples.target]])

    def with_options(self, options: AmmOptions, samples: PairedSamples) -> "PublishedAmm":
        """Combine the encoder's outputs in another way; nothing is trained again."""
        plain = replace(self.encoder, options=replace(options, normalize="none"))
        largest = float(plain.machine_models(samples)[samples.encoder_machines].max())
        return PublishedAmm(replace(self.encoder, options=options, fleet_max=largest))


@dataclass(frozen=True)
class DescribedAmm:
    """AMM of the source and AMM of the target, as the machines' stored descriptions hold them."""

    options: AmmOptions

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x twice the width of an AMM."""
        if samples.amms is None:
            raise BadInputError("the machines are not described by AMMs: run 'perf-assets train'")
        vectors = samples.amms[self.options.name]
        return np.hstack([vectors[examples.source], vectors[examples.target]])


@dataclass(frozen=True)
class RelativeComponents:
    """Principal components of the benchmark log ratios of the pair."""

    machine: RelativeAmm

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x components."""
        return np.asarray(self.machine.vectors(samples)[examples.source, examples.target])


FeaturePart = Counters | Rates | OneHot | Specification | Embedded | PublishedAmm | DescribedAmm | RelativeComponents
"""Fitted parts: each gives examples x columns."""


def fit_embedding(samples: PairedSamples, seed: int, kind: str = "tabnet") -> Embedded:
    """Fit on the runs of the training machines."""
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
    return Embedded(scaler, Embedding.fit(kind, runs, filled, seed))


def fit_published_amm(samples: PairedSamples, seed: int, options: AmmOptions | None = None) -> PublishedAmm:
    """Fit the encoder on the benchmark of the known machines."""
    return PublishedAmm(fit_encoder(samples, options, seed=seed))


OTHER_EMBEDDINGS = ("nn", "ae", "vae")
"""Embeddings beside TabNet."""
OTHER_AMM_OPTIONS = {
    "l2": AmmOptions(weighting="l2"),
    "variance": AmmOptions(weighting="variance"),
    "spread": AmmOptions(weighting="spread"),
    "fleet_max": AmmOptions(normalize="fleet_max"),
    "none": AmmOptions(normalize="none"),
}
"""Options beside the mean with `own_max`."""
FIT: dict[str, Callable[[PairedSamples, int], FeaturePart]] = {
    "counters": lambda samples, seed: Counters(fit_scaler(samples)),
    "rates": Rates.fit,
    "one_hot": lambda samples, seed: OneHot(tuple(samples.machines[m] for m in samples.training_machines)),
    "specification": lambda samples, seed: Specification(),
    "embedding": fit_embedding,
    **{f"embedding_{kind}": partial(fit_embedding, kind=kind) for kind in OTHER_EMBEDDINGS},
    "published_amm": fit_published_amm,
    "relative_amm": lambda samples, seed: RelativeComponents(RelativeAmm.fit(samples)),
}
"""Parts by name, with their default settings."""
