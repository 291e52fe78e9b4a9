"""Measured fleets as aligned samples: RAJAPerf kernels, relative speeds at LLNL, SPEChpc on two processors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.features.samples import PairedSamples
from perf_assets.features.tables.paired import Roles, pair_tables
from perf_assets.readers.read import read

FLEET = {
    "quartz": ("quartz_cali/gcc_O3",),
    "lassen": ("lassen_cali/8388608",),
    "epyc-vm": ("epyc-vm_2024/t2_s1000000", "epyc-vm_2024/t2_s4000000"),
}
"""Machines whose profiles are read, beside those of llnl_fleet: one core, one V100, two cores of a virtual machine."""
ODD = (("epyc-mi250x", "Apps_EDGE3D"), ("epyc-mi300a", "Apps_MASS3DEA"))
"""Cells that PROVENANCE.md calls odd; they are left out."""
APPLICATIONS = ("Apps", "Polybench")
"""Groups of kernels that play the applications; the others are the benchmark."""
OTHER_WORK = ("GEMM", "2MM", "3MM", "MAT_MAT_SHARED", "FLOYD_WARSHALL", "HALO")
"""Kernels whose work per element depends on the size."""
CAMPAIGNS = {
    "first": ("quartz", "ruby", "lassen"),
    "second": ("borax", "boraxo", "dane", "mammoth", "matrix-cpu", "tioga-cpu", "tioga-gpu"),
}
"""Machines of llnl_relative that were measured in the same way."""
WORKLOADS = Roles(("app", "args", "ranks"), "app", "time")
HOLDS_THE_ANSWER = r"^(mean|sum)_|ENERGY"
"""Columns of SPEChpc that are rates or energies: they hold the source's own run time."""


def kernels(folder: Path) -> PairedSamples:
    """Time per element of a node, kernels of two groups as applications; H100 has no kernel of the other groups."""
    found = pd.concat([_transcribed(folder), *(_profiled(folder, name, parts) for name, parts in FLEET.items())])
    found["seconds"] /= found["elements"]
    found = found[~found["kernel"].str.contains("|".join(OTHER_WORK)) & (found["seconds"] > 0)]
    odd = pd.MultiIndex.from_frame(found[["machine", "kernel"]]).isin(ODD)
    found = found[~odd]
    one = found.sort_values("seconds").groupby(["machine", "kernel"], as_index=False).first()
    seconds = one.pivot(index="kernel", columns="machine", values="seconds")
    group = seconds.index.str.split("_").str[0]
    is_benchmark = np.asarray(~group.isin(APPLICATIONS))
    kept = np.where(is_benchmark, seconds.notna().all(axis=1), seconds.notna().sum(axis=1) >= 2)
    seconds, is_benchmark = seconds[kept], is_benchmark[kept]
    times = np.log(seconds.to_numpy(float).T)
    work = one.assign(bytes=one["bytes"] / one["elements"], flops=one["flops"] / one["elements"])
    described = work.groupby("kernel")[["bytes", "flops"]].median().reindex(seconds.index).to_numpy(float)
    everywhere = np.broadcast_to(described, (len(times), *described.shape))
    return PairedSamples(
        machines=tuple(map(str, seconds.columns)),
        counter_names=("bytes_per_element", "flops_per_element", "nanoseconds_per_element"),
        configurations=tuple(seconds.index),
        apps=seconds.index.to_numpy(np.str_),
        is_benchmark=is_benchmark,
        counters=np.concatenate([everywhere, 1e9 * np.exp(times)[:, :, None]], axis=2),
        log_seconds=times,
    )


def _transcribed(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "rajaperf" / "llnl_fleet" / "timings.csv")
    return pd.DataFrame(
        {
            "machine": table["machine"],
            "kernel": table["kernel"],
            "seconds": table["seconds_avg_per_rank"] / table["reps"],
            "elements": table["problem_size"] * table["ranks"],
            "bytes": table["bytes_per_rep"] * table["ranks"],
            "flops": table["flops_per_rep"] * table["ranks"],
        }
    )


def _profiled(folder: Path, machine: str, parts: Sequence[str]) -> pd.DataFrame:
    timings = [t for part in parts for t in read(folder / "rajaperf" / part, "rajaperf").timings if t.is_valid]
    rows = [
        {
            "machine": machine,
            "kernel": t.kernel,
            "seconds": t.seconds_per_rep,
            "elements": t.problem_size,
            "bytes": t.bytes_per_rep,
            "flops": t.flops_per_rep,
        }
        for t in timings
    ]
    return pd.DataFrame(rows)


def llnl_campaigns(folder: Path) -> dict[str, PairedSamples]:
    """Relative times of workloads by campaign; there are no counters, arguments and ranks describe a workload."""
    return {campaign: pair_tables(tables, WORKLOADS) for campaign, tables in llnl_tables(folder).items()}


def llnl_tables(folder: Path) -> dict[str, dict[str, pd.DataFrame]]:
    """Relative time of workloads by campaign and machine; what ran less than 0.1 times as fast is missing."""
    table = pd.read_csv(folder / "llnl_relative" / "relative_speed.csv", dtype={"args": str})
    return {
        campaign: {
            machine: table.loc[table[machine] >= 0.1, ["app", "args", "ranks"]].assign(time=1 / table[machine])
            for machine in machines
        }
        for campaign, machines in CAMPAIGNS.items()
    }


def spechpc(folder: Path) -> PairedSamples:
    """Times and counters of six applications on two processors."""
    tables: Mapping[str, pd.DataFrame] = {
        path.stem: pd.read_csv(path).groupby(["app", "ranks"], as_index=False).median(numeric_only=True)
        for path in sorted((folder / "spechpc").glob("*.csv"))
    }
    return pair_tables(tables, Roles(("app", "ranks"), "app", "runtime_s", (), (HOLDS_THE_ANSWER,)))
