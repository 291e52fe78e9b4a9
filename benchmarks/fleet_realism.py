"""How near is the simulated fleet to real machines? Simulated against measured time per repetition of RAJAPerf kernels.

Measured: Quartz (gcc -O3, Base_Seq), Lassen (V100, Base_CUDA, 4 sizes x 4 block sizes), an H100 node (Base_CUDA, 4
ranks with a GPU each), and a two-core EPYC virtual machine (Base_Seq and Base_OpenMP). A machine's rows (sizes,
tunings, repeated runs) are joined into one value per kernel by the geometric mean before scoring; `rows` scores them
one by one. Beside each score stands that of a plain roofline: the larger of reported bytes over bandwidth and reported
flops over peak, without caches, latency, launches or anything else.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from transfer_data import data_folder

from perf_assets.core.machines import MachineSpec
from perf_assets.core.measurements import KernelTiming
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.hardware.processor import memory_bandwidth
from perf_assets.demo.kernels import Kernel, load_kernels
from perf_assets.demo.rajaperf import seconds_per_rep
from perf_assets.readers.read import read

_WORST = 5


def edge_of_size(kernel: Kernel, timing: KernelTiming) -> float:
    """Edge length from the reported problem size."""
    return kernel.edge_of_size(float(timing.problem_size or 0))


def edge_of_bytes(kernel: Kernel, timing: KernelTiming) -> float:
    """Edge length at which the kernel moves the reported bytes: RAJAPerf 2026 counts sizes of some kernels anew."""
    low, high = 1e-3, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        moved = kernel.bytes_read(middle) + kernel.bytes_written(middle) + 2 * kernel.bytes_atomic(middle)
        low, high = (middle, high) if moved < (timing.bytes_per_rep or 0.0) else (low, middle)
    return low


@dataclass(frozen=True)
class Comparison:
    """What is compared on one machine."""

    machine: str
    folders: tuple[str, ...]
    variants: tuple[str, ...]
    edge: Callable[[Kernel, KernelTiming], float] = edge_of_size


COMPARISONS = (
    Comparison("quartz", ("quartz_cali/gcc_O3",), ("Base_Seq",)),
    Comparison("lassen", ("lassen_cali",), ("Base_CUDA",)),
    Comparison("h100", ("h100_csv_2026",), ("Base_CUDA",), edge_of_bytes),
    Comparison("epyc-vm", ("epyc-vm_2024/t2_s100000_quiet", "epyc-vm_2024/t1_s100000"), ("Base_Seq", "Base_OpenMP")),
)


def simulated_seconds(spec: MachineSpec, kernel: Kernel, edge: float, timing: KernelTiming) -> float:
    """Simulated time of a repetition of what was measured."""
    seconds = seconds_per_rep(spec, kernel, edge, timing.variant, timing.threads or 1)
    if kernel.pattern == "matmul" and timing.flops_per_rep:
        # Releases before 2024 keep the inner matrix edge at a fixed length: the same size is less work.
        seconds *= timing.flops_per_rep / kernel.flops(edge)
    return seconds


def roofline_seconds(spec: MachineSpec, timing: KernelTiming) -> float:
    """The baseline."""
    cpu, threads = spec.cpu, timing.threads or 1
    bandwidth = memory_bandwidth(spec, threads)
    peak = threads * cpu.clock_hertz * cpu.simd_bits / 64 * cpu.fma_units * 2
    if spec.gpu is not None and timing.variant.endswith(("CUDA", "HIP")):
        bandwidth, peak = spec.gpu.bandwidth_bytes_per_second, spec.gpu.peak_double_flops
    return max((timing.bytes_per_rep or 0.0) / bandwidth, (timing.flops_per_rep or 0.0) / peak)


def compare(comparison: Comparison, root: Path) -> pd.DataFrame:
    """Rows: kernel, measured, simulated and roofline seconds of one repetition."""
    spec, kernels = load_machines()[comparison.machine], load_kernels()
    rows = []
    for folder in comparison.folders:
        for timing in read(root / folder).timings:
            kernel = kernels.get(timing.kernel)
            if kernel is None or not timing.is_valid or timing.variant not in comparison.variants:
                continue
            simulated = simulated_seconds(spec, kernel, comparison.edge(kernel, timing), timing)
            rows.append(
                (f"{timing.kernel} {timing.variant}", timing.seconds_per_rep, simulated, roofline_seconds(spec, timing))
            )
    return pd.DataFrame(rows, columns=["kernel", "measured", "simulated", "roofline"])


def scores(frame: pd.DataFrame, column: str = "simulated") -> dict[str, float]:
    """Rank correlation and quantiles of the error factor."""
    factors = np.exp(np.abs(np.log(frame[column] / frame["measured"])))
    return {
        "spearman": round(frame["measured"].corr(frame[column], method="spearman"), 3),
        "median_factor": round(float(np.median(factors)), 3),
        "p90_factor": round(float(np.quantile(factors, 0.9)), 3),
    }


def _line(name: str, count: int, result: dict[str, float]) -> str:
    return f"{name:22}{count:6}{result['spearman']:10.3f}{result['median_factor']:9.2f}{result['p90_factor']:9.2f}"


def main() -> int:
    """Print the table, the kernels that are furthest off, and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two machines only")
    comparisons = COMPARISONS[::3] if parser.parse_args().quick else COMPARISONS
    root = data_folder("rajaperf")
    by_kernel: dict[str, dict[str, float]] = {}
    by_row: dict[str, dict[str, float]] = {}
    print(f"{'machine':22}{'n':>6}{'spearman':>10}{'median':>9}{'p90':>9}   (error factors)")
    worst = []
    for comparison in comparisons:
        rows = compare(comparison, root)
        kernels = rows.set_index("kernel").map(math.log).groupby(level=0).mean().map(math.exp)
        by_kernel[comparison.machine], by_row[comparison.machine] = scores(kernels), scores(rows)
        print(_line(comparison.machine, len(kernels), by_kernel[comparison.machine]))
        print(_line("  rows", len(rows), by_row[comparison.machine]))
        print(_line("  roofline", len(kernels), scores(kernels, "roofline")))
        ratio = kernels["simulated"] / kernels["measured"]
        furthest = ratio.loc[np.log(ratio).abs().nlargest(_WORST).index]
        worst.append(
            f"{comparison.machine}: " + ", ".join(f"{kernel} x{value:.2f}" for kernel, value in furthest.items())
        )
    print("\nfurthest off, simulated / measured:", *worst, sep="\n")
    print(json.dumps({"machines": by_kernel, "rows": by_row}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
