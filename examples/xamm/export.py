"""Make the tables of this folder from a lake of the simulated fleet: python examples/xamm/export.py LAKE."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.fleet.samples import (
    KERNELS_QUERY,
    RUNS_QUERY,
    SPECS_QUERY,
    FleetTables,
    fleet_samples,
    kernel_times,
    uses_device,
)
from perf_assets.features.samples import PairedSamples
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse

FOLDER = Path(__file__).resolve().parent
MACHINES = ["quartz", "ruby", "dane", "lassen", "corona", "h100"]
MOST_ROWS = {"train": 800, "test": 300}
DIGITS = "%.4g"


def main() -> None:
    """Write machines.csv, app-train.csv and app-test.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder to write to")
    parser.add_argument("--held-out", default="Laghos", metavar="APP", help="application of the test table")
    parser.add_argument("--all-pairs", action="store_true", help="pairs with GPUs as well, not only CPU to CPU")
    given = parser.parse_args()
    warehouse = Warehouse(Lake(given.lake))
    tables = FleetTables(*(warehouse.frame(query) for query in (RUNS_QUERY, KERNELS_QUERY, SPECS_QUERY)))
    tables = tables.of(MACHINES)
    write_benchmarks(kernel_times(tables.kernels), given.to)
    write_applications(fleet_samples(tables), given.to, given.held_out, given.all_pairs)


def write_benchmarks(times: pd.DataFrame, folder: Path) -> None:
    """A row for each machine and setting, a column with the seconds of each kernel."""
    rows = times.rename_axis(columns="machine").stack().rename("seconds").reset_index()
    # Actual problem sizes differ a little by kernel: the smallest of each is one setting, and so on.
    rank = rows.groupby("kernel")["problem_size"].rank("dense").astype(int)
    rows["size"] = rank.map({1: "small", 2: "medium", 3: "large"})
    rows["is_simulated"] = 1
    wide = rows.pivot(index=["machine", "placement", "size", "is_simulated"], columns="kernel", values="seconds")
    wide.reset_index().to_csv(folder / "machines.csv", index=False, float_format=DIGITS)


def write_applications(samples: PairedSamples, folder: Path, held_out: str, all_pairs: bool) -> None:
    """Pairs of runs: features on the source machine and the relative time, no application in both tables."""
    examples = samples.examples()
    on_device = uses_device(samples)
    if not all_pairs:
        examples = examples.where(~on_device[examples.source] & ~on_device[examples.target])
    in_test = samples.apps[examples.row] == held_out
    names = [feature.name for feature in XAMM_FEATURES]
    columns = [samples.counter_names.index(name) for name in names]
    machines = np.array(samples.machines)
    for part, chosen in (("train", ~in_test), ("test", in_test)):
        some = examples.where(np.flatnonzero(chosen)).at_most(MOST_ROWS[part], seed=0)
        features = samples.counters[some.source, some.row][:, columns]
        table = pd.DataFrame(features, columns=names)
        table.insert(0, "app", samples.apps[some.row])
        table.insert(1, "source_machine", machines[some.source])
        table.insert(2, "target_machine", machines[some.target])
        table.insert(3, "is_simulated", 1)
        table["relative_time"] = np.exp(samples.log_relative_time(some))
        table = table.sort_values(["app", "source_machine", "target_machine", "relative_time"])
        table.to_csv(folder / f"app-{part}.csv", index=False, float_format=DIGITS)


if __name__ == "__main__":
    main()
