"""The lake's tables, opened in the one way that Dagster, commands, the service and the Python API share."""

from perf_assets.features.counters.derivations import deriving
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse


def open_warehouse(lake: Lake, wait_seconds: float = 60.0) -> Warehouse:
    """Return the lake's warehouse with what is derived from its raw tables.

    The file of a host that has a warehouse of its own follows the record when it is first read. `wait_seconds` is how
    long to wait for a process that writes.
    """
    return Warehouse(lake, deriving(lake.site_catalogues()), wait_seconds)
