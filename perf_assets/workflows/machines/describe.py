"""Description of machines: the encoder is trained and registered, and describes every machine once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.core.paths import has_registry
from perf_assets.core.tables.models import AMMS
from perf_assets.features.fleet.samples import FleetTables
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import drop_part, rows_of, store_part, stored
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.fleet.descriptions import Descriptions
    from perf_assets.models.amm.encoder import AmmEncoder
    from perf_assets.models.source.amm_options import TrainedEncoder
    from perf_assets.registry.store import Version
    from perf_assets.reports.site import Chart

Progress = Callable[[str], None]


@dataclass(frozen=True)
class RegisteredEncoder:
    """A trained encoder and the version it has in the registry."""

    trained: "TrainedEncoder"
    version: "Version"
    machines: tuple[str, ...]
    left_out: tuple[str, ...]
    """Machines that could not be learned from, each with the reason."""


def train_and_register_encoder(
    tables: FleetTables,
    seed: int,
    provenance: dict[str, str],
    progress: Progress,
    *,
    chooses_options: bool = True,
) -> RegisteredEncoder:
    """Train the encoder on all machines, choose the options of Algorithm 1 on held-out ones if asked, register it."""
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.models.source.amm_options import train_encoder
    from perf_assets.registry.amm import register_encoder
    from perf_assets.reports.machine.card import encoder_card

    samples = fleet_samples(tables, with_scaling=True)
    trained = train_encoder(samples, seed, progress, chooses_options=chooses_options)
    machines = tuple(samples.machines[machine] for machine in samples.encoder_machines)
    options = trained.encoder.options
    card = encoder_card(options.name, machines, trained.encoder.version, trained.tried, provenance)
    version = register_encoder(trained, tables.kernels, provenance, {"model_card.md": card.encode()})
    return RegisteredEncoder(trained, version, machines, samples.notes)


def describe(
    lake: Lake, machine: str, kernels: "pd.DataFrame", specs: "pd.DataFrame", *, is_simulated: bool
) -> "pd.DataFrame":
    """Store the description of a machine's kernel runs and data sheet by every encoder in use; returns its rows.

    Descriptions by further encoders stay as they were while a registered source model takes them. Refuses where there
    is no encoder yet, no RAJAPerf run, or too little of it.
    """
    if kernels.empty:
        raise BadInputError(f"no AMM of {machine}: it has no RAJAPerf run")
    no_encoder = f"no AMM of {machine}: there is no encoder yet, run 'perf-assets train'"
    if not has_registry():
        raise BadInputError(no_encoder)
    import pandas as pd

    from perf_assets.registry.amm import encoders_in_use, encoders_of_sources, frozen_encoder

    numbers = encoders_in_use()
    if not numbers:
        raise BadInputError(no_encoder)
    frames = [described_rows(frozen_encoder(number), kernels, specs) for number in numbers]
    rows = pd.concat(frames, ignore_index=True).assign(is_simulated=is_simulated)
    before = rows_of(lake, AMMS, machine)
    if before is not None:
        needed = encoders_of_sources() - set(rows["encoder_version"])
        rows = pd.concat([before[before["encoder_version"].isin(needed)], rows], ignore_index=True)
    store_part(lake, AMMS, rows, f"machine={machine}")
    return rows


def describe_machine(fleet: Fleet, machine: str) -> "pd.DataFrame":
    """Describe a machine by what its tables say, and load the description into the warehouse; its rows."""
    kernels, specs = fleet.benchmark(machine)
    if len(kernels) and _are_per_element():
        import pandas as pd

        kernels = pd.concat([kernels, fleet.kernels_per_element(machine)], ignore_index=True)
    if kernels.empty and drop_part(fleet.lake, AMMS, machine):
        # What it was described by has been withdrawn.
        fleet.warehouse.load_results(AMMS)
    rows = describe(fleet.lake, machine, kernels, specs, is_simulated=fleet.is_simulated(machine))
    fleet.warehouse.load_results(AMMS)
    return rows


def has_encoder() -> bool:
    """Whether there is an encoder by which machines must be described."""
    if not has_registry():
        return False
    from perf_assets.registry.amm import encoders_in_use

    return bool(encoders_in_use())


def _are_per_element() -> bool:
    """Whether an encoder in use describes machines by their times per element of a node."""
    if not has_registry():
        return False
    from perf_assets.features.fleet.per_element import are_per_element
    from perf_assets.registry.amm import encoders_in_use, frozen_encoder

    layouts = [frozen_encoder(number).layout for number in encoders_in_use()]
    return any(are_per_element(layout.configurations) for layout in layouts if layout is not None)


@dataclass(frozen=True)
class DrawnMachines:
    """AMMs of all machines in files and on a page."""

    machines_count: int
    stale: tuple[str, ...]
    """Machines that another encoder has described."""
    page: Path
    """Beside it, with the suffixes .json and .parquet, are the vectors."""
    heat_map: "Chart"
    on_a_map: "Chart"


def draw_machines(lake: Lake) -> DrawnMachines:
    """Write the AMMs of all machines into files and draw them."""
    import pandas as pd

    from perf_assets.features.fleet.descriptions import Descriptions, kernel_kinds
    from perf_assets.features.fleet.per_element import are_per_element
    from perf_assets.features.fleet.samples import benchmark_samples
    from perf_assets.reports.xamm.amm_charts import amm_page, component_kernels, kinds_of, map_chart, vectors_chart
    from perf_assets.storage.amm_files import export_amms, of_one_encoder
    from perf_assets.storage.pages import store_page

    described = stored(lake, AMMS, "perf-assets train")
    rows, stale = of_one_encoder(described)
    vectors = export_amms(rows, lake.reports / "amm.json")
    export_amms(rows, lake.reports / "amm.parquet")
    kernels = Descriptions.of(described, str(rows["encoder_version"].iloc[0])).kernels
    timed = benchmark_samples(kernels)
    is_per_element = are_per_element(timed.configurations)
    # Times of whole nodes do not tell GPUs from processors.
    kinds = pd.Series("whole nodes", vectors.index) if is_per_element else kinds_of(vectors.index)
    heat_map, on_a_map = vectors_chart("amm", vectors), map_chart("amm", vectors, kinds)
    times = pd.DataFrame(timed.log_seconds, list(timed.machines), timed.apps)
    components = component_kernels(vectors, times, kernel_kinds(kernels, timed.configurations))
    return DrawnMachines(
        machines_count=len(vectors),
        stale=tuple(stale),
        page=store_page(
            lake, "amm.html", amm_page(rows, heat_map, on_a_map, components, is_per_element=is_per_element)
        ),
        heat_map=heat_map,
        on_a_map=on_a_map,
    )


def descriptions(lake: Lake, encoder_version: str) -> "Descriptions":
    """All machines as an encoder describes them."""
    from perf_assets.features.fleet.descriptions import Descriptions

    return Descriptions.of(stored(lake, AMMS, "perf-assets train"), encoder_version)


def description_of(lake: Lake, machine: str, encoder_version: str) -> "Descriptions":
    """One machine as an encoder describes it; refuses where it does not."""
    from perf_assets.features.fleet.descriptions import Descriptions

    rows = rows_of(lake, AMMS, machine)
    described = None if rows is None else Descriptions.of(rows, encoder_version)
    if described is None or described.rows.empty:
        raise BadInputError(f"{machine} is not described: see what it lacks with 'perf-assets doctor'")
    return described


def digest_of_rows(rows: "pd.DataFrame") -> str:
    """Identity of descriptions, whatever the order of their rows."""
    ordered = rows.sort_values(list(AMMS.key)).reset_index(drop=True)
    return digest_of(ordered.to_csv(index=False).encode())


def described_rows(encoder: "AmmEncoder", kernels: "pd.DataFrame", specs: "pd.DataFrame") -> "pd.DataFrame":
    """Rows of `model_amm__machines` of the machines of kernel runs, but for whether they are simulated."""
    from perf_assets.features.fleet.descriptions import AMM, description_rows
    from perf_assets.features.fleet.per_element import of_kind
    from perf_assets.features.fleet.samples import benchmark_samples

    if encoder.layout is not None:
        kernels = of_kind(kernels, encoder.layout.configurations)
    samples = benchmark_samples(kernels, with_scaling=True)
    by_option = encoder.every_option(samples)
    vectors = {
        option: dict(zip(samples.machines, of_machines, strict=True)) for option, of_machines in by_option.items()
    }
    rows = description_rows(kernels, specs, vectors)
    return rows.assign(
        encoder_version=encoder.version,
        is_chosen=(rows["part"] == AMM) & (rows["option"] == encoder.options.name),
        was_in_training=rows["seen_as"].isin(encoder.machines),
    )
