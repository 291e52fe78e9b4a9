"""Does ingestion scale? N small bundles of the simulated fleet end to end, then 2 N, then a look that finds no news.

The bundles are application profiles of `epyc-vm`: one `perf stat` file of about 1 kB each, all of one machine, so that
one ledger, one record and one set of derived tables hold them all. Each size has its own fresh lake and Dagster home in
a temporary directory and its own process, so that its peak memory is its own.

End to end is landing (writing the files, manifest, rename), the record (verifying and reading every bundle, Parquet)
and the warehouse (loading, checks, features); simulating the runs is not counted. Looking again is what
`perf-assets ingest` does first: what is pending, and is the warehouse behind. It is compared with the record and
warehouse part alone.

Last line: one JSON object. Goals: time at most 2.2 times for twice the bundles, peak memory less than 20% more, looking
again at most 2% of ingesting.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from perf_assets.demo.fleet import fleet_bundles
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.workflows.fleet import open_warehouse
from perf_assets.workflows.landing.ingest import pending

_MACHINE = "epyc-vm"
_BUNDLES_PER_SCALE = 50
"""At least as many profiles has the machine for each unit of the fleet's scale, up to a scale of 400."""
_GOALS = {"growth_10k_to_20k": 2.2, "memory_growth": 0.2, "rescan_share": 0.02}
_LOOKS = 3

Figures = dict[str, float]


def profiles(count: int) -> Iterator[SimulatedBundle]:
    """The first `count` profiles; the mix of applications is the same for every count."""
    bundles = fleet_bundles(max(count / _BUNDLES_PER_SCALE, 1.0), seed=0, machines=[_MACHINE])
    return islice((bundle for bundle in bundles if bundle.facts.kind == "profile"), count)


def land_and_ingest(count: int) -> Figures:
    """Seconds of landing and of ingesting, and peak memory in MB."""
    # Imported before the clock starts, for every size alike.
    from perf_assets.defs.operate.launch import ingest_machines

    lake = Lake.default()
    landing_seconds, landed_count = 0.0, 0
    for bundle in profiles(count):
        start = time.perf_counter()
        land(lake, bundle.facts, bundle.name, bundle.write)
        landing_seconds += time.perf_counter() - start
        landed_count += 1
    start = time.perf_counter()
    list(ingest_machines([_MACHINE], lambda machine: None))
    ingestion_seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = open_warehouse(lake).load_machine(_MACHINE)
    if landed_count != count or rows["raw_landing__bundles"] != count:
        raise SystemExit(f"{count} bundles asked for, {landed_count} landed, {rows['raw_landing__bundles']} ingested")
    return {
        "landing_seconds": landing_seconds,
        "ingestion_seconds": ingestion_seconds,
        "peak_mb": peak,
        "counters": rows["raw_profiles__counters"],
        "configurations": rows["core_runs__features"],
    }


def look_again(count: int) -> Figures:
    """Seconds to find out that nothing is new."""
    lake = Lake.default()
    seconds = []
    for _ in range(_LOOKS):
        start = time.perf_counter()
        for machine in lake.machines():
            todo = pending(lake, machine)
            # A few bundles of the fleet are damaged; ingestion tries those again, as they may have been mended.
            is_behind = open_warehouse(lake).is_behind(machine)
            if todo.new_count or is_behind or todo.landed_count != count:
                raise SystemExit(f"{machine} has news: {todo.new_count} of {todo.landed_count}, behind: {is_behind}")
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds)}


_TASKS: dict[str, Callable[[int], Figures]] = {"ingest": land_and_ingest, "look": look_again}


def in_own_process(task: str, count: int, directory: Path) -> Figures:
    """Figures of a task that runs in its own process, on the lake in `directory`."""
    home = directory / "dagster_home"
    if not home.is_dir():
        home.mkdir(parents=True)
        shutil.copy(Path(__file__).resolve().parents[1] / "dagster_home" / "dagster.yaml", home)
    environment = {**os.environ, "PERF_ASSETS_LAKE": str(directory / "lake"), "DAGSTER_HOME": str(home)}
    command = [sys.executable, __file__, "--bundles", str(count), "--task", task]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(result.stdout.splitlines()[-1])
    return figures


def compare(count: int) -> dict[str, float]:
    """Print the table; the figures of the last line."""
    print(f"{'bundles':>8}{'landing s':>11}{'ingestion s':>13}{'together s':>12}{'peak MB':>9}{'counters':>10}")
    found: list[Figures] = []
    look: Figures = {}
    for size in (count, 2 * count):
        with tempfile.TemporaryDirectory(prefix="ingest-scale-") as directory:
            figures = in_own_process("ingest", size, Path(directory))
            if size == count:
                look = in_own_process("look", size, Path(directory))
        figures["seconds"] = figures["landing_seconds"] + figures["ingestion_seconds"]
        found.append(figures)
        print(
            f"{size:8}{figures['landing_seconds']:11.1f}{figures['ingestion_seconds']:13.1f}"
            f"{figures['seconds']:12.1f}{figures['peak_mb']:9.0f}{figures['counters']:10.0f}",
            flush=True,
        )
    small, large = found
    print(f"looking again at {count} bundles: {look['seconds']:.3f} s")
    return {
        "growth_10k_to_20k": round(large["seconds"] / small["seconds"], 3),
        "memory_growth": round(large["peak_mb"] / small["peak_mb"] - 1, 3),
        "rescan_share": round(look["seconds"] / small["ingestion_seconds"], 4),
    }


def main() -> int:
    """Print the table, the goals and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bundles", type=int, default=10_000, help="the smaller number of bundles")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    parser.add_argument("--task", choices=sorted(_TASKS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not 1 <= given.bundles <= 20_000:
        parser.error("--bundles must be from 1 to 20000")
    if given.task:
        print(json.dumps(_TASKS[given.task](given.bundles)))
        return 0
    figures = compare(20 if given.quick else given.bundles)
    print(f"\n{'figure':20}{'reached':>9}{'goal':>8}  met")
    for name, goal in _GOALS.items():
        print(f"{name:20}{figures[name]:9.3f}{goal:8.2f}  {'yes' if figures[name] <= goal else 'NO'}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
