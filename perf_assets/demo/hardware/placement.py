"""Placement of the ranks of a run on nodes."""

from dataclasses import dataclass
from math import ceil

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.applications.design import Application, Configuration

_USABLE_MEMORY_SHARE = 0.9


@dataclass(frozen=True)
class Placement:
    """Nodes and devices of a run."""

    nodes: int
    ranks_per_node: int
    gpus: int
    """In all; 0 where the program runs on the processors."""


def place(spec: MachineSpec, application: Application, configuration: Configuration) -> Placement | None:
    """Nodes and GPUs for a configuration: one core per thread, one GPU per rank; None where it does not fit."""
    ranks, threads = configuration.ranks, configuration.threads
    gpu = spec.gpu if application.has_gpu_back_end else None
    if threads > spec.cpu.cores:
        return None
    nodes = ceil(ranks / (spec.cpu.cores // threads))
    if gpu is not None:
        nodes = max(nodes, ceil(ranks / gpu.count))
    if nodes > 1 and spec.network is None:
        return None
    ranks_per_node = ceil(ranks / nodes)
    if configuration.footprint_bytes * ranks_per_node > _USABLE_MEMORY_SHARE * spec.memory.capacity_bytes:
        return None
    if gpu is not None and configuration.footprint_bytes > _USABLE_MEMORY_SHARE * gpu.capacity_bytes:
        return None
    return Placement(nodes, ranks_per_node, ranks if gpu is not None else 0)
