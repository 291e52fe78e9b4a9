"""Training of source models on the machines' stored descriptions, and the check that lets their aliases move."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.models import BEHAVES_LIKE, FEATURE_MASKS
from perf_assets.core.tables.schema import Table
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import store
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.machines.describe import descriptions

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.samples import PairedSamples
    from perf_assets.models.source.settings import SourceSettings
    from perf_assets.models.source.training import TrainedSource
    from perf_assets.models.source.tree_features import Embedded
    from perf_assets.registry.store import Version

Progress = Callable[[str], None]
TOLERANCE = 1.001
"""Rounding: a blend that is a plain answer is as good as that one."""


@dataclass(frozen=True)
class RegisteredSource:
    """Result of a training."""

    trained: "TrainedSource"
    samples: "PairedSamples"
    embedded: "Embedded"
    """The embedding of runs that is stored with the model."""
    versions: dict[bool, "Version"]
    """Versions by whether they have AMMs."""
    encoder_number: int
    """Version of `perf-amm`."""
    encoder_version: str
    settings: "SourceSettings"
    log_errors: dict[str, tuple[float, float]]
    """Log errors by what was held out: of the blend, and of the best plain answer."""

    @property
    def data_version(self) -> str:
        """Changes when and only when the data, the encoder or the settings did."""
        identity = f"{self.samples.digest} {self.encoder_version} {self.settings.model_dump_json()}"
        return digest_of(identity.encode())

    @property
    def is_not_worse(self) -> bool:
        """Whether the blends are as good as plain answers on what was held out."""
        return all(blend <= TOLERANCE * plain for blend, plain in self.log_errors.values())


def train_and_register(
    lake: Lake, runs: "pd.DataFrame", settings: "SourceSettings", provenance: dict[str, str], progress: Progress
) -> RegisteredSource:
    """Train on application runs and stored descriptions, register both source models, move their aliases if allowed.

    The encoder is the one in use: of machines that are held out in cross-validation, what the registered encoders say
    that have not seen them.
    """
    from perf_assets.features.fleet.descriptions import with_vectors
    from perf_assets.features.fleet.samples import benchmark_samples, fleet_samples
    from perf_assets.models.source.basis import PriorBasis
    from perf_assets.models.source.training import DescribedBy, not_worse, train_source
    from perf_assets.models.source.tree_features import fit_embedding
    from perf_assets.registry.amm import load_encoder
    from perf_assets.registry.lineage import ENCODER
    from perf_assets.registry.source import register_source
    from perf_assets.reports.xamm.source_card import source_card

    number, encoder = load_encoder()
    described = descriptions(lake, encoder.encoder.version)
    if described.rows.empty:
        raise BadInputError("no machine is described by the AMM encoder in use: run 'perf-assets train'")
    samples = with_vectors(fleet_samples(described.tables(runs)), described)
    benchmark = benchmark_samples(described.of_machines(_physical(samples)).kernels, with_scaling=True)
    order = [benchmark.machines.index(name) for name in samples.machines]
    without = {
        machine: {option: vectors[order] for option, vectors in by_option.items()}
        for machine, by_option in encoder.vectors_without(benchmark).items()
    }
    by = DescribedBy(encoder.encoder.version, encoder.encoder.options, without)
    trained = train_source(samples, by, settings, progress)
    progress("members without each machine, which target models start from")
    basis = PriorBasis.fit(runs, described, settings)
    tags = provenance | {"seed": str(settings.seed), ENCODER: encoder.encoder.version, "amm_version": str(number)}
    card = {"model_card.md": source_card(trained.scores, _weights(trained), tags).encode()}
    embedded = fit_embedding(samples, settings.seed)
    versions = {
        False: register_source(trained, samples, tags, with_amm=False, files=card),
        True: register_source(trained, samples, tags, with_amm=True, basis=basis, embedding=embedded, files=card),
    }
    made = RegisteredSource(
        trained=trained,
        samples=samples,
        embedded=embedded,
        versions=versions,
        encoder_number=number,
        encoder_version=encoder.encoder.version,
        settings=settings,
        log_errors={str(unseen): errors for unseen, errors in not_worse(trained.scores).items()},
    )
    move_aliases(made)
    return made


def move_aliases(made: RegisteredSource) -> None:
    """Let trained models be what people get, unless plain answers are better."""
    from perf_assets.registry.versions import promote

    if made.is_not_worse:
        for version in made.versions.values():
            promote(version.name, version.version)


def store_explanations(fleet: Fleet, made: RegisteredSource) -> dict[Table, "pd.DataFrame"]:
    """Store what the models look at: kernels that applications behave like, and features; rows by table."""
    from perf_assets.models.source.training import behaves_like, feature_masks

    is_simulated = fleet.is_simulated()
    explanations = {
        BEHAVES_LIKE: behaves_like(made.samples, made.trained.model, made.settings).assign(is_simulated=is_simulated),
        FEATURE_MASKS: feature_masks(made.samples, made.embedded).assign(is_simulated=is_simulated),
    }
    for table, rows in explanations.items():
        store(fleet.lake, fleet.warehouse, table, rows)
    return explanations


def _physical(samples: "PairedSamples") -> list[str]:
    return sorted(set(samples.physical_machines.tolist()))


def _weights(trained: "TrainedSource") -> dict[str, dict[str, float]]:
    return {str(unseen): dict(blend.weights) for unseen, blend in (trained.model.with_amm or {}).items()}
