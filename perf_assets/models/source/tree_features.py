"""What a tree model is told about an example: parts that are fitted on training data and put side by side."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.embeddings import Embedding, make_embedding, restore_embedding
from perf_assets.models.amm.encoder import AmmEncoder, AmmOptions, fit_encoder
from perf_assets.models.amm.relative import RelativeAmm
from perf_assets.models.common import archive


class FeaturePart(Protocol):
    """A fitted part."""

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x columns."""

    def save(self, path: Path) -> None:
        """Store into a file, without pickle."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""


@dataclass(frozen=True)
class Counters:
    """Scaled counters of the run on the source machine."""

    scaler: Scaler

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x counters."""
        return self.scaler.transform(samples.counters[examples.source, examples.row])

    def save(self, path: Path) -> None:
        """Store into a file."""
        archive.save(path, {}, self.scaler.arrays())

    @classmethod
    def load(cls, path: Path) -> "Counters":
        """Read what `save` wrote."""
        return cls(Scaler.from_arrays(archive.load(path)[1]))


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

    def save(self, path: Path) -> None:
        """Store into a file."""
        archive.save(path, {}, self.scaler.arrays())

    @classmethod
    def load(cls, path: Path) -> "Rates":
        """Read what `save` wrote."""
        return cls(Scaler.from_arrays(archive.load(path)[1]))


def _per_second(samples: PairedSamples, machines: Indices, rows: Indices) -> Floats:
    return np.asarray(samples.counters[machines, rows] * np.exp(-samples.log_seconds[machines, rows])[:, None])


@dataclass(frozen=True)
class OneHot:
    """Which machine is source and which is target: all that can be said without a description of machines."""

    machines: tuple[str, ...]

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x twice the machines; all zeros for one that was not in training."""
        which = np.array([[name == known for known in self.machines] for name in samples.machines], float)
        return np.hstack([which[examples.source], which[examples.target]])

    def save(self, path: Path) -> None:
        """Store into a file."""
        archive.save(path, {"machines": self.machines}, {})

    @classmethod
    def load(cls, path: Path) -> "OneHot":
        """Read what `save` wrote."""
        return cls(tuple(archive.load(path)[0]["machines"]))


@dataclass(frozen=True)
class Specification:
    """Data sheets of both machines and their difference."""

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x three times the properties."""
        if samples.specification is None:
            raise BadInputError("methods with machine specifications need --spec")
        source, target = samples.specification[examples.source], samples.specification[examples.target]
        return np.hstack([source, target, target - source])

    def save(self, path: Path) -> None:
        """Store into a file."""
        archive.save(path, {}, {})

    @classmethod
    def load(cls, path: Path) -> "Specification":
        """Read what `save` wrote."""
        archive.load(path)
        return cls()


@dataclass(frozen=True)
class Embedded:
    """Embedding of the run on the source machine, trained on its log relative times to all training machines."""

    scaler: Scaler
    embedding: Embedding

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x width; each run is embedded once, though it stands in an example for every target."""
        runs, of_example = np.unique(np.stack([examples.source, examples.row]), axis=1, return_inverse=True)
        return self.embedding.transform(self.scaler.transform(samples.counters[runs[0], runs[1]]))[of_example.ravel()]

    def save(self, path: Path) -> None:
        """Store into a file."""
        weights = archive.prefixed("embedding.", self.embedding.arrays())
        archive.save(path, self.embedding.description(), {**self.scaler.arrays(), **weights})

    @classmethod
    def load(cls, path: Path) -> "Embedded":
        """Read what `save` wrote."""
        description, arrays = archive.load(path)
        return cls(Scaler.from_arrays(arrays), restore_embedding(description, archive.part("embedding.", arrays)))


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

    def save(self, path: Path) -> None:
        """Store into a file."""
        self.encoder.save(path)

    @classmethod
    def load(cls, path: Path) -> "PublishedAmm":
        """Read what `save` wrote."""
        return cls(AmmEncoder.load(path))


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

    def save(self, path: Path) -> None:
        """Store into a file."""
        archive.save(path, asdict(self.options), {})

    @classmethod
    def load(cls, path: Path) -> "DescribedAmm":
        """Read what `save` wrote."""
        return cls(AmmOptions(**archive.load(path)[0]))


def load_amm(path: Path) -> "PublishedAmm | DescribedAmm":
    """An AMM part of either kind: with an encoder of its own, or of stored descriptions."""
    return DescribedAmm.load(path) if "weighting" in archive.load(path)[0] else PublishedAmm.load(path)


@dataclass(frozen=True)
class RelativeComponents:
    """Principal components of the benchmark log ratios of the pair."""

    machine: RelativeAmm

    def columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x components."""
        return np.asarray(self.machine.vectors(samples)[examples.source, examples.target])

    def save(self, path: Path) -> None:
        """Store into a file."""
        archive.save(path, {}, self.machine.arrays())

    @classmethod
    def load(cls, path: Path) -> "RelativeComponents":
        """Read what `save` wrote."""
        return cls(RelativeAmm.from_arrays(archive.load(path)[1]))


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
    return Embedded(scaler, make_embedding(kind, seed).fit(runs, filled))


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
LOAD: dict[str, Callable[[Path], FeaturePart]] = {
    "counters": Counters.load,
    "rates": Rates.load,
    "one_hot": OneHot.load,
    "specification": Specification.load,
    "embedding": Embedded.load,
    **{f"embedding_{kind}": Embedded.load for kind in OTHER_EMBEDDINGS},
    "published_amm": load_amm,
    **{f"published_amm_{option}": load_amm for option in OTHER_AMM_OPTIONS},
    "relative_amm": RelativeComponents.load,
}
