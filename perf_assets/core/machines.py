"""Machines: their ids and their data sheets."""

import re
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

    model: str
    sockets: int = Field(ge=1)
    cores_per_socket: int = Field(ge=1)
    clock_hertz: float = Field(gt=0)
    """Clock that all cores sustain under load."""
    simd_bits: int = Field(ge=64)
    fma_units: int = Field(ge=1)
    """Vector units per core that finish one fused multiply-add a cycle."""

    @property
    def cores(self) -> int:
        """Cores of a node."""
        return self.sockets * self.cores_per_socket


class Caches(_Part):
    """Data caches; bandwidths are what one core can sustain."""

    l1_bytes: int = Field(gt=0)
    """Per core."""
    l2_bytes: int = Field(gt=0)
    """Per core."""
    l3_bytes: int = Field(ge=0)
    """Per socket."""
    l1_bytes_per_cycle: float = Field(gt=0)
    l2_bytes_per_cycle: float = Field(gt=0)
    l3_bytes_per_cycle: float = Field(gt=0)


class Memory(_Part):
    """Main memory of one node."""

    capacity_bytes: float = Field(gt=0)
    bandwidth_bytes_per_second: float = Field(gt=0)
    """Theoretical peak of all sockets together."""
    latency_seconds: float = Field(gt=0)


class Gpu(_Part):
    """The accelerators of one node; figures are of one device as programs see it."""

    model: str
    count: int = Field(ge=1)
    peak_double_flops: float = Field(gt=0)
    peak_single_flops: float = Field(gt=0)
    bandwidth_bytes_per_second: float = Field(gt=0)
    l2_bytes: int = Field(gt=0)
    capacity_bytes: float = Field(gt=0)
    launch_seconds: float = Field(gt=0)
    link_bandwidth_bytes_per_second: float = Field(gt=0)
    """Host to device, one direction (PCIe, NVLink, Infinity Fabric)."""


class Network(_Part):
    """The interconnect as one node sees it."""

    bandwidth_bytes_per_second: float = Field(gt=0)
    latency_seconds: float = Field(gt=0)


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
        for part in ("cpu", "caches", "memory", "gpu", "network"):
            figures = getattr(self, part)
            if figures is not None:
                prefix = "" if part == "caches" else f"{part}_"
                row |= {f"{prefix}{field}": value for field, value in figures.model_dump().items()}
        return row


@lru_cache(maxsize=8)
def parse_machine_spec(text: str, name: str = "machine.yaml") -> MachineSpec:
    """Read the text of a data sheet, from a file of this name; raise `BadInputError` with what is wrong first."""
    return validated(MachineSpec, name, parse_yaml(name, text))
