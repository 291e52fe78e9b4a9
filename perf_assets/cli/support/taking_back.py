"""Updates after something was taken back: warehouse, partitions, models and pages."""

from perf_assets.cli.support.output import say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import has_registry
from perf_assets.storage.lake import Lake

_SEED, _SEEDS = 0, 5


def read_again(machine: str) -> None:
    """Bring the tables and the description of a machine up to date."""
    from perf_assets.defs.operate.launch import ingest_machines

    for outcome in ingest_machines([machine], lambda name: say_stage(f"tables of {name}")):
        if outcome.failure is not None:
            raise BadInputError(f"{machine}: {outcome.failure}")


def has_model(machine: str) -> bool:
    """Whether a target model of a machine is registered."""
    if not has_registry():
        return False
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import versions

    return bool(versions(registered_name(machine)))


def adapt_again(machine: str) -> None:
    """Replace a machine's model by one of the runs that remain; where they are too few, remove it."""
    from perf_assets.defs.operate.launch import adapt_machines
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import forget, newest_version, promote

    name = registered_name(machine)
    try:
        adapt_machines([machine], _SEED, _SEEDS, say_stage)
    except BadInputError as error:
        forget(name)
        say(f"{name} is removed, because what remains is not enough for a model: {error}")
        return
    version = newest_version(name)
    is_moved = promote(name, version)
    say(f"{name} version {version} is made of what remains" + ("" if is_moved else "; the champion is pinned"))


def remove_machine(lake: Lake, machine: str) -> None:
    """Take a machine out of the warehouse, the registry, Dagster and the page of the fleet."""
    from perf_assets.defs.operate.launch import remove_partition, write_fleet_page
    from perf_assets.workflows.fleet import open_warehouse

    open_warehouse(lake).forget_machine(machine)
    if has_registry():
        from perf_assets.registry.target import registered_name
        from perf_assets.registry.versions import forget

        forget(registered_name(machine))
    remove_partition(machine)
    write_fleet_page(say_stage)


def say_of_sources(machine: str) -> None:
    """Warn where source models were trained with data that is taken back."""
    if not has_registry():
        return
    from perf_assets.registry.source import NAME, WITH_AMM
    from perf_assets.registry.versions import tags_of, versions

    number = versions(NAME).get(WITH_AMM)
    if number is not None and machine in tags_of(NAME, number).get("machines", "").split(", "):
        say(f"{NAME} version {number} was trained with it: 'perf-assets train' makes source models without")
