"""ModelX's scheduling experiment on ModelX's own jobs, its figures beside ours.

Jobs are rows of `moldable_jobs.csv` (measured runs of CG, FT, CoMD and Kripke), drawn at random, on 256 nodes. All is
scheduled by EASY. Submissions are those of KTH-SP2, squeezed to a load of the stock policy and shaken; limits are what
KTH's users asked for of jobs about as long, doubled until they suffice. Policies: stock; the fewest nodes without any
prediction; ModelX's own choices, tolerating 10 and 20%; its oracle; ModelX's own predictions with a chosen tolerance;
ours: few-shot predictions from 1 and 5% of the rows of an application (several draws of shots) and all rows of the
others, tolerating 10 and 20%, and with a tolerance that is chosen in the log's first third by simulating what is
predicted, with its doubt; all that is printed is of the rest. Beside: nodes of a machine, and nodes per job, with which
stock would match.

What differs from the paper: its submissions and limits are a week of Lassen's (not here), ours KTH's; what it calls the
stock scheduler may do more than EASY. Who chooses may take any run of the application on fewer nodes, also one with a
higher power cap, another placement or bandwidth level: so do ModelX's own choices.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
from typing import Any

import numpy as np
import pandas as pd
from transfer_data import data_folder

from perf_assets.scheduling.moldable import STOCK, DrawnJobs, MoldableExperiment, MoldableTable, policies, sweep
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.workflows.scheduling.moldable import predicted_column, upper_column, with_predictions

NODES = 256
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
SHOTS = ("1%", "5%")
PUBLISHED = {"turnaround_lower": 0.71, "times_shorter": 3.4, "more_nodes_to_match": 0.55}
"""What ModelX's authors report: on Lassen's submissions."""
THEIRS, ORACLE = {0.1: "modelx10", 0.2: "modelx20"}, "oracle"
"""ModelX's choices by their tolerance."""
MOST_OF_ORACLE = 1.05


def table(seeds: int) -> MoldableTable:
    """ModelX's jobs with predictions by every draw of shots."""
    frame = pd.read_csv(data_folder("modelx_apps") / "moldable_jobs.csv")
    for seed in range(seeds):
        print(f"shots drawn with seed {seed}")
        ours = with_predictions(frame, SHOTS, seed, print)
        frame = frame.assign(**{
            f"ours {s} #{seed}_{what}_seconds": ours[column(s)]
            for s in SHOTS for what, column in (("predicted", predicted_column), ("upper", upper_column))
        })  # fmt: skip
    return MoldableTable.of(frame, NODES)


