"""Dispatch of jobs to several clusters with predicted relative speeds: the share of the ideal's gain that is kept.

Jobs are workloads of LLNL's table of relative speeds (measured, one campaign: borax to tioga), each with the nodes and
the time of a job of KTH-SP2 at speed 1; clusters are dane (514 nodes), mammoth (64), tioga (30; CPUs and GPUs) and
matrix (26). Each cluster has a queue of its own (EASY). Predictions of a cluster's column: perfect ones; ours, from
1, 3 and 5% of its rows (at least 8), the speeds on borax and boraxo and the workload's description; the average of the
application, and of the cluster, over the same rows. Speeds below 0.1 are missing in the table, not at random.

0%: no run of the application on any machine but its speed on borax; all runs of all other applications are known. By
the forest of the vector model, and by typical machine effects (what source models say where nothing describes a
machine). Mean RAJAPerf ratio: a cluster is as much faster than dane as its node is in the mean over kernels (geometric,
per element of a node); of these clusters dane and tioga's GPUs have RAJAPerf results, all others count like dane, and a
workload is on dane as fast as on borax.

Workloads of Laghos have speeds on GPUs too (portable), all others run on CPUs only; the last part takes Laghos for
GPU-only. What is not here: tuolumne (no speeds), and the log and limits of their study.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from real_fleets import WORKLOADS, kernels, llnl_tables
from transfer_data import data_folder

from perf_assets.cli.support.dispatch import means
from perf_assets.core.shots import Shots
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.samples import Examples
from perf_assets.features.vectors import vector_table
from perf_assets.models.source.typical import TypicalTimes
from perf_assets.models.vectors.methods import fit_method
from perf_assets.scheduling.dispatch import DispatchExperiment, Rule, SpeedTable, sweep
from perf_assets.scheduling.simulate import Machine
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.workflows.scheduling.dispatch import predicted_speeds

CLUSTERS = Machine("dane", 514), Machine("mammoth", 64), Machine("tioga", 30), Machine("matrix", 26)
KNOWN = ["borax", "boraxo"]
SHOTS = ("1%", "3%", "5%")
LOADS = (0.6, 0.8, 1.0)
GPU_ONLY, GPU_ONLY_LOAD = "laghos", 0.1
FOREST, TYPICAL, RAJAPERF = "ours, 0%, vector forest", "ours, 0%, typical machine", "mean RAJAPerf ratio"
HAVE_RAJAPERF = {"dane": "spr-ddr", "tioga-gpu": "epyc-mi250x"}
"""Ways whose hardware has RAJAPerf results, and its name there."""


def without_rows(folder: Path, frame: pd.DataFrame, ways: Sequence[str]) -> dict[str, np.ndarray]:
    """Speeds of all rows on each way, predicted without any run of the application elsewhere than on the known one."""
    samples = vector_table(llnl_tables(folder)["second"], WORKLOADS)
    place = {name: row for row, name in enumerate(samples.configurations)}
    keys = frame[list(WORKLOADS.key)].astype(str).agg(" ".join, axis=1).tolist()
    rows = np.array([place.get(key, -1) for key in keys])
    targets = [samples.machines.index(way) for way in ways]
    known = samples.machines.index(KNOWN[0])
    ratios = {name: np.full((len(samples.configurations), len(ways)), np.nan) for name in (FOREST, TYPICAL)}
    for app in np.unique(samples.apps):
        train, test = samples.at(samples.apps != app), samples.at(samples.apps == app)
        asked = test.where(test.source == known)
        of_app = np.flatnonzero(samples.apps == app)[asked.row]
        forest = fit_method("random_forest", train, 0, VectorSettings()).predict(asked)
        ratios[FOREST][of_app] = forest[:, targets] - forest[:, [known]]
        is_known = (np.arange(len(samples.machines)) == known)[:, None]
        own = replace(test.paired, log_seconds=np.where(is_known, test.paired.log_seconds, np.nan))
        effects = TypicalTimes.fit(train.paired)
        for column, target in enumerate(targets):
            examples = Examples(np.full(len(asked), known), np.full(len(asked), target), of_app)
            ratios[TYPICAL][of_app, column] = effects.predict(own, examples)
    speed = frame[KNOWN[0]].to_numpy(float)[:, None]
    # Who ran on one machine only has no row among the samples, and no cluster to go to.
    return {name: np.where(rows[:, None] < 0, np.nan, speed / np.exp(values[rows])) for name, values in ratios.items()}


def by_rajaperf(folder: Path, frame: pd.DataFrame, ways: Sequence[str]) -> np.ndarray:
    """Speeds of all rows on each way by the mean ratio of kernel times to those of dane."""
    samples = kernels(folder)
    times = {way: samples.log_seconds[samples.machines.index(name)] for way, name in HAVE_RAJAPERF.items()}
    ratios = {way: float(np.exp(np.nanmean(times["dane"] - own))) for way, own in times.items()}
    print(f"mean RAJAPerf ratio to dane: {', '.join(f'{way} {ratio:.2f}' for way, ratio in ratios.items())}")
    return np.outer(frame[KNOWN[0]].to_numpy(float), [ratios.get(way, 1.0) for way in ways])


def show(jobs: int, rows: Sequence[Mapping[str, Any]], kind: str = "") -> None:
    """A line per prediction and rule."""
    for row in rows:
        kept = row["gain_kept_ratio"]
        share = "" if kept is None else (f"{kept:6.0%} of the ideal's gain "
                                         f"({row['gain_kept_min']:.0%} to {row['gain_kept_max']:.0%})")  # fmt: skip
        print(f"{jobs:7,} jobs, load {row['load']:.1f}{kind}, {row['prediction']:26s} by {row['rule']:10s} "
              f"turnaround {row['turnaround_mean_s']:10,.0f} s {share}")  # fmt: skip


def main() -> None:
    """Predict, dispatch, print the means and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of jobs and of shots")
    parser.add_argument("--jobs", type=int, nargs="+", default=[25_000], help="numbers of jobs")
    parser.add_argument("--shots", nargs="*", default=list(SHOTS), help="shares of rows that are learned from")
    parser.add_argument("--quick", action="store_true", help="two clusters, one load, few jobs, one draw")
    given = parser.parse_args()
    loads, clusters = LOADS, CLUSTERS
    if given.quick:
        given.seeds, given.jobs, given.shots, loads, clusters = 1, [400], ["5%"], (0.8,), CLUSTERS[:2]
    folder = data_folder()
    frame = pd.read_csv(folder / "llnl_relative" / "relative_speed.csv")
    # One campaign: quartz, ruby and lassen were measured by another method.
    frame = frame.drop(columns=["quartz", "ruby", "lassen"])
    frame = frame[frame[KNOWN[0]].notna()].reset_index(drop=True)
    table = SpeedTable.of(frame, clusters)
    unseen = {**without_rows(folder, frame, table.ways), RAJAPERF: by_rajaperf(folder, frame, table.ways)}
    predicted = []
    for seed in range(given.seeds):
        print(f"shots drawn with seed {seed}")
        drawn = {
            f"{name}, {text}": speed
            for text in given.shots
            for name, speed in predicted_speeds(frame, table.ways, KNOWN, Shots.parse(text), seed, print).items()
        }
        predicted.append({**unseen, **drawn})
    errors = {
        name: float(np.nanmedian([np.abs(draw[name][table.rows] / table.speed - 1) for draw in predicted]))
        for name in predicted[0]
    }
    for name, error in errors.items():
        print(f"median error of speeds, {name}: {error:.1%}")
    log = read_trace(next((folder / "swf").glob("KTH-SP2*")))
    on_gpus = SpeedTable.of(frame, clusters, [GPU_ONLY])
    found, gpu_only, speed = {}, {}, {}
    for count in given.jobs:
        # A log has so many jobs: more of them are the whole log again.
        jobs = log.repeated(-(-count // len(log))).window(f"0..{count}")
        experiment = DispatchExperiment(table, jobs, clusters)
        asked = [{name: values[table.rows] for name, values in draw.items()} for draw in predicted]
        found[count] = means(sweep(experiment, asked, loads, given.seeds))
        show(count, found[count])
        asked = [{name: values[on_gpus.rows] for name, values in draw.items()} for draw in predicted]
        others = DispatchExperiment(on_gpus, jobs, clusters)
        gpu_only[count] = means(sweep(others, asked, [GPU_ONLY_LOAD], given.seeds))
        show(count, gpu_only[count], f", {GPU_ONLY} on GPUs only")
        once = experiment.draw(loads[-1], 0)
        started = process_time()
        once.schedule(Rule.TURNAROUND, once.expected(table.speed))
        speed[count] = len(jobs) / (process_time() - started)
        print(f"{speed[count]:,.0f} jobs per second of processor time at load {loads[-1]:g}")
    print(json.dumps({"policies": found, f"{GPU_ONLY} on GPUs only": gpu_only, "median_speed_error": errors,
                      "jobs_per_second": speed, "seeds": given.seeds, "quick": given.quick}))  # fmt: skip


if __name__ == "__main__":
    main()
