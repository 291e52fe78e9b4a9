"""What do two Dask workers bring, and what does one cost? The transfer matrix of a small simulated fleet, three times.

The fleet's files are landed and ingested into a temporary lake; then all ordered pairs of its machines are scored as
`perf-assets evaluate pairs` does (same functions, fewer seeds): in this process, on a local Dask cluster of one worker,
and of two, with the same input and one thread for each process. Scores are compared value by value, all bits.

Start-up is told apart: starting the cluster, and a first pair in every process, which loads the libraries. What is
timed is from the first task to the last stored score. Two workers need two cores that nobody else uses.

Last line: one JSON object. Goals: two workers at least 1.7 times as fast as one; one at most 1.10 times as slow as this
process. Arguments: number of seeds (1), number of machines (6). Takes some minutes.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import yaml

from perf_assets.demo.fleet import fleet_bundles
from perf_assets.features.fleet.samples import fleet_samples
from perf_assets.features.samples import PairedSamples
from perf_assets.infra import profile, threads
from perf_assets.infra.fanout import run_task
from perf_assets.models.target.matrix import Pair, matrix, pairs
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land

MACHINES = ("quartz", "ruby", "dane", "corona", "lassen", "epyc-vm", "tioga", "h100")
SCALE = 0.3
GOALS = {"speedup_2_workers": "at least 1.7", "overhead_1_worker": "at most 1.10"}


@dataclass(frozen=True)
class Measured:
    """One way of doing all pairs."""

    start_seconds: float
    seconds: float
    cpu_seconds: float
    """Processor time of the process that computed longest: what `seconds` would be if nobody else used the cores."""
    scores: pd.DataFrame


def main(seeds: int, machines: int, scale: float = SCALE, most_pairs: int | None = None) -> None:
    """Print a line for each way, and the JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        samples = fleet(Path(folder), MACHINES[:machines], scale)
        todo = pairs(samples, seeds)[:most_pairs]
        print(
            f"{len(todo)} pairs of {len(samples.machines)} machines, {seeds} seeds, {os.cpu_count()} cores", flush=True
        )
        ways = {"in process": here(samples, todo)}
        for workers in (1, 2):
            ways[f"{workers} Dask workers"] = on_dask(samples, todo, Path(folder), workers)
    for name, found in ways.items():
        print(
            f"{name:15s} {found.seconds:7.2f} s ({found.cpu_seconds:.2f} s of processor time where most was used), "
            f"start-up {found.start_seconds:.2f} s, {len(found.scores)} scores"
        )
    alone, one, two = ways.values()
    figures = {
        "speedup_2_workers": round(one.seconds / two.seconds, 3),
        "overhead_1_worker": round(one.seconds / alone.seconds, 3),
        "identical": all(found.scores.equals(alone.scores) for found in (one, two)),
    }
    print("goals: " + ", ".join(f"{name} {goal}" for name, goal in GOALS.items()))
    print(json.dumps(figures))


def fleet(folder: Path, machines: tuple[str, ...], scale: float) -> PairedSamples:
    """Samples of the simulated fleet, through files, record and warehouse."""
    home = folder / "dagster_home"
    home.mkdir()
    own = Path(__file__).resolve().parents[1] / "dagster_home" / "dagster.yaml"
    (home / own.name).write_bytes(own.read_bytes())
    os.environ |= {"PERF_ASSETS_LAKE": str(folder / "lake"), "DAGSTER_HOME": str(home), profile.VARIABLE: "laptop"}
    from perf_assets.defs.operate.launch import ingest_machines
    from perf_assets.defs.resources import LakeResource

    for bundle in fleet_bundles(scale, 0, list(machines)):
        land(Lake.default(), bundle.facts, bundle.name, bundle.write)
    failed = [outcome.failure for outcome in ingest_machines(machines, lambda machine: None) if outcome.failure]
    if failed:
        raise SystemExit(f"ingestion failed: {failed[0]}")
    return fleet_samples(LakeResource().fleet().tables())


def here(samples: PairedSamples, todo: list[Pair]) -> Measured:
    """In this process, with one thread."""
    os.environ |= {profile.VARIABLE: "laptop", threads.VARIABLE: "1"}
    started = time.perf_counter()
    first_pair(samples, todo[0])
    return timed(samples, todo, time.perf_counter() - started, lambda: {"": time.process_time()})


def on_dask(samples: PairedSamples, todo: list[Pair], folder: Path, workers: int) -> Measured:
    """On so many workers of this machine."""
    from perf_assets.infra.clusters import close_clusters, dask_client

    with cluster_profile(folder, workers) as chosen:
        started = time.perf_counter()
        with dask_client(chosen) as client:
            client.wait_for_workers(workers)
            client.run(run_task, first_pair, samples, todo[0])
            try:
                used = partial(client.run, time.process_time)
                return timed(samples, todo, time.perf_counter() - started, used)
            finally:
                close_clusters()


@contextmanager
def cluster_profile(folder: Path, workers: int) -> Iterator[profile.DaskProfile]:
    """The shipped profile with another number of workers."""
    settings = yaml.safe_load((profile.FILES / "cluster.yaml").read_text())
    settings["cluster"] = {"local": {"workers": workers, "memory_per_worker": "4GB"}}
    path = folder / f"workers_{workers}.yaml"
    path.write_text(yaml.safe_dump(settings))
    os.environ[profile.VARIABLE] = str(path)
    chosen = profile.current_profile()
    assert isinstance(chosen, profile.DaskProfile)
    yield chosen


def first_pair(samples: PairedSamples, pair: Pair) -> None:
    """Loads and compiles whatever a first pair needs."""
    list(matrix(samples, [pair]))


def timed(
    samples: PairedSamples, todo: list[Pair], start_seconds: float, used: Callable[[], dict[str, float]]
) -> Measured:
    """All pairs, their scores in the order of the pairs; `used` is processor time so far, by process."""
    before, started = used(), time.perf_counter()
    found = dict(matrix(samples, todo))
    seconds, after = time.perf_counter() - started, used()
    scores = pd.concat([found[pair] for pair in todo], ignore_index=True)
    return Measured(start_seconds, seconds, max(after[name] - before[name] for name in after), scores)


if __name__ == "__main__":
    # This file has the name of a package that Dask imports.
    sys.path.remove(str(Path(__file__).resolve().parent))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=1)
    parser.add_argument("machines", nargs="?", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    given = parser.parse_args()
    main(*(1, 3, 0.04, 1) if given.quick else (given.seeds, given.machines))
