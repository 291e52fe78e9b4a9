"""Descriptions of the small made-up fleet, by an encoder that takes no time to train."""

from dataclasses import dataclass

import pandas as pd

from perf_assets.features.fleet.descriptions import Descriptions, with_vectors
from perf_assets.features.fleet.samples import FleetTables, fleet_samples
from perf_assets.features.samples import PairedSamples
from perf_assets.models.amm.encoder import fit_encoder
from perf_assets.models.source.amm_options import TrainedEncoder
from perf_assets.models.source.training import DescribedBy
from perf_assets.workflows.machines.describe import described_rows


@dataclass(frozen=True)
class DescribedFleet:
    """Tables of a fleet, and its machines as an encoder describes them."""

    tables: FleetTables
    encoder: TrainedEncoder
    descriptions: Descriptions

    @property
    def samples(self) -> PairedSamples:
        """Runs and benchmark with AMMs."""
        return with_vectors(fleet_samples(self.descriptions.tables(self.tables.runs)), self.descriptions)

    @property
    def by(self) -> DescribedBy:
        """The encoder as a training of source models takes it."""
        return DescribedBy(self.encoder.encoder.version, self.encoder.encoder.options, {})


def quick_encoder(tables: FleetTables) -> TrainedEncoder:
    """An encoder whose embedding are the kernel times themselves."""
    encoder = fit_encoder(fleet_samples(tables, with_scaling=True), embedding="raw")
    return TrainedEncoder(encoder, {}, pd.DataFrame(columns=["weighting", "normalize", "log_rmse"]))


def described_fleet(tables: FleetTables, encoder: TrainedEncoder | None = None) -> DescribedFleet:
    """All machines of tables, described."""
    encoder = encoder or quick_encoder(tables)
    rows = described_rows(encoder.encoder, tables.kernels, tables.specs).assign(is_simulated=True)
    return DescribedFleet(tables, encoder, Descriptions.of(rows, encoder.encoder.version))
