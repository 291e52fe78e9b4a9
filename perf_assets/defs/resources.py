"""Adapters from Dagster's configuration to the storage classes."""

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.catalogue import Resolved, load_catalogue
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.landing import BUNDLES
from perf_assets.features.counters.derivations import unmapped
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import open_warehouse

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.fleet.samples import FleetTables
    from perf_assets.features.vectors import VectorSamples


class LakeResource(dg.ConfigurableResource[Lake]):
    """The data lake."""

    root: str | None = Field(
        default=None, description="Folder of the lake; PERF_ASSETS_LAKE or the project's own where not given"
    )

    def lake(self) -> Lake:
        """Its folders."""
        return Lake(Path(self.root)) if self.root else Lake.default()

    def warehouse(self, wait_seconds: float = 60.0) -> Warehouse:
        """Its tables; `wait_seconds` is how long to wait for another process that has them open."""
        return open_warehouse(self.lake(), wait_seconds)

    def fleet_tables(self) -> "FleetTables":
        """Application runs, kernel runs and data sheets of all machines."""
        from perf_assets.features.fleet.samples import FleetTables

        return FleetTables(self.fleet_runs(), *self.benchmark())

    def fleet_runs(self, machine: str | None = None) -> "pd.DataFrame":
        """Application runs of all machines, or of one."""
        from perf_assets.features.fleet.samples import RUNS_QUERY

        return self._rows(RUNS_QUERY, machine)

    def benchmark(self, machine: str | None = None) -> "tuple[pd.DataFrame, pd.DataFrame]":
        """Kernel runs and data sheets of all machines, or of one."""
        from perf_assets.features.fleet.samples import KERNELS_QUERY, SPECS_QUERY

        return self._rows(KERNELS_QUERY, machine), self._rows(SPECS_QUERY, machine)

    def _rows(self, query: str, machine: str | None) -> "pd.DataFrame":
        chosen = f"SELECT * FROM ({query}) WHERE $machine IN (machine, '')"
        return self.warehouse().frame(chosen, {"machine": machine or ""})

    def vector_samples(self) -> "VectorSamples":
        """Runs of all machines as samples of relative-performance vectors."""
        from perf_assets.features.fleet.vectors import VECTOR_QUERY, fleet_vectors

        return fleet_vectors(self.warehouse().frame(VECTOR_QUERY), self.fleet_tables())

    def is_simulated(self, machine: str | None = None) -> bool:
        """Whether anything of a machine, or of all, was simulated."""
        query = f"SELECT coalesce(bool_or(is_simulated), false) AS found FROM {BUNDLES.name} WHERE $m IN (machine, '')"
        return bool(self.warehouse().frame(query, {"m": machine or ""})["found"].iloc[0])

    def provenance(self, machine: str | None = None) -> dict[str, str]:
        """What models are made from, of all machines or of one: how many manifests, and one digest of all of theirs."""
        query = f"""
            SELECT machine, bundle_digest FROM {BUNDLES.name}
            WHERE status = 'ingested' AND $machine IN (machine, '') ORDER BY ALL
        """
        manifests = self.warehouse().frame(query, {"machine": machine or ""})
        return {
            "machines": ", ".join(sorted(manifests["machine"].unique())),
            "manifests_count": str(len(manifests)),
            "manifests_digest": digest_of("".join(manifests["bundle_digest"]).encode()),
            "is_simulated": str(self.is_simulated(machine)).lower(),
        }

    def formulas(self, machine: str) -> list[Resolved]:
        """How the catalogue reads a machine's counters."""
        catalogue = load_catalogue(self.lake().site_catalogues())
        return catalogue.resolve(*self.warehouse().counters_of(machine))

    def unmapped_counters(self, machine: str) -> list[str]:
        """Counters of a machine that the catalogue has no use for."""
        return unmapped(load_catalogue(self.lake().site_catalogues()), *self.warehouse().counters_of(machine))
