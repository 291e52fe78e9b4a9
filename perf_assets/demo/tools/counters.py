"""What each machine of the fleet counts, and in how many profiling runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.hardware.quantities import DEVICE, DEVICE_INDEX, HOST, HOST_INDEX
from perf_assets.demo.tools import counter_tables as tables
from perf_assets.demo.tools.observation import Observation


@dataclass(frozen=True)
class EventSet:
    """The counters of one profiling run."""

    host: tables.Table
    """Read per rank and thread."""
    device: Mapping[str, Mapping[str, float]]
    """Read per GPU."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all counters, those of the host first."""
        return (*self.host, *self.device)

    def of_host(self, observation: Observation) -> NDArray[np.float64]:
        """Values of all counters, shape (ranks, threads, names); those of the device are 0."""
        values = np.zeros((*observation.host.shape[:2], len(self.names)))
        values[:, :, : len(self.host)] = observation.host @ self._host_coefficients
        return values

    def of_device(self, observation: Observation) -> NDArray[np.float64]:
        """Values of all counters, shape (GPUs, names); those of the host are 0."""
        values = np.zeros((len(observation.device), len(self.names)))
        if len(observation.device):
            values[:, len(self.host) :] = observation.device @ self._device_coefficients
        return values

    @cached_property
    def without_device(self) -> "EventSet":
        """Counters of a run that uses no device."""
        return EventSet(self.host, {})

    @cached_property
    def _host_coefficients(self) -> NDArray[np.float64]:
        return _coefficients(self.host, HOST_INDEX, len(HOST))

    @cached_property
    def _device_coefficients(self) -> NDArray[np.float64]:
        return _coefficients(self.device, DEVICE_INDEX, len(DEVICE))


def _coefficients(table: tables.Table, index: Mapping[str, int], size: int) -> NDArray[np.float64]:
    matrix = np.zeros((size, len(table)))
    for column, amounts in enumerate(table.values()):
        for quantity, coefficient in amounts.items():
            matrix[index[quantity], column] = coefficient
    return matrix


def _hpcrun(*host_tables: tables.Table, device: tables.Table | None = None) -> EventSet:
    return _events(tables.HPCRUN_TIME, *host_tables, device=device)


def _events(*host_tables: tables.Table, device: tables.Table | None = None) -> EventSet:
    return EventSet({name: sums for table in host_tables for name, sums in table.items()}, device or {})


_SAPPHIRE_RAPIDS = (
    _events(tables.PAPI_INSTRUCTIONS, tables.PAPI_MIX, tables.PAPI_SYSTEM),
    _events(tables.PAPI_INSTRUCTIONS, tables.SAPPHIRE_RAPIDS_MEMORY),
    _events(tables.PAPI_INSTRUCTIONS, tables.SAPPHIRE_RAPIDS_ARITHMETIC),
)

EVENT_SETS: Mapping[str, tuple[EventSet, ...]] = {
    "quartz": (
        _hpcrun(tables.CPU_TIME, tables.PAPI_INSTRUCTIONS, tables.PAPI_MIX, tables.HPCRUN_FILES),
        _hpcrun(tables.PAPI_INSTRUCTIONS, tables.INTEL_CACHES),
        _hpcrun(
            tables.PAPI_INSTRUCTIONS,
            tables.intel_arithmetic("bdw_ep", {"256B_PACKED_DOUBLE": "packed_double_instructions"}),
            tables.INTEL_EVENTS,
        ),
    ),
    "ruby": (
        _hpcrun(tables.CPU_TIME, tables.PAPI_INSTRUCTIONS, tables.PAPI_MIX, tables.HPCRUN_FILES),
        _hpcrun(tables.PAPI_INSTRUCTIONS, tables.INTEL_CACHES),
        _hpcrun(
            tables.PAPI_INSTRUCTIONS,
            tables.intel_arithmetic("clx", {"512B_PACKED_DOUBLE": "packed_double_instructions"}),
            tables.INTEL_EVENTS,
        ),
    ),
    "corona": (
        _hpcrun(tables.CPU_TIME, tables.PAPI_INSTRUCTIONS, tables.ZEN2_MIX, tables.HPCRUN_FILES),
        _hpcrun(tables.PERF_INSTRUCTIONS, tables.ZEN2_CACHES, tables.PERF_EVENTS),
        _hpcrun(tables.PAPI_INSTRUCTIONS, device=tables.AMD_GPU),
    ),
    "lassen": (
        _hpcrun(tables.CPU_TIME, tables.PERF_INSTRUCTIONS, tables.POWER9_MIX, tables.HPCRUN_FILES),
        _hpcrun(tables.PERF_INSTRUCTIONS, tables.POWER9_CACHES, tables.PERF_EVENTS),
        _hpcrun(tables.PERF_INSTRUCTIONS, device=tables.NVIDIA_GPU),
    ),
    "dane": _SAPPHIRE_RAPIDS,
    "xeonmax": _SAPPHIRE_RAPIDS,
    "tioga": (_events(tables.ZEN3_SAMPLES, device=tables.ROCPROF_SAMPLES),),
    "h100": (_events(tables.SAPPHIRE_RAPIDS_SAMPLES, device=tables.NSIGHT_SAMPLES),),
    "epyc-vm": (_events(tables.CPU_TIME, tables.PERF_STAT),),
    "grace": (_events(tables.CPU_TIME, tables.PERF_STAT_ARM),),
}
"""Counters by machine: one set per profiling run, because the counters do not all fit into one."""
