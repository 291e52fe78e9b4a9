"""The lake and the warehouse that commands work on."""

from collections.abc import Sequence

from perf_assets.core.errors import BadInputError, UnknownError, like
from perf_assets.core.paths import has_registry, lake_root
from perf_assets.storage.lake import Lake


def check_machine(machine: str) -> None:
    """Refuse what cannot be the id of a machine."""
    from perf_assets.core.machines import check_machine_id

    try:
        check_machine_id(machine)
    except ValueError as error:
        raise BadInputError(str(error)) from None


def check_registry() -> None:
    """Refuse where no model can be registered: asking makes neither a lake nor a registry."""
    if not has_registry():
        advice = "'perf-assets train' makes the first one" if lake_root().is_dir() else "there is no data lake"
        raise BadInputError(f"no model is registered in {lake_root()}: {advice}")


def check_machines(machines: Sequence[str]) -> None:
    """Refuse what cannot be the id of a machine, and an unknown one that resembles a known one, before models load."""
    for machine in machines:
        check_machine(machine)
    known = Lake.default().machines()
    for machine in machines:
        if known and machine not in known and (near := like(machine, known)):
            raise UnknownError(f"machine {machine!r} is not known: did you mean {near}?")


def choose_machines(lake: Lake, chosen: tuple[str, ...]) -> list[str]:
    """The chosen machines, or all; each must have landed something."""
    known = lake.machines()
    for machine in chosen:
        if machine not in known:
            near = like(machine, known)
            advice = f"did you mean {near}?" if near else "land something first"
            raise BadInputError(f"machine {machine!r} has nothing in {lake.landing}: {advice}")
    if not known:
        raise BadInputError(f"nothing has landed in {lake.landing}: use 'perf-assets land' or 'perf-assets demo'")
    return sorted(chosen) or known
