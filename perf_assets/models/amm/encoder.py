"""Abstract Machine Models (xAMM, Algorithm 1): a machine as one vector, made of its benchmark runs.

An encoder is trained once, on the benchmark rows of the training machines, and frozen. Every machine's AMM, also that
of a machine which comes later, is the combination of the encoder's outputs for its own benchmark rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, get_args

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.features.standardise import Scaler
from perf_assets.models.amm.embeddings import Embedding
from perf_assets.models.common import archive

Weighting = Literal["mean", "l2", "variance", "spread"]
Normalisation = Literal["own_max", "fleet_max", "none"]
_LEAK = 0.01
_LEAST_SETTINGS = 3
"""Two to learn from, one to stop by."""


@dataclass(frozen=True)
class AmmOptions:
    """Choices of Algorithm 1; the defaults are the paper's."""

    weighting: Weighting = "mean"
    adjust: bool = True
    """ReLU(x) + 0.01 ReLU(-x), then log(1 + x), then the normalisation."""
    normalize: Normalisation = "own_max"
    """`own_max` erases the overall speed: after the logarithm a uniformly faster machine is the same vector, shifted,
    and subtracting its own maximum takes the shift away. `fleet_max` subtracts the same number from all machines."""

    @property
    def name(self) -> str:
        """Name of the option in descriptions of machines."""
        return f"{self.weighting} {self.normalize}"


ALL_OPTIONS = tuple(AmmOptions(w, normalize=n) for w, n in product(get_args(Weighting), get_args(Normalisation)))
"""Every weighting with every normalisation."""


def combine(embeddings: Floats, weighting: Weighting) -> Floats:
    """One vector of benchmark rows x width: the mean, weighted by each row's length or variance, or the spread.

    Algorithm 1 can be read in two ways where it says variance: as the weight of a row (`variance`), or literally as
    the variance of each component over the rows (`spread`).
    """
    if weighting == "mean":
        return np.asarray(embeddings.mean(axis=0))
    if weighting == "spread":
        return np.asarray(embeddings.var(axis=0))
    if weighting == "l2":
        weights = np.linalg.norm(embeddings, axis=1)
    elif weighting == "variance":
        weights = embeddings.var(axis=1)
    else:
        raise BadInputError(f"AMM option {weighting!r} is not known: use mean, l2, variance or spread")
    total = weights.sum()
    # Rows that are all alike have no variance, and then none is more important than another.
    return np.asarray(embeddings.mean(axis=0) if total <= 0 else (weights / total) @ embeddings)


def adjust(vector: Floats) -> Floats:
    """ReLU(x) + 0.01 ReLU(-x), then log(1 + x): small, positive, and ratios become differences."""
    return np.log1p(np.maximum(vector, 0.0) + _LEAK * np.maximum(-vector, 0.0))


def machine_models(
    embeddings: dict[str, Floats], options: AmmOptions, fleet_max: float | None = None
) -> dict[str, Floats]:
    """The AMM of each machine from the embeddings of its benchmark rows.

    `fleet_max` is the largest component over the training machines; without it, over the machines given.
    """
    vectors = {machine: combine(rows, options.weighting) for machine, rows in embeddings.items()}
    if not options.adjust:
        return vectors
    vectors = {machine: adjust(vector) for machine, vector in vectors.items()}
    if options.normalize == "own_max":
        return {machine: vector - vector.max() for machine, vector in vectors.items()}
    if options.normalize == "fleet_max":
        largest = max(v.max() for v in vectors.values()) if fleet_max is None else fleet_max
        return {machine: vector - largest for machine, vector in vectors.items()}
    if options.normalize != "none":
        raise BadInputError(f"AMM normalisation {options.normalize!r} is not known: use own_max, fleet_max or none")
    return vectors


_LEAST_SHARE = 0.5
_NANOSECONDS = 1e9
"""Unit of times: in seconds the logarithm of 1 + time would be the time itself, and short kernels all alike."""


@dataclass(frozen=True)
class SuiteLayout:
    """Results of a suite of kernels as a grid: a row for each setting, a column for each kernel."""

    configurations: tuple[str, ...]
    """Kernel runs that are in the grid."""
    settings: tuple[str, ...]
    """Row of each kernel run."""
    kernels: tuple[str, ...]
    """Column of each kernel run."""

    @classmethod
    def of(cls, samples: PairedSamples) -> "SuiteLayout | None":
        """The grid of a suite; None where the benchmark is none."""
        if samples.benchmark_settings is None:
            return None
        keep = samples.is_benchmark
        return cls(
            tuple(np.array(samples.configurations)[keep].tolist()),
            tuple(samples.benchmark_settings[keep].tolist()),
            tuple(samples.apps[keep].tolist()),
        )

    def log_times(self, samples: PairedSamples) -> Floats:
        """Machines x settings x kernels, NaN where a kernel was not run in a setting."""
        position = {name: row for row, name in enumerate(samples.configurations)}
        known = [index for index, name in enumerate(self.configurations) if name in position]
        if len(known) < _LEAST_SHARE * len(self.configurations):
            raise BadInputError(
                f"{', '.join(samples.machines)}: only {len(known)} of the {len(self.configurations)} kernel runs that "
                "the AMM encoder knows are there: run RAJAPerf with the same kernels and sizes"
            )
        _, rows = np.unique(self.settings, return_inverse=True)
        _, columns = np.unique(self.kernels, return_inverse=True)
        times = np.full((len(samples.machines), rows.max() + 1, columns.max() + 1), np.nan)
        known_times = samples.log_seconds[:, [position[self.configurations[index]] for index in known]]
        times[:, rows[known], columns[known]] = known_times
        return times


