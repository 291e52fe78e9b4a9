"""Adapters from Dagster's configuration to the storage classes."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from perf_assets.core.catalogue import load_catalogue
from perf_assets.features.derivations import deriving, unmapped
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse


class LakeResource(dg.ConfigurableResource[Lake]):
    """The data lake."""

    root: str | None = Field(
        default=None, description="Folder of the lake; PERF_ASSETS_LAKE or the project's own where not given"
    )

    def lake(self) -> Lake:
        """Its folders."""
        return Lake(Path(self.root)) if self.root else Lake.default()

    def warehouse(self) -> Warehouse:
        """Its tables."""
        return Warehouse(self.lake(), deriving(self.lake().site_catalogues()))

    def unmapped_counters(self, machine: str) -> list[str]:
        """Counters of a machine that the catalogue has no use for."""
        return unmapped(load_catalogue(self.lake().site_catalogues()), *self.warehouse().counters_of(machine))
