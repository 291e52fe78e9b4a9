"""Three little datasets: two with the same features and words, one with features of other names."""

from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.manifest import BundleFacts
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import Landing, land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import COLLECTED_AT

FACTORS = {"amg": 0.5, "cg": 1.0, "gmres": 2.0}
OTHER_NAMES = {"flops": "PAPI_FP", "bytes": "traffic", "ranks": "workers", "solver": "precon", "seconds": "duration"}


def runs(rows: int, seed: int, slowness: float = 1.0) -> pd.DataFrame:
    """Runs whose time follows from two numbers, the ranks and a word."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "flops": np.exp(random.normal(20, 2, rows)),
            "bytes": np.exp(random.normal(18, 2, rows)),
            "ranks": 2 ** random.integers(0, 5, rows),
            "solver": random.choice(list(FACTORS), rows),
        }
    )
    work = (frame["flops"] / 1e9) ** 0.6 * (frame["bytes"] / 1e8) ** 0.3 / frame["ranks"] ** 0.8
    noise = np.exp(random.normal(0, 0.03, rows))
    return frame.assign(seconds=slowness * work * frame["solver"].map(FACTORS) * noise)


def land_table(lake: Lake, frame: pd.DataFrame, machine: str, target: str, **facts: object) -> Landing:
    """Land a table of samples as CSV."""

    def write(folder: Path) -> None:
        frame.to_csv(folder / "table.csv", index=False)

    given = {"machine": machine, "kind": "samples", "target": target, "collected_at": COLLECTED_AT}
    return land(lake, BundleFacts.model_validate({**given, **facts}), None, write)


def land_three(lake: Lake) -> None:
    """`old` and `new` share features, `spmv` has others."""
    land_table(lake, runs(60, 1), "quartz", "seconds", dataset="old")
    land_table(lake, runs(24, 2, 9.0), "quartz", "seconds", dataset="new")
    land_table(lake, runs(30, 3, 2.0).rename(columns=OTHER_NAMES), "spmv", "duration")


def ingest(lake: Lake, *machines: str) -> Warehouse:
    """Read what landed into the record and the warehouse."""
    warehouse = Warehouse(lake)
    for machine in machines or lake.machines():
        ingest_machine(lake, machine, read_bundle)
        warehouse.load_machine(machine)
    return warehouse
