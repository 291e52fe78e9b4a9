"""The lake and the warehouse that commands work on."""

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import check_machine_id
from perf_assets.features.counters.derivations import deriving
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse


def open_warehouse(lake: Lake, wait_seconds: float = 60.0) -> Warehouse:
    """The lake's warehouse, with what follows from its raw tables."""
    return Warehouse(lake, deriving(lake.site_catalogues()), wait_seconds)


def check_machine(machine: str) -> None:
    """Refuse what cannot be the id of a machine."""
    try:
        check_machine_id(machine)
    except ValueError as error:
        raise BadInputError(str(error)) from None


def choose_machines(lake: Lake, chosen: tuple[str, ...]) -> list[str]:
    """The chosen machines, or all; each must have landed something."""
    known = lake.machines()
    for machine in chosen:
        if machine not in known:
            raise BadInputError(f"machine {machine!r} has nothing in {lake.landing}: land something first")
    if not known:
        raise BadInputError(f"nothing has landed in {lake.landing}: use 'perf-assets land' or 'perf-assets demo'")
    return sorted(chosen) or known
