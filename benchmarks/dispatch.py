"""Dispatch of jobs to several clusters with predicted relative speeds: the share of the ideal's gain that is kept.

Jobs are workloads of LLNL's table of relative speeds (measured, one campaign: borax to tioga), each with the nodes and
the time of a job of KTH-SP2 at speed 1; clusters are dane (514 nodes), mammoth (64), tioga (30; CPUs and GPUs) and
matrix (26). Each cluster has a queue of its own (EASY). Predictions of a cluster's column: perfect ones; ours, from
1, 3 and 5% of its rows (at least 8), the speeds on borax and boraxo and the workload's description; the average of the
application, and of the cluster, over the same rows. Speeds below 0.1 are missing in the table, not at random.

What is not here: tuolumne (no speeds), the log and limits of their study, predictions without any row (only dane and
tioga's GPUs have RAJAPerf results).

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
from time import process_time

import numpy as np
import pandas as pd
from transfer_data import data_folder

from perf_assets.cli.support.dispatch import means
from perf_assets.core.shots import Shots
from perf_assets.scheduling.dispatch import DispatchExperiment, Rule, SpeedTable, sweep
from perf_assets.scheduling.simulate import Machine
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.workflows.scheduling.dispatch import predicted_speeds

CLUSTERS = Machine("dane", 514), Machine("mammoth", 64), Machine("tioga", 30), Machine("matrix", 26)
KNOWN = ["borax", "boraxo"]
SHOTS = ("1%", "3%", "5%")
LOADS = (0.6, 0.8, 1.0)


def main() -> None:
    """Predict, dispatch, print the means and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of jobs and of shots")
    parser.add_argument("--jobs", type=int, nargs="+", default=[25_000], help="numbers of jobs")
    parser.add_argument("--quick", action="store_true", help="two clusters, one load, few jobs, one draw")
    given = parser.parse_args()
    shots, loads, clusters = SHOTS, LOADS, CLUSTERS
    if given.quick:
        given.seeds, given.jobs, shots, loads, clusters = 1, [400], ("5%",), (0.8,), CLUSTERS[:2]
    frame = pd.read_csv(data_folder("llnl_relative") / "relative_speed.csv")
    # One campaign: quartz, ruby and lassen were measured by another method.
    frame = frame.drop(columns=["quartz", "ruby", "lassen"])
    frame = frame[frame[KNOWN[0]].notna()].reset_index(drop=True)
    table = SpeedTable.of(frame, clusters)
    predicted = []
    for seed in range(given.seeds):
        print(f"shots drawn with seed {seed}")
        predicted.append({
            f"{name}, {text}": speed[table.rows]
            for text in shots
            for name, speed in predicted_speeds(frame, table.ways, KNOWN, Shots.parse(text), seed, print).items()
        })  # fmt: skip
    errors = {
        name: float(np.nanmedian([np.abs(draw[name] / table.speed - 1) for draw in predicted])) for name in predicted[0]
    }
    log = read_trace(next(data_folder("swf").glob("KTH-SP2*")))
    found, speed = {}, {}
    for count in given.jobs:
        # A log has so many jobs: more of them are the whole log again.
        jobs = log.repeated(-(-count // len(log))).window(f"0..{count}")
        experiment = DispatchExperiment(table, jobs, clusters)
        found[count] = means(sweep(experiment, predicted, loads, given.seeds))
        for row in found[count]:
            kept = row["gain_kept_ratio"]
            share = "" if kept is None else (f"{kept:6.0%} of the ideal's gain "
                                             f"({row['gain_kept_min']:.0%} to {row['gain_kept_max']:.0%})")  # fmt: skip
            print(f"{count:7,} jobs, load {row['load']:.1f}, {row['prediction']:24s} by {row['rule']:10s} "
                  f"turnaround {row['turnaround_mean_s']:10,.0f} s {share}")  # fmt: skip
        drawn = experiment.draw(loads[-1], 0)
        started = process_time()
        drawn.schedule(Rule.TURNAROUND, drawn.expected(table.speed))
        speed[count] = len(jobs) / (process_time() - started)
        print(f"{speed[count]:,.0f} jobs per second of processor time at load {loads[-1]:g}")
    print(json.dumps({"policies": found, "median_speed_error": errors, "jobs_per_second": speed,
                      "seeds": given.seeds, "quick": given.quick}))  # fmt: skip


if __name__ == "__main__":
    main()
