"""Adapters from Dagster's configuration to the storage classes."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import Fleet, open_warehouse


class LakeResource(dg.ConfigurableResource[Lake]):
    """The data lake."""

    root: str | None = Field(
        default=None, description="Folder of the lake; PERF_ASSETS_LAKE or the project's own where not given"
    )

    def lake(self) -> Lake:
        """Folders of the lake."""
        return Lake(Path(self.root)) if self.root else Lake.default()

    def warehouse(self, wait_seconds: float = 60.0) -> Warehouse:
        """Its tables; `wait_seconds` is how long to wait for another process that has them open."""
        return open_warehouse(self.lake(), wait_seconds)

    def fleet(self) -> Fleet:
        """Machines of the lake."""
        return Fleet(self.lake())
