"""The lake and the warehouse that commands work on."""

from perf_assets.features.derivations import deriving
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse


def open_warehouse(lake: Lake, wait_seconds: float = 60.0) -> Warehouse:
    """The lake's warehouse, with what follows from its raw tables."""
    return Warehouse(lake, deriving(lake.site_catalogues()), wait_seconds)
