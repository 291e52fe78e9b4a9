"""The data sheets of the simulated fleet."""

from importlib import resources

from perf_assets.core.machines import MachineSpec, parse_machine_spec


def load_machines() -> dict[str, MachineSpec]:
    """Data sheets by machine id, sorted by id."""
    directory = resources.files("perf_assets.demo") / "machines"
    texts = {entry.name: entry.read_text("utf-8") for entry in directory.iterdir() if entry.name.endswith(".yaml")}
    specs = [parse_machine_spec(texts[name]) for name in sorted(texts)]
    return {spec.machine: spec for spec in sorted(specs, key=lambda spec: spec.machine)}


def machine_text(machine: str) -> str:
    """The text of one machine's data sheet, comments included."""
    return (resources.files("perf_assets.demo") / "machines" / f"{machine}.yaml").read_text("utf-8")
