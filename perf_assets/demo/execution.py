"""An application on a machine, without noise: how long it takes, and what it does meanwhile."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.applications.design import Application, Configuration
from perf_assets.demo.hardware.phase_costs import (
    copy_cost,
    device_cost,
    file_cost,
    host_cost,
    message_cost,
    system_instructions,
)
from perf_assets.demo.hardware.placement import Placement
from perf_assets.demo.hardware.quantities import DEVICE, HOST

_START_SECONDS = 0.12
_START_SECONDS_PER_RANK = 0.003
_DEVICE_START_SECONDS = 0.35
_START_INSTRUCTIONS = 1.5e8
_START_PAGE_FAULTS = 2500
_PAGE_BYTES = {"power9": 65536}
"""Size of a page by micro-architecture, where it is not 4 KiB."""
_FAULTING_SHARE = 0.4
"""Share of the pages of a program that fault: the others are huge or were there before."""


@dataclass(frozen=True)
class Execution:
    """One configuration on one machine; seconds and quantities are those of an average rank."""

    spec: MachineSpec
    application: Application
    configuration: Configuration
    placement: Placement
    start_seconds: float
    parallel_seconds: float
    """Computing on the processors with all threads."""
    serial_seconds: float
    """Computing on the processors with the first thread of each rank."""
    device_seconds: float
    """Waiting for the device: kernels, launches, copies."""
    communication_seconds: float
    """Messages and wavefront, without waiting for slower ranks."""
    file_seconds: float
    host: NDArray[np.float64]
    """Work of a rank, by `quantities.HOST`; times and waiting are added when the run is observed."""
    device: NDArray[np.float64]
    """Work of a rank's device, by `quantities.DEVICE`."""

    @property
    def compute_seconds(self) -> float:
        """On processors and devices."""
        return self.parallel_seconds + self.serial_seconds + self.device_seconds


def execute(
    spec: MachineSpec, application: Application, configuration: Configuration, placement: Placement
) -> Execution:
    """Run a configuration on a machine."""
    host: Counter[str] = Counter()
    device: Counter[str] = Counter()
    parallel_seconds = serial_seconds = device_seconds = communication_seconds = file_seconds = 0.0
    for phase in configuration.phases:
        if placement.gpus and phase.offloads:
            kernels = device_cost(spec, phase)
            phase_seconds = kernels.seconds
            device_seconds += kernels.seconds
            host.update(kernels.host_amounts)
            device.update(kernels.amounts)
        else:
            cost = host_cost(spec, phase, configuration.threads, placement)
            phase_seconds = cost.parallel_seconds + cost.serial_seconds
            parallel_seconds += cost.parallel_seconds
            serial_seconds += cost.serial_seconds
            host.update(cost.amounts)
        if placement.gpus:
            copies = copy_cost(spec, phase, configuration.ranks)
            device_seconds += copies.seconds
            host.update(copies.host_amounts)
            device.update(copies.amounts)
        message_seconds, sent = message_cost(spec, phase.exchange, configuration.ranks, placement)
        communication_seconds += message_seconds + phase.idle_share * phase_seconds
        host.update(sent)
        seconds, moved = file_cost(phase.files)
        file_seconds += seconds
        host.update(moved)
    host.update(system_instructions(_START_INSTRUCTIONS))
    pages = configuration.footprint_bytes / _PAGE_BYTES.get(spec.microarchitecture, 4096)
    host.update({"page_faults": _START_PAGE_FAULTS + _FAULTING_SHARE * pages})
    device.update({"allocated_bytes": configuration.footprint_bytes, "streams": 1.0})
    start_seconds = _START_SECONDS + _START_SECONDS_PER_RANK * configuration.ranks
    return Execution(
        spec=spec,
        application=application,
        configuration=configuration,
        placement=placement,
        start_seconds=start_seconds + (_DEVICE_START_SECONDS if placement.gpus else 0.0),
        parallel_seconds=parallel_seconds,
        serial_seconds=serial_seconds,
        device_seconds=device_seconds,
        communication_seconds=communication_seconds,
        file_seconds=file_seconds,
        host=_vector(host, HOST),
        device=_vector(device, DEVICE),
    )


def _vector(amounts: Mapping[str, float], names: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array([amounts.get(name, 0.0) for name in names])
