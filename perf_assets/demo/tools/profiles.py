"""Results of the profiling runs of an execution: files of counters, or rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.execution import Execution
from perf_assets.demo.hardware.quantities import DEVICE, DEVICE_INDEX, HOST, HOST_INDEX
from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.tools import counter_tables as tables
from perf_assets.demo.tools.counter_tables import PERF_STAT_SOFTWARE
from perf_assets.demo.tools.observation import Observed, generator, observe


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

    def of_host(self, observation: Observed) -> NDArray[np.float64]:
        """Values of all counters, shape (ranks, threads, names); those of the device are 0."""
        values = np.zeros((*observation.host.shape[:2], len(self.names)))
        values[:, :, : len(self.host)] = observation.host @ self._host_coefficients
        return values

    def of_device(self, observation: Observed) -> NDArray[np.float64]:
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


def _intel(prefix: str, bits: int) -> tuple[EventSet, ...]:
    """Sets of a server core before Sapphire Rapids, whose vector registers have this many bits."""
    arithmetic = tables.intel_arithmetic(prefix, {f"{bits}B_PACKED_DOUBLE": "packed_double_instructions"})
    return (
        _hpcrun(tables.CPU_TIME, tables.PAPI_INSTRUCTIONS, tables.PAPI_MIX, tables.HPCRUN_FILES),
        _hpcrun(tables.PAPI_INSTRUCTIONS, tables.INTEL_CACHES),
        _hpcrun(tables.PAPI_INSTRUCTIONS, arithmetic, tables.INTEL_EVENTS),
    )


def _events(*host_tables: tables.Table, device: tables.Table | None = None) -> EventSet:
    return EventSet({name: sums for table in host_tables for name, sums in table.items()}, device or {})


_SAPPHIRE_RAPIDS = (
    _events(tables.PAPI_INSTRUCTIONS, tables.PAPI_MIX, tables.PAPI_SYSTEM),
    _events(tables.PAPI_INSTRUCTIONS, tables.SAPPHIRE_RAPIDS_MEMORY),
    _events(tables.PAPI_INSTRUCTIONS, tables.SAPPHIRE_RAPIDS_ARITHMETIC),
)

EVENT_SETS: Mapping[str, tuple[EventSet, ...]] = {
    "quartz": _intel("bdw_ep", 256),
    "ruby": _intel("clx", 512),
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

TARGET_COLUMN = "wall_seconds"
"""Column of a table of samples that is to be predicted."""
_LIVE_SHARE = 0.6
"""Six hardware counters for ten events."""
_MULTIPLEXING_SPREAD = 0.015


def arguments(execution: Execution) -> str:
    """The command line's arguments on this machine, with the back end where there is a choice."""
    gpu = execution.spec.gpu
    if gpu is None or not execution.placement.gpus:
        return execution.configuration.args
    return f"{execution.configuration.args} -d {'cuda' if 'NVIDIA' in gpu.model else 'hip'}"


def profiled_runs(execution: Execution, seed: int) -> dict[str, ProfiledRun]:
    """The profiling runs of a configuration by name (`set1`, `set2` …), each a run of its own."""
    configuration, placement = execution.configuration, execution.placement
    runs = {}
    for number, events in enumerate(EVENT_SETS[execution.spec.machine], start=1):
        if events.device and not placement.gpus:
            continue
        name = f"set{number}"
        observation = observe(execution, name, seed)
        runs[name] = ProfiledRun(
            program=execution.application.program,
            ranks=configuration.ranks,
            threads_per_rank=configuration.threads,
            hosts=placement.nodes,
            wall_seconds=observation.wall_seconds,
            metrics=events.names,
            values=events.of_host(observation),
            gpu_streams=events.of_device(observation) if events.device else None,
            seed=crc32(f"{seed}|{execution.spec.machine}|{configuration.key}|{name}".encode()),
        )
    return runs


def multiplexed(run: ProfiledRun, spec: MachineSpec, seed: int) -> tuple[ProfiledRun, dict[str, float]]:
    """A run whose hardware counters took turns: values estimated by the tool, and the share each was live."""
    random = generator(seed, (spec.machine, "multiplexing", str(run.seed)))
    shares = {}
    values = run.values.copy()
    for column, name in enumerate(run.metrics):
        if name.endswith("(sec)") or name in PERF_STAT_SOFTWARE:
            continue
        shares[name] = round(float(np.clip(random.normal(_LIVE_SHARE, 0.01), 0.5, 0.7)), 4)
        values[:, :, column] *= np.exp(random.normal(0.0, _MULTIPLEXING_SPREAD))
    return replace(run, values=values, gpu_streams=None), shares


def sample(execution: Execution, seed: int) -> Mapping[str, str | float]:
    """One row of a machine's table of samples; counters are summed over ranks, threads and devices."""
    configuration, placement = execution.configuration, execution.placement
    row: dict[str, str | float] = {
        "app": configuration.app,
        "args": arguments(execution),
        "ranks": configuration.ranks,
        "threads": configuration.threads,
        "nodes": placement.nodes,
        "gpus": placement.gpus,
    }
    for events in EVENT_SETS[execution.spec.machine]:
        measured = events if placement.gpus else events.without_device
        observation = observe(execution, "samples", seed)
        totals = measured.of_host(observation).sum(axis=(0, 1)) + measured.of_device(observation).sum(axis=0)
        row[TARGET_COLUMN] = observation.wall_seconds
        row |= dict(zip(measured.names, np.rint(totals).tolist(), strict=True))
    return row