def benchmark_results(samples: PairedSamples, layout: SuiteLayout | None) -> Floats:
    """Machines x benchmark rows x columns.

    Where the benchmark is a suite, a row is one setting of it and has the times of all its kernels; otherwise a row
    is one configuration with its counters and its time.
    """
    if layout is not None:
        return _NANOSECONDS * np.exp(layout.log_times(samples))
    rows = samples.benchmark_rows()
    return np.concatenate([samples.counters[:, rows], samples.log_seconds[:, rows, None]], axis=2)


def log_times(samples: PairedSamples, layout: SuiteLayout | None) -> Floats:
    """Machines x benchmark rows x log times; a kernel that was not run in a setting is as the others are there."""
    if layout is None:
        return samples.log_seconds[:, samples.benchmark_rows(), None]
    times = layout.log_times(samples)
    return np.where(np.isnan(times), np.nanmean(times, axis=2, keepdims=True), times)


@dataclass(frozen=True)
class AmmEncoder:
    """A frozen encoder of benchmark rows and the options its vectors are combined with."""

    scaler: Scaler
    embedding: Embedding
    options: AmmOptions
    fleet_max: float
    """Largest adjusted component over the training machines."""
    reference: str
    """Machine that the encoder's target is relative to."""
    machines: tuple[str, ...]
    """Machines that it was trained on."""
    layout: SuiteLayout | None
    """Results of a suite that an AMM is made of; None where the benchmark is not a suite."""
    largest: Mapping[Weighting, float] = field(default_factory=dict)
    """Largest adjusted component over the training machines, by weighting: `fleet_max` of every option."""

    @property
    def version(self) -> str:
        """Identity of the fitted encoder, to be stored with every AMM made by it."""
        return archive.identity(self)

    def machine_models(self, samples: PairedSamples) -> Floats:
        """Machines x width, for all machines whose benchmark is there, seen in training or not."""
        embedded = self._embedded(samples)
        vectors = machine_models(embedded, self.options, self.fleet_max)
        return np.stack([vectors[name] for name in samples.machines])

    def every_option(self, samples: PairedSamples) -> dict[str, Floats]:
        """Machines x width by option of Algorithm 1, of machines seen in training or not."""
        embedded = self._embedded(samples)
        by_option = {}
        for options in ALL_OPTIONS:
            vectors = machine_models(embedded, options, self.largest[options.weighting])
            by_option[options.name] = np.stack([vectors[name] for name in samples.machines])
        return by_option

    def _embedded(self, samples: PairedSamples) -> dict[str, Floats]:
        """Embedded benchmark rows by machine; all at once, as each call of a net has its price."""
        rows = benchmark_results(samples, self.layout)
        embedded = self._embed(rows.reshape(-1, rows.shape[2])).reshape(*rows.shape[:2], -1)
        return dict(zip(samples.machines, embedded, strict=True))

    def _embed(self, rows: Floats) -> Floats:
        return self.embedding.transform(self.scaler.transform(rows))


def fit_encoder(
    samples: PairedSamples,
    options: AmmOptions | None = None,
    *,
    embedding: str = "tabnet",
    seed: int = 0,
) -> AmmEncoder:
    """Train on the benchmark rows of the known machines; target: log(time / time on the reference machine).

    Every row ran on every machine, so the reference exists for all, and the unsupervised pretraining that the method
    has for the other case is not needed here.
    """
    options = options or AmmOptions()
    if not samples.is_benchmark.any():
        raise BadInputError("an AMM needs benchmark rows: name the benchmark applications")
    machines = samples.encoder_machines
    reference = samples.machines[[*samples.training_machines, *machines][0]]
    layout = SuiteLayout.of(samples)
    rows = benchmark_results(samples, layout)
    times = log_times(samples, layout)
    ratios = (times - times[samples.machines.index(reference)])[machines]
    inputs = np.concatenate(list(rows[machines]))
    if len(inputs) < _LEAST_SETTINGS:
        raise BadInputError(
            f"an AMM encoder needs {_LEAST_SETTINGS} settings of RAJAPerf, of all machines together, and there are "
            f"{len(inputs)}: land runs of another machine, or of other sizes and numbers of threads"
        )
    scaler = Scaler.fit(inputs)
    fitted = Embedding.fit(embedding, scaler.transform(inputs), np.concatenate(list(ratios)), seed)
    encoder = AmmEncoder(
        scaler=scaler,
        embedding=fitted,
        options=options,
        fleet_max=0.0,
        reference=reference,
        machines=tuple(samples.machines[m] for m in machines),
        layout=layout,
    )
    embedded = [encoder._embed(rows[m]) for m in machines]
    largest: dict[Weighting, float] = {
        weighting: float(np.max([adjust(combine(embedded_rows, weighting)) for embedded_rows in embedded]))
        for weighting in get_args(Weighting)
    }
    return replace(encoder, fleet_max=largest[options.weighting], largest=largest)