def means_by_policy(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Means by load and policy, draws of shots together; and the spread of turnaround relative to stock."""
    frame = pd.DataFrame(rows)
    frame["policy"] = frame["policy"].str.replace(r" #\d+, chosen tolerance", "", regex=True)
    frame["policy"] = frame["policy"].str.replace(r" #\d+", "", regex=True)
    grouped = frame.groupby(["load", "policy"], sort=False)
    columns = ["turnaround_mean_s", "turnaround_ratio", "wait_mean_s", "bounded_slowdown_mean", "makespan_s",
               "utilisation", "node_hours", "nodes_per_job", "tolerance"]  # fmt: skip
    means = grouped[columns].mean()
    means["ratio_min"], means["ratio_max"] = grouped["turnaround_ratio"].min(), grouped["turnaround_ratio"].max()
    return means.reset_index()


def goals(means: pd.DataFrame) -> list[dict[str, Any]]:
    """Ours beside ModelX's own choices and the oracle, at every load."""
    ratio = means.pivot_table(index="load", columns="policy", values="turnaround_mean_s")
    found = []
    for shots in SHOTS:
        ours = ratio[f"ours {shots}"]
        best = ratio[list(THEIRS.values())].min(axis=1)
        asked = [
            ("", ours, "at most ModelX's better choice", best),
            ("", ours, "within 5% of the oracle", MOST_OF_ORACLE * ratio[ORACLE]),
        ]
        asked += [
            (f", {fixed:.0%}", ratio[f"ours {shots}, {fixed:.0%}"], f"at most that of {name}", ratio[name])
            for fixed, name in THEIRS.items()
        ]
        for how, values, what, bound in asked:
            missed = values.index[values > bound]
            found.append({"goal": f"ours {shots}{how}: mean turnaround {what}", "is_met": not len(missed),
                          "missed_at": [float(load) for load in missed],
                          "worst_ratio": float((values / bound).max())})  # fmt: skip
    return found


def nodes_to_match(jobs: DrawnJobs, turnaround: float) -> int | None:
    """Fewest nodes on which stock jobs have a mean turnaround; None where eight times the nodes do not suffice."""
    asked, nodes = jobs.experiment.table.asked, jobs.experiment.nodes
    low, high = nodes - 1, nodes
    while jobs.metrics(asked, nodes=high).turnaround.mean > turnaround:
        low, high = high, 2 * high
        if high > 8 * nodes:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = jobs.metrics(asked, nodes=middle).turnaround.mean <= turnaround
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def width_to_match(jobs: DrawnJobs, turnaround: float) -> float | None:
    """Share of its nodes on which each stock job would have to run, in the same time, to have a mean turnaround."""
    asked, low, high = jobs.experiment.table.asked, 0.0, 1.0
    if jobs.metrics(asked).turnaround.mean <= turnaround:
        return 1.0
    if turnaround < float(asked.seconds[jobs.rows].mean()):
        return None
    while high - low > 0.01:
        middle = (low + high) / 2
        is_enough = jobs.metrics(asked, factor=middle).turnaround.mean <= turnaround
        low, high = (middle, high) if is_enough else (low, middle)
    return low


def matching(experiment: MoldableExperiment, load: float, seed: int) -> dict[str, dict[str, float | None]]:
    """What stock would need to be as fast as a policy: nodes of the machine, and narrower jobs at the same time."""
    jobs = experiment.draw(load, seed)
    found = {}
    for name, (widths, _) in policies(experiment, load, seed + 1000).items():
        if name == STOCK or (name.startswith("ours") and "#0" not in name):
            continue
        goal = jobs.metrics(widths).turnaround.mean
        nodes, width = nodes_to_match(jobs, goal), width_to_match(jobs, goal)
        found[name] = {
            "more_nodes_of_machine": None if nodes is None else nodes / NODES - 1,
            "narrower_jobs_factor": width,
            "more_nodes_per_job_of_stock": jobs.nodes_per_job(experiment.table.asked) / jobs.nodes_per_job(widths) - 1,
        }
    return found


def main() -> None:
    """Simulate, print the table, the goals and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of shots")
    parser.add_argument("--repetitions", type=int, default=3, help="draws of jobs and shaken submissions")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--quick", action="store_true", help="two loads, few jobs, one draw")
    given = parser.parse_args()
    if given.quick:
        given.seeds = given.repetitions = 1
        given.jobs = 300
    log = read_trace(next(data_folder("swf").glob("KTH-SP2*"))).window(f"0..{given.jobs}")
    experiment = MoldableExperiment(table(given.seeds), log, NODES)
    means = means_by_policy(sweep(experiment, (0.7, 1.0) if given.quick else LOADS, given.repetitions))
    for row in means.to_dict("records"):
        tolerance = "" if np.isnan(row["tolerance"]) else f" tolerance {row['tolerance']:.0%}"
        print(f"load {row['load']:.1f} {row['policy']:26s} turnaround {row['turnaround_mean_s']:9,.0f} s, "
              f"{row['turnaround_ratio']:6.1%} of stock ({row['ratio_min']:.1%} to {row['ratio_max']:.1%}), "
              f"wait {row['wait_mean_s']:7,.0f} s, slowdown {row['bounded_slowdown_mean']:7.1f}, makespan "
              f"{row['makespan_s']:9,.0f} s, utilisation {row['utilisation']:.2f}, "
              f"{row['node_hours']:7,.0f} node-hours, {row['nodes_per_job']:.1f} nodes per job{tolerance}")  # fmt: skip
    judged = goals(means)
    for one in judged:
        print(f"{'met   ' if one['is_met'] else 'MISSED'} {one['goal']}; worst ratio {one['worst_ratio']:.3f}")
    full = means[means["load"] == 1.0].set_index("policy")["turnaround_ratio"]
    print(
        f"published, on Lassen: {PUBLISHED['turnaround_lower']:.0%} lower, {PUBLISHED['times_shorter']} times shorter"
    )
    for name, ratio in full.items():
        print(f"here, KTH's submissions at load 1.0: {name:26s} {1 - ratio:6.1%} lower, {1 / ratio:.1f} times shorter")
    needed = matching(experiment, 1.0, 0)
    for name, one in needed.items():
        print(f"stock matches {name} with {one}")
    print(json.dumps({"means": means.astype(object).where(means.notna(), None).to_dict("records"), "goals": judged,
                      "matching": needed, "published": PUBLISHED, "jobs": len(experiment.later),
                      "quick": given.quick}))  # fmt: skip


if __name__ == "__main__":
    main()
