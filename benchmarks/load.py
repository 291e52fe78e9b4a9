"""What do 1, 10 and 100 times the data cost? The simulated fleet lands, is ingested, trains and adapts, at each scale.

Every scale has its own lake and Dagster home in a temporary directory, and every command its own process: landing, then
`perf-assets ingest`, `train` and `adapt`. Time is all that a user waits for, start of the commands included.
Simulating what a run leaves behind is not counted: files are written first, and landing copies them. Seconds by stage
are those of Dagster's steps. Peak memory is the largest sum of the resident memory of a command and its children,
looked at five times a second.

By default the machines are one of each kind of bundle: `epyc-vm` (a profile for each configuration), `tioga` and `h100`
(tables of samples), all with RAJAPerf. `--machines all` takes the whole fleet; at scale 100 that is some 90 GB in eight
million files, and takes many hours (the second table tells how many). Of the formats of profiles, a few hundred each
are landed and ingested beside: what one profile more costs. From these constants follow the whole fleet at scale 100,
and a million profiles of 100 machines.

Last line: one JSON object. Goals from scale 10 to 100: time at most 11 times, peak memory at most 2 times. Takes some
25 minutes on two quiet cores, and 3 GB of disk.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from load_figures import (
    LANDING,
    REST,
    Load,
    Stage,
    growth,
    profile_costs,
    show_costs,
    show_larger,
    show_scales,
    together,
    training_gb,
    training_hours,
)

from perf_assets.demo.fleet import APPLICATIONS, LATER_MACHINES, fleet_bundles, fleet_machines
from perf_assets.features.fleet.samples import KERNEL_COLUMNS, MOST_CONFIGURATIONS, RUN_COLUMNS
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import copying, land

MACHINES = ("epyc-vm", "tioga", "h100")
FORMATS = {
    "HPCToolkit XML": (("quartz",), 1.0),
    "HPCToolkit v4": (("ruby", "corona", "lassen"), 1.0),
    "PAPI": (("dane",), 1.0),
    "perf stat": (("epyc-vm",), 10.0),
}
"""Formats of profiles, with the machines that have them, and a scale at which these have some hundreds."""
SCALES = (1.0, 10.0, 100.0)
FEW = 0.2
"""Of that scale: what these cost less is what one profile costs."""
MILLION, HUNDRED = 1_000_000, 100
GOALS = {"time_growth_10_to_100": 11.0, "memory_growth_10_to_100": 2.0}
_SEEDS = 2
"""Draws of shots behind a learning curve, as in the demo."""
_LOOK_SECONDS = 0.2
_STAGES = {
    "raw_landing__bundles": "record",
    "check_bundles": "record",
    "load_warehouse": "warehouse",
    "check_tables": "warehouse",
    "derive_features": "features",
    "check_features": "features",
    "model_amm__machines": "AMMs",
    "model_amm__encoder": "AMMs",
    "out_amm__machines": "AMMs",
    "train_source_models": "source models",
    "model_source__inputs": "source models",
    "model_target__adapted": "adapt: models",
    "eval_target__verdicts": "adapt: models",
    "eval_transfer__scores": "adapt: scores",
    "check_target": "adapt: pages",
    "out_report__machine": "adapt: pages",
}
"""By step of Dagster; other steps keep their names."""


Look = tuple[float, float, float]
"""A moment, memory in MB, and processor time of the command so far."""


class Measuring:
    """Commands on one lake, and what they took."""

    def __init__(self, directory: Path) -> None:
        self._lake, home = directory / "lake", directory / "dagster_home"
        home.mkdir(parents=True)
        shutil.copy(Path(__file__).resolve().parents[1] / "dagster_home" / "dagster.yaml", home)
        mlflow = f"sqlite:///{self._lake}/mlflow/mlflow.db"
        own = {"PERF_ASSETS_LAKE": str(self._lake), "DAGSTER_HOME": str(home), "MLFLOW_TRACKING_URI": mlflow}
        self._environment = os.environ | own
        self._looks: list[Look] = []
        """Of the command that runs, or ran last."""
        self._stages: dict[str, list[Stage]] = {}
        """Parts of each stage."""

    def land(self, scale: float, machines: Sequence[str], kind: str) -> int:
        """Number of bundles that landed, of one kind or of all."""
        task = (sys.executable, __file__, "--scales", f"{scale:g}", "--machines", ",".join(machines))
        whole, output = self._run(*task, "--task", f"land {kind}")
        found = json.loads(output)
        self._add(Stage(LANDING, found["seconds"], found["cpu_seconds"], whole.peak_mb))
        return int(found["bundles"])

    def command(self, *arguments: str) -> str:
        """Standard output of `perf-assets`."""
        start = time.time()
        whole, output = self._run(str(Path(sys.executable).with_name("perf-assets")), *arguments)
        looks = self._looks
        _, steps = self._run(sys.executable, __file__, "--task", "steps")
        parts = [step for step in json.loads(steps) if start <= step[1] <= start + whole.seconds]
        inside = [_seen(looks, _STAGES.get(name, name), begin, stop) for name, begin, stop in parts]
        for stage in inside:
            self._add(stage)
        seconds, cpu = sum(stage.seconds for stage in inside), sum(stage.cpu_seconds for stage in inside)
        between = [memory for at, memory, _ in looks if not any(begin <= at <= stop for _, begin, stop in parts)]
        self._add(Stage(REST, whole.seconds - seconds, max(whole.cpu_seconds - cpu, 0.0), max(between, default=0.0)))
        return output

    def load(self, scale: float, bundles: int, runs: int) -> Load:
        """All of it."""
        landed, stored = _size(self._lake / "landing"), _size(self._lake)
        stages = tuple(together(parts) for parts in self._stages.values())
        return Load(scale, bundles, runs, landed[0], landed[1], stored[1] - landed[1], stages)

    def _add(self, stage: Stage) -> None:
        self._stages.setdefault(stage.name, []).append(stage)

    def _run(self, *command: str) -> tuple[Stage, str]:
        """A command as a whole, and its standard output; one that fails ends the benchmark."""
        before, start, self._looks = os.times(), time.time(), []
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(command, env=self._environment, stdout=output, stderr=errors)
            ended = threading.Event()
            watcher = threading.Thread(target=self._watch, args=(process.pid, ended))
            watcher.start()
            code = process.wait()
            ended.set()
            watcher.join()
            for file in (output, errors):
                file.seek(0)
            if code:
                raise SystemExit(f"{' '.join(command)} ended with {code}:\n{errors.read()[-3000:]}")
            after, end = os.times(), time.time()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            return Stage(
                "", end - start, used, max((memory for _, memory, _ in self._looks), default=0.0)
            ), output.read()

    def _watch(self, pid: int, ended: threading.Event) -> None:
        while not ended.wait(_LOOK_SECONDS):
            try:
                process = psutil.Process(pid)
                family = [process, *process.children(recursive=True)]
                memory = sum(one.memory_info().rss for one in family) / 1e6
                self._looks.append((time.time(), memory, sum(sum(one.cpu_times()[:4]) for one in family)))
            except psutil.NoSuchProcess:
                continue


def _seen(looks: Sequence[Look], name: str, start: float, end: float) -> Stage:
    """A part of a command, from the last look before it to the first after it."""
    before = [look for look in looks if look[0] <= start][-1:] or list(looks[:1])
    after = [look for look in looks if look[0] >= end][:1] or list(looks[-1:])
    peak = max((memory for at, memory, _ in looks if before[0][0] <= at <= after[0][0]), default=0.0)
    return Stage(name, end - start, after[0][2] - before[0][2], peak)


def _size(folder: Path) -> tuple[int, float]:
    """Files, and MB that they take on disk."""
    found = [(Path(path) / name).lstat() for path, _, names in os.walk(folder) for name in names]
    return len(found), sum(512 * file.st_blocks for file in found) / 1e6


def measure(scale: float, machines: Sequence[str], *, with_models: bool = True) -> Load:
    """All stages at one scale; those of models take minutes at any scale."""
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        measuring = Measuring(Path(folder))
        bundles = measuring.land(scale, machines, "all")
        ingested = json.loads(measuring.command("ingest", "--json"))
        known = sum(row["bundles"] + row["quarantined"] for row in ingested["machines"])
        if ingested["failures"] or known != bundles:
            raise SystemExit(f"{bundles} bundles landed, {known} are known: {ingested}")
        if with_models:
            _train_and_adapt(measuring, machines)
        return measuring.load(scale, bundles, sum(row["runs"] for row in ingested["machines"]))


def _train_and_adapt(measuring: Measuring, machines: Sequence[str]) -> None:
    measuring.command("train", "--json")
    late = [machine for machine in LATER_MACHINES if machine in machines]
    chosen = [argument for machine in late for argument in ("--machine", machine)]
    adapted = json.loads(measuring.command("adapt", *chosen, "--seeds", str(_SEEDS), "--json"))
    if not all(adapted["registered"].values()):
        raise SystemExit(f"not every machine has a champion: {adapted['registered']}")


def profiles_only(scale: float, machine: str) -> Load:
    """A machine that lands and ingests its profiles and nothing else."""
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        measuring = Measuring(Path(folder))
        bundles = measuring.land(scale, [machine], "profile")
        measuring.command("ingest", "--json")
        return measuring.load(scale, bundles, bundles)


def land_fleet(scale: float, machines: Sequence[str], kind: str) -> dict[str, float]:
    """Land simulated bundles as files that are there already; seconds and processor time of landing alone."""
    lake = Lake.default()
    lake.root.mkdir(parents=True)
    bundles, seconds, cpu = 0, 0.0, 0.0
    for bundle in fleet_bundles(scale, 0, machines):
        if kind not in ("all", bundle.facts.kind):
            continue
        with tempfile.TemporaryDirectory(dir=lake.root.parent) as folder:
            bundle.write(Path(folder))
            start, used = time.perf_counter(), time.process_time()
            land(lake, bundle.facts, bundle.name, copying(Path(folder)))
            seconds, cpu = seconds + time.perf_counter() - start, cpu + time.process_time() - used
        bundles += 1
    return {"bundles": bundles, "seconds": seconds, "cpu_seconds": cpu}


def finished_steps() -> list[tuple[str, float, float]]:
    """Steps of all runs in the Dagster home: name, start and end in seconds since 1970."""
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        runs = [record.dagster_run.run_id for record in instance.get_run_records()]
        steps = [step for run in runs for step in instance.get_run_step_stats(run)]
    return [
        (s.step_key, s.start_time, s.end_time) for s in steps if s.start_time is not None and s.end_time is not None
    ]


def show_formats(machines: Sequence[str], largest: Load) -> None:
    """What a profile of each format costs, and what follows for lakes that were not measured."""
    found = {
        name: profile_costs(profiles_only(FEW * scale, own[0]), profiles_only(scale, own[0]))
        for name, (own, scale) in FORMATS.items()
    }
    show_costs(found)
    configurations = sum(round(application.configuration_count * max(SCALES)) for application in APPLICATIONS)
    for name, costs in found.items():
        count = len(FORMATS[name][0])
        show_larger(f"whole fleet at scale {max(SCALES):g}, {name}", costs, count * configurations, count)
    for name, costs in found.items():
        show_larger(f"a million profiles of {HUNDRED} machines, {name}", costs, MILLION, HUNDRED)
    folds, more = len(machines) + len(APPLICATIONS), HUNDRED + len(APPLICATIONS)
    configurations = min(MILLION // HUNDRED, len(APPLICATIONS) * MOST_CONFIGURATIONS)
    memory = training_gb(HUNDRED, configurations, len(RUN_COLUMNS) + len(KERNEL_COLUMNS))
    print(
        f"AMMs and source models of {HUNDRED} machines: {training_hours(largest, folds, more):.1f} h (as {folds} folds "
        f"took at scale {largest.scale:g}), {memory:.1f} GB in their largest arrays; "
        f"{(HUNDRED - 1) * MILLION / 1e6:.0f} million rows of pairs of machines in the warehouse, if all ran the same"
    )


def main() -> int:
    """Print the tables, the goals and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", default=",".join(MACHINES), help="names with commas, or all")
    parser.add_argument("--scales", default=",".join(f"{scale:g}" for scale in SCALES), help="two or more, with commas")
    parser.add_argument("--quick", action="store_true", help="without models, figures without meaning")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    given = parser.parse_args()
    machines = fleet_machines() if given.machines == "all" else tuple(given.machines.split(","))
    scales = sorted(float(scale) for scale in given.scales.split(","))
    if given.task:
        name, _, kind = given.task.partition(" ")
        print(json.dumps(land_fleet(scales[0], machines, kind) if name == "land" else finished_steps()))
        return 0
    if len(scales) < 2:
        parser.error("--scales needs two at least: growth is from the last but one to the last")
    if given.quick:
        machines, scales = MACHINES[:1], [0.02, 0.04]
    loads = []
    for scale in scales:
        loads.append(measure(scale, machines, with_models=False) if given.quick else measure(scale, machines))
        print(f"scale {scale:g}: {loads[-1].seconds:.0f} s, {loads[-1].peak_mb:.0f} MB", flush=True)
    show_scales(loads)
    if not given.quick:
        show_formats(machines, loads[-1])
    figures = growth(*loads[-2:])
    for name, goal in GOALS.items():
        print(f"{name}: {figures[name]} (goal: at most {goal:g})")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
