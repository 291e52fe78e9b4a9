"""RAJAPerf on a machine every night, and what may happen: a slow DIMM, a throttled GPU, a new compiler."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.fleet import benchmark_bundle
from perf_assets.demo.rajaperf import COMPILER, FIRST_LAUNCH, benchmark_run
from perf_assets.demo.simulated import BenchmarkRun, SimulatedBundle

_DAY = 86_400
_SIZE, _REPETITION_FACTOR = 32_000_000, 0.05
"""Problem size of a nightly run, which leaves all caches, and share of the repetitions."""


@dataclass(frozen=True)
class Fault:
    """What happens to a machine, and which compiler its benchmark is built with from then on."""

    on: Callable[[MachineSpec], MachineSpec]
    compiler: str = COMPILER


def _slow_dimm(spec: MachineSpec) -> MachineSpec:
    """One of eight channels is lost."""
    memory = spec.memory
    slower = memory.model_copy(update={"bandwidth_bytes_per_second": memory.bandwidth_bytes_per_second * 7 / 8})
    return spec.model_copy(update={"memory": slower})


def _throttled_gpu(spec: MachineSpec) -> MachineSpec:
    """The clock of the multiprocessors is 30% lower; memory and caches are as fast as before."""
    if spec.gpu is None:
        return spec
    peaks = {name: getattr(spec.gpu, name) * 0.7 for name in ("peak_double_flops", "peak_single_flops")}
    return spec.model_copy(update={"gpu": spec.gpu.model_copy(update=peaks)})


def _narrow_vectors(spec: MachineSpec) -> MachineSpec:
    """A compiler that uses half of the vector registers."""
    return spec.model_copy(update={"cpu": spec.cpu.model_copy(update={"simd_bits": spec.cpu.simd_bits // 2})})


FAULTS = {
    "slow DIMM": Fault(_slow_dimm),
    "throttled GPU": Fault(_throttled_gpu),
    "new compiler": Fault(_narrow_vectors, "g++-13.3.0"),
}


def nightly_runs(
    spec: MachineSpec, nights: int, seed: int, fault: Fault | None = None, since: int = 0
) -> Iterator[BenchmarkRun]:
    """A run per night on all cores, and on a GPU; from night `since` on with the fault."""
    for night in range(nights):
        is_faulty = fault is not None and night >= since
        now = fault.on(spec) if fault is not None and is_faulty else spec
        compiler = fault.compiler if fault is not None and is_faulty else COMPILER
        launched_at = FIRST_LAUNCH + night * _DAY
        size, factor, threads = _SIZE, _REPETITION_FACTOR, spec.cpu.cores
        yield benchmark_run(now, f"night {night}", seed, threads, size, factor, launched_at, compiler)


def nightly_bundles(
    spec: MachineSpec, nights: int, seed: int, fault: Fault | None = None, since: int = 0
) -> Iterator[SimulatedBundle]:
    """Runs of `nightly_runs` as bundles that may land."""
    for run in nightly_runs(spec, nights, seed, fault, since):
        day = datetime.fromtimestamp(run.launched_at, UTC)
        yield benchmark_bundle(spec, run, f"nightly-{day:%Y-%m-%d}", seed)
