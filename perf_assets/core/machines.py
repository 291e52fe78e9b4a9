"""Machines: their ids and their data sheets."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perf_assets.core.yaml_text import parse_yaml, validated

_MACHINE_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_machine_id(machine: str) -> str:
    """Return `machine` if it is a legal machine id; raise otherwise."""
    if not _MACHINE_ID.fullmatch(machine):
        raise ValueError(
            f"machine id {machine!r} is not allowed: use 1 to 64 of a-z 0-9 _ - and start with a letter or digit"
        )
    return machine


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Cpu(_Part):
    """The host processors of one node."""

    model: str = Field(description="Host processor")
    sockets: int = Field(ge=1, description="Sockets of a node")
    cores_per_socket: int = Field(ge=1, description="Cores of a socket")
    clock_hertz: float = Field(gt=0, description="Clock that all cores sustain")
    simd_bits: int = Field(ge=64, description="Width of a vector register")
    fma_units: int = Field(ge=1, description="Vector fused multiply-add units of a core")

    @property
    def cores(self) -> int:
        """Cores of a node."""
        return self.sockets * self.cores_per_socket


class Caches(_Part):
    """Data caches; bandwidths are what one core can sustain."""

    l1_bytes: int = Field(ge=1, description="L1 data cache of a core")
    l2_bytes: int = Field(ge=1, description="L2 cache of a core")
    l3_bytes: int = Field(ge=0, description="L3 cache of a socket")
    l1_bytes_per_cycle: float = Field(gt=0, description="L1 bandwidth of a core")
    l2_bytes_per_cycle: float = Field(gt=0, description="L2 bandwidth of a core")
    l3_bytes_per_cycle: float = Field(gt=0, description="L3 bandwidth of a core")


class Memory(_Part):
    """Main memory of one node."""

    capacity_bytes: float = Field(gt=0, description="Memory of a node")
    bandwidth_bytes_per_second: float = Field(gt=0, description="Peak memory bandwidth of a node")
    latency_seconds: float = Field(gt=0, description="Memory latency")


class Gpu(_Part):
    """The accelerators of one node; figures are of one device as programs see it."""

    model: str = Field(description="Accelerator")
    count: int = Field(ge=1, description="Accelerators of a node")
    peak_double_flops: float = Field(gt=0, description="Peak of one")
    peak_single_flops: float = Field(gt=0, description="Peak of one")
    bandwidth_bytes_per_second: float = Field(gt=0, description="Memory bandwidth of one")
    l2_bytes: int = Field(ge=1, description="L2 cache of one")
    capacity_bytes: float = Field(gt=0, description="Memory of one")
    launch_seconds: float = Field(gt=0, description="Cost of starting a kernel")
    link_bandwidth_bytes_per_second: float = Field(gt=0, description="Host to device, one direction")


class Network(_Part):
    """The interconnect as one node sees it."""

    bandwidth_bytes_per_second: float = Field(gt=0, description="Interconnect of a node")
    latency_seconds: float = Field(gt=0, description="Interconnect latency")


PARTS: Mapping[str, type[_Part]] = {"cpu": Cpu, "caches": Caches, "memory": Memory, "gpu": Gpu, "network": Network}
"""Parts of a data sheet by their names there."""


def column_prefix(part: str) -> str:
    """Beginning of the names of a part's columns in `core_machines__specs`; those of caches name their level."""
    return "" if part == "caches" else f"{part}_"


class MachineSpec(_Part):
    """A machine's data sheet, as `machine.yaml` holds it."""

    machine: Annotated[str, AfterValidator(check_machine_id)]
    name: str
    microarchitecture: str
    """Microarchitecture of the host processor, as the counter catalogue names it (broadwell, zen2, power9 …)."""
    cpu: Cpu
    caches: Caches
    memory: Memory
    gpu: Gpu | None = None
    network: Network | None = None
    sources: tuple[str, ...] = Field(min_length=1)
    """Sources of the figures."""

    def to_row(self) -> dict[str, Any]:
        """Flat form, one value per column of `core_machines__specs`."""
        row: dict[str, Any] = {
            "machine": self.machine,
            "name": self.name,
            "microarchitecture": self.microarchitecture,
            "sources": "; ".join(self.sources),
        }
        for part in PARTS:
            if (figures := getattr(self, part)) is not None:
                row |= {f"{column_prefix(part)}{field}": value for field, value in figures.model_dump().items()}
        return row


@lru_cache(maxsize=8)
def parse_machine_spec(text: str, name: str = "machine.yaml") -> MachineSpec:
    """Read the text of a data sheet, from a file of this name; raise `BadInputError` with what is wrong first."""
    return validated(MachineSpec, name, parse_yaml(name, text))
